// Parsers: value sets of structs, filled by the control plane
struct pair_t { @match(ternary) bit<8> a; @match(ternary) bit<8> b; }
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<pair_t>(4) pairs;
    value_set<bit<16>>(4) numbers;
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a, hdr.data.b) {
            pairs: known;
            default: other;
        }
    }
    state known { hdr.data.d = 1; transition accept; }
    state other { transition select(hdr.data.c) { numbers: known; default: accept; } }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

#include "include/end.p4"
