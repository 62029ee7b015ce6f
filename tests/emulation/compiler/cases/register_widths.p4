// Architecture: registers of several types, shared by ingress and egress
#define OWN_EGRESS
#include "include/begin.p4"

register<bit<48>>(4) wide;
register<int<8>>(2) small;
register<bit<1>>(8) bits;

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<48> value;
        wide.read(value, (bit<32>) hdr.data.a);
        wide.write((bit<32>) hdr.data.a, value + 0x100000000);
        int<8> s;
        small.read(s, 0);
        small.write(0, s - 1);
        bits.write((bit<32>) hdr.data.b, 1);
        hdr.data.c = (bit<16>) (int<16>) s;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        bit<48> value;
        wide.read(value, (bit<32>) hdr.data.a);
        hdr.data.d = value[47:16];
    }
}

#include "include/end.p4"
