// Architecture: registers in parsers
#define OWN_PARSER
#include "../include/begin.p4"

register<bit<8>>(4) cells;

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        cells.write(0, 1);  // error: 'write' cannot be called here, only in ingress or egress
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
