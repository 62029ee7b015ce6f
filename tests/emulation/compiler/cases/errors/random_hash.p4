// Architecture: HashAlgorithm.random
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hash(hdr.data.a, HashAlgorithm.random, 8w0, { hdr.data.b }, 8w3); }  // error: the target has no hash algorithm 'random'; use the function random()
}

#include "../include/end.p4"
