// Architecture: digests of structs and lists
struct note_t { bit<8> a; bit<16> c; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        note_t note = { hdr.data.a, hdr.data.c };
        digest(1, note);
        note.a = 0;
    }
}

#include "include/end.p4"
