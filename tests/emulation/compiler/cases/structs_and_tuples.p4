// Types: structs and tuples
#include "include/begin.p4"

struct inner_t { bit<8> x; bit<8> y; }
struct outer_t { inner_t first; inner_t second; bool flag; }

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        outer_t o = { { hdr.data.a, hdr.data.b }, { y = 5, x = 6 }, true };
        inner_t swapped = { o.first.y, o.first.x };
        o.second = swapped;
        tuple<bit<8>, bit<16>> t = { swapped.x, 0x1234 };
        if (o.first == { 1, 2 } && o.flag) { hdr.data.c = t[1]; }
        if (o.second != swapped) { hdr.data.c = 0xdead; }
        hdr.data.a = o.second.x;
        hdr.data.b = t[0];
        swapped = { swapped.y, swapped.x };
        hdr.data.d = 16w0 ++ swapped.x ++ swapped.y;
    }
}

#include "include/end.p4"
