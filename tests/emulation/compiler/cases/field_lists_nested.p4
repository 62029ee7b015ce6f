// Architecture: @field_list of structs, and of fields within structs and headers of the metadata
struct inner_t { @field_list(1) bit<8> rounds; bit<8> lost; }
struct whole_t { bit<8> first; bit<8> second; }
header kept_t { @field_list(1) bit<8> kept; bit<8> lost; }
#define METADATA inner_t inner; @field_list(1) whole_t whole; kept_t own;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = meta.inner.rounds;
        hdr.data.b = meta.inner.lost;
        hdr.data.c = meta.whole.first ++ meta.whole.second;
        // Not own.lost: a header that is not valid has any value, on BMv2 that of the packet before.
        hdr.data.d = meta.own.kept ++ 24w0;
        meta.own.setValid();
        if (meta.inner.rounds < 3) {
            meta.inner.rounds = meta.inner.rounds + 1;
            meta.inner.lost = 9;
            meta.whole = { meta.inner.rounds, 7 };
            meta.own.kept = 5;
            meta.own.lost = 6;
            resubmit_preserving_field_list(1);
        }
    }
}

#include "include/end.p4"
