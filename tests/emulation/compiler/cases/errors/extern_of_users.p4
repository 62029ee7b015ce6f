// Architecture: extern functions of users
#include "../include/begin.p4"

extern void mystery(in bit<8> x);

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { mystery(hdr.data.a); }  // error: the target does not know the function 'mystery'
}

#include "../include/end.p4"
