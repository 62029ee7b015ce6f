// Types: generic structs whose arguments are inferred, in functions and in stacks
struct pair_t<T> { T first; T second; }
struct outer_t<T> { pair_t<T> pair; }
header box_t<T> { T value; }
#define HEADERS data_t data; box_t<bit<8>>[2] boxes;
T either<T>(in bool first, in pair_t<T> pair) { return first ? pair.first : pair.second; }
T inner<T>(in outer_t<T> outer) { return either(false, outer.pair); }
T top<T>(in box_t<T>[2] boxes) { return boxes[1].value; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.boxes[1].setValid();
        hdr.boxes[1].value = 0x77;
        pair_t<bit<8>> pair = { hdr.data.a, hdr.data.b };
        outer_t<bit<8>> outer = { { 1, 2 } };
        hdr.data.a = either(hdr.data.a > hdr.data.b, pair);
        hdr.data.b = inner(outer);
        hdr.data.c = (bit<16>) top(hdr.boxes);
    }
}

#include "include/end.p4"
