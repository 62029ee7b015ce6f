// Statements: loops and switch in actions and controls
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> i = 0; i < 8; i = i + 1) {
            if (i == 2) { continue; }
            if (i == hdr.data.b) { break; }
            hdr.data.c = hdr.data.c + (bit<16>) i;
        }
        switch (hdr.data.a) {
            1:
            2: { hdr.data.d = 0x12; }
            3: { hdr.data.d = 0x30; }
            default: { hdr.data.d = 0xff; }
        }
    }
}

#include "include/end.p4"
