// Architecture: registers wider than 128 bits, whose cells the control plane reads
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<136>>(3) wide;
    apply {
        standard.egress_spec = 1;
        bit<136> value = hdr.data.a ++ 96w0 ++ hdr.data.d;
        wide.write((bit<32>) hdr.data.b, value);
        wide.read(value, 1);
        hdr.data.c = value[135:120];
    }
}

#include "include/end.p4"
