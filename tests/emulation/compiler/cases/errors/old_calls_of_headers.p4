// Architecture: old clones that preserve headers
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { clone3(CloneType.I2E, 1, { hdr.data.a }); }  // error: 'clone3' can preserve fields of metadata only
}

#include "../include/end.p4"
