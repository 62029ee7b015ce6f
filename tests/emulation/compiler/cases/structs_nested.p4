// Types: nested structs, assigned and compared as a whole
struct inner_t { bit<8> x; bit<16> y; }
struct outer_t { inner_t left; inner_t right; }
#define METADATA outer_t outer;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        meta.outer.left = { hdr.data.a, hdr.data.c };
        meta.outer.right = meta.outer.left;
        meta.outer.right.x = meta.outer.right.x + 1;
        if (meta.outer.left == meta.outer.right) { hdr.data.b = 1; }
        inner_t swap = meta.outer.left;
        meta.outer.left = meta.outer.right;
        meta.outer.right = swap;
        hdr.data.d = meta.outer.left.x ++ meta.outer.right.x ++ meta.outer.left.y;
    }
}

#include "include/end.p4"
