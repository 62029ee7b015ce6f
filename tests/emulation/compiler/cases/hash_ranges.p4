// Architecture: base and maximum of a hash
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hash(hdr.data.b, HashAlgorithm.identity, 8w3, { hdr.data.a }, 8w4);
        hash(hdr.data.c, HashAlgorithm.identity, 16w9, { hdr.data.a }, 16w0);
        hash(hdr.data.d[7:0], HashAlgorithm.identity, 8w0, { hdr.data.a }, 8w1);
    }
}

#include "include/end.p4"
