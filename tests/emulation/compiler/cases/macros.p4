// Preprocessor: macros and conditions
#define DOUBLE(x) ((x) * 2)
#define FIELD hdr.data.b
#if defined(DOUBLE) && !defined(MISSING)
#define WIDTH 8
#else
#error unreachable
#endif
#include "include/begin.p4"
#include "include/begin_twice.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<WIDTH> x = DOUBLE(hdr.data.a + 1); /* a comment
            of two lines */ FIELD = x;
        TWICE(hdr.data.c = hdr.data.c + 1;)
    }
}

#include "include/end.p4"
