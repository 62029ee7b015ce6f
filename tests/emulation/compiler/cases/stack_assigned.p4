// Types: assignment of whole stacks
#define HEADERS data_t data; byte_t[2] first; byte_t[2] second;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); packet.extract(hdr.first.next); packet.extract(hdr.first.next); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.second = hdr.first;
        hdr.second[1].value = hdr.second[1].value + 1;
        hdr.first[0].setInvalid();
        if (hdr.first == hdr.second) { hdr.data.a = 1; }
    }
}

#include "include/end.p4"
