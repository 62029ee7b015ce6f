// Architecture: indirect meters colour packets by rate
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    meter(4, MeterType.packets) rates;
    apply {
        standard.egress_spec = 1;
        bit<2> colour;
        rates.execute_meter((bit<32>) hdr.data.a, colour);
        hdr.data.b = (bit<8>) colour;
    }
}

#include "include/end.p4"
