// Architecture: extern objects of users at the top level
#include "../include/begin.p4"

extern Mystery { Mystery(bit<8> size); void run(); }
Mystery(3) thing;  // error: the target does not know the extern Mystery (see --emit-externs)

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { thing.run(); }
}

#include "../include/end.p4"
