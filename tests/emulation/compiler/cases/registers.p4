// Architecture: registers read and written in ingress and egress
#define OWN_EGRESS
#include "include/begin.p4"

register<bit<8>>(4) shared;
register<int<8>>(2) signed_cells;

control Counting(inout bit<8> value)(bit<32> cells) {
    register<bit<8>>(cells) own;
    apply {
        bit<8> seen;
        own.read(seen, 1);
        seen = seen + 1;
        own.write(1, seen);
        value = seen;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Counting(4) counting;
    apply {
        standard.egress_spec = 1;
        counting.apply(hdr.data.a);
        shared.read(hdr.data.b, (bit<32>) hdr.data.b);
        int<8> s;
        signed_cells.read(s, 0);
        signed_cells.write(0, s - 1);
        hdr.data.c = (bit<16>) (int<16>) s;
        shared.read(hdr.data.d[31:24], 3);
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { shared.write(2, hdr.data.a |+| 0x10); shared.write(3, 0x33); }
}

#include "include/end.p4"
