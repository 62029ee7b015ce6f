// Types: generic structs and headers
struct pair_t<T, U> { T first; U second; }
header box_t<T> { T value; }
#define HEADERS data_t data; box_t<bit<16>> box;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        pair_t<bit<8>, bit<16>> pair = { hdr.data.a, hdr.data.c };
        hdr.box.setValid();
        hdr.box.value = pair.second + (bit<16>) pair.first;
    }
}

#include "include/end.p4"
