// Types: fields that cross byte boundaries
#define HEADERS odd_t odd;
#define OWN_PARSER
header odd_t { bit<3> x; bit<13> y; bit<1> z; bit<7> w; bit<24> v; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.odd); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.odd.x = hdr.odd.x + 1;
        hdr.odd.y = hdr.odd.y - 1;
        hdr.odd.z = ~hdr.odd.z;
        hdr.odd.w = (bit<7>) hdr.odd.y;
    }
}

#include "include/end.p4"
