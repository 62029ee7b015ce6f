// Annotations: unknown, structured and free-form annotations are accepted
@pragma_like(1, "two", three + four)
@prose(that's (all) `there` is)
@structured[1, "two", true]
@keys[colour="red", size=1 + 2]
header extra_t { @odd bit<8> value; }
#include "include/begin.p4"

@hidden
control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @brief("does nothing") @unroll
    action nothing() {}
    @my_annotation[] table rules {
        key = { hdr.data.a: exact; }
        actions = { @first nothing; @second NoAction; }
        @third default_action = nothing;
    }
    @atomic
    apply { standard.egress_spec = 1; @atomic { rules.apply(); } }
}

#include "include/end.p4"
