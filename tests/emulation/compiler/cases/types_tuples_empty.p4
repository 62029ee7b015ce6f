// Types: tuples without elements
struct nothing_t { tuple<> none; bit<8> some; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        tuple<> first = {};
        nothing_t second = { {}, hdr.data.a };
        if (second.none == first) { hdr.data.b = second.some; }
    }
}

#include "include/end.p4"
