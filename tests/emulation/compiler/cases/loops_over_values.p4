// Statements: for loops over ranges and lists
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> x in 1 .. 4) {
            if (x == 2) { continue; }
            hdr.data.a = hdr.data.a + x;
        }
        for (bit<16> x in { hdr.data.c, 0x100, 0x1000 }) {
            hdr.data.c = hdr.data.c + x;
            if (x == 0x100) { break; }
        }
    }
}

#include "include/end.p4"
