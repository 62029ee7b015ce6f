// Types: two members of an enum with one name
#include "../include/begin.p4"

enum color_t {
    red,
    green,
    red  // error: member 'red' is declared twice
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

#include "../include/end.p4"
