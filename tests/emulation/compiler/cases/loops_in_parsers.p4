// Parsers: for loops whose end depends on the packet
#define HEADERS data_t data; byte_t[4] bytes;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        for (bit<8> i = 0; i < hdr.data.a; i = i + 1) {
            packet.extract(hdr.bytes.next);
            hdr.data.b = hdr.data.b + hdr.bytes.last.value;
        }
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

#include "include/end.p4"
