// Parsers: select on computed keys
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<8> sum;
    state start {
        packet.extract(hdr.data);
        sum = hdr.data.a + hdr.data.b;
        transition select(sum & 0xfe, hdr.data.a ++ hdr.data.b) {
            (2, 0x0101): even;
            (2, _): odd;
            default: accept;
        }
    }
    state even { hdr.data.c = 0x0e; transition accept; }
    state odd { hdr.data.c = 0x0d; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

#include "include/end.p4"
