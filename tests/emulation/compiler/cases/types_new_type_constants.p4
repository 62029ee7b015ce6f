// Types: constants, variables and comparisons of a `type` with plain numbers
type bit<8> colour_t;
typedef colour_t shade_t;
const colour_t RED = 3;
const shade_t DARK = 0x1ff;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        colour_t mine = 4;
        colour_t given = (colour_t) hdr.data.a;
        if (given == 3) { mine = RED; }
        hdr.data.b = (bit<8>) mine;
        hdr.data.c = (bit<8>) DARK ++ (bit<8>) given;
    }
}

#include "include/end.p4"
