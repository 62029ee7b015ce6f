// Controls: instances with tables that are applied twice
#include "../include/begin.p4"

control Inner(inout headers_t hdr) {
    table t { key = { hdr.data.a: exact; } actions = { NoAction; } }
    apply { t.apply(); }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Inner() inner;
    apply {
        inner.apply(hdr);
        inner.apply(hdr);  // error: 'CaseIngress.inner' has tables and is applied more than once, which the target cannot do
    }
}

#include "../include/end.p4"
