// Architecture: extern objects of users
#include "../include/begin.p4"

extern Mystery { Mystery(); void run(); }

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Mystery() thing;  // error: the target does not know the extern Mystery (see --emit-externs)
    apply { thing.run(); }
}

#include "../include/end.p4"
