// Types: minSizeInBits, minSizeInBytes, maxSizeInBits and maxSizeInBytes
#define HEADERS data_t data; some_t some;
header some_t { bit<8> length; varbit<32> rest; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = hdr.data.minSizeInBytes();
        hdr.data.b = hdr.some.minSizeInBits();
        hdr.data.c = hdr.some.maxSizeInBits();
        hdr.data.d = hdr.some.maxSizeInBytes();
    }
}

#include "include/end.p4"
