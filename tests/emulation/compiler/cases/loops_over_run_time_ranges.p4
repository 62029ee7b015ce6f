// Statements: for loops over ranges that depend on the packet
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        // Both ends are evaluated once, and the variable is another one in each round.
        for (bit<8> x in hdr.data.a .. hdr.data.b) {
            hdr.data.b = 0;
            if (x == 4) { continue; }
            if (x == 7) { break; }
            hdr.data.c = hdr.data.c + (bit<16>) x;
            x = 0;
        }
        // Up to the largest number, behind which there is none.
        for (bit<8> y in 254 .. hdr.data.a | 0xff) { hdr.data.d = hdr.data.d + (bit<32>) y; }
        for (bit<8> z in hdr.data.a .. 0) { hdr.data.d = 0; }
    }
}

#include "include/end.p4"
