// Parsers: advance, and extract without a place
#define HEADERS data_t data; data_t second;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.advance(16);
        packet.extract<data_t>(_);
        packet.extract(hdr.data);
        packet.advance((bit<32>) hdr.data.a << 3);
        packet.extract(hdr.second);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

#include "include/end.p4"
