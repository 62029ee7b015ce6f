// Architecture: assert, assume and static_assert
#include "include/begin.p4"

const bool KNOWN = static_assert(1 + 1 == 2, "arithmetic");

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        assert(hdr.data.isValid());
        assume(hdr.data.a < 200);
        static_assert(hdr.data.minSizeInBytes() == 8);
    }
}

#include "include/end.p4"
