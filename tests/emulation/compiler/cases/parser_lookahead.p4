// Parsers: lookahead of bits, structs and headers
struct peek_t { bit<4> high; bit<4> low; bit<8> next; }
#define HEADERS data_t data; data_t copy;
#define METADATA bit<8> first; peek_t peek;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        meta.first = packet.lookahead<bit<8>>();
        meta.peek = packet.lookahead<peek_t>();
        hdr.copy = packet.lookahead<data_t>();
        packet.extract(hdr.data);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.copy.a = meta.peek.low ++ meta.peek.high;
        hdr.copy.b = meta.peek.next + meta.first;
    }
}

#include "include/end.p4"
