// Types: headers with two varbit fields
#define HEADERS some_t some; data_t data;
header some_t { varbit<8> x; varbit<8> y; }  // error: a header can have one varbit field only
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
