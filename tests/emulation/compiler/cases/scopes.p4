// Statements: inner declarations hide outer ones
const bit<8> value = 1;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<8> value = 2;
    apply {
        standard.egress_spec = 1;
        hdr.data.a = value;
        {
            bit<8> value = 3;
            hdr.data.b = value;
            { const bit<8> value = 4; hdr.data.c = (bit<16>) value; }
        }
        hdr.data.d = (bit<32>) value + (bit<32>) .value;
    }
}

#include "include/end.p4"
