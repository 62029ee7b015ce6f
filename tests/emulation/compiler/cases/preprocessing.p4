// Preprocessor: #if arithmetic, #elif, #undef, macros with arguments and nested includes
#define LEVEL 3
#if LEVEL * 2 > 5 && !defined(NOTHING)
#define VALUE(x) ((x) + LEVEL)
#elif LEVEL == 0
#error unreachable
#else
#error unreachable
#endif
#undef LEVEL
#define LEVEL 4
#ifdef LEVEL
const bit<8> KNOWN = 8w1;
#else
const bit<8> KNOWN = 8w2;
#endif
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = VALUE(KNOWN);   // a comment
        hdr.data.b = /* another */ VALUE(VALUE(1));
    }
}

#include "include/end.p4"
