// Types: headers with struct fields
#define HEADERS outer_t outer;
#define OWN_PARSER
struct pair_t { bit<4> left; bit<12> right; }
header outer_t { bit<8> tag; pair_t pair; bit<8> last; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.outer); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        pair_t copy = hdr.outer.pair;
        hdr.outer.pair.left = (bit<4>) copy.right;
        hdr.outer.pair.right = (bit<12>) copy.left;
        if (copy == { 4w1, 12w2 }) { hdr.outer.last = 0xee; }
    }
}

#include "include/end.p4"
