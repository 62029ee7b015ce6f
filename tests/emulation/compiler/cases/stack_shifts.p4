// Types: push_front and pop_front of stacks
#define HEADERS data_t data; byte_t[3] bytes;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); packet.extract(hdr.bytes.next); packet.extract(hdr.bytes.next); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.data.a == 1) { hdr.bytes.push_front(1); hdr.bytes[0].setValid(); hdr.bytes[0].value = 0xcc; }
        if (hdr.data.a == 2) { hdr.bytes.pop_front(1); }
        if (hdr.data.a == 3) { hdr.bytes.push_front(2); }
        if (hdr.data.a == 4) { hdr.bytes.pop_front(5); }
    }
}

#include "include/end.p4"
