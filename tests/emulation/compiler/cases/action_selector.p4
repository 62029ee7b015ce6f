// Architecture: action selectors that hash keys
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action to(bit<8> value) { hdr.data.b = value; }
    table ways {
        key = { hdr.data.a: exact; hdr.data.c: selector; hdr.data.d: selector; }
        actions = { to; NoAction; }
        implementation = action_selector(HashAlgorithm.identity, 32, 16);
    }
    apply { standard.egress_spec = 1; ways.apply(); }
}

#include "include/end.p4"
