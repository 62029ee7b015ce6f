// Architecture: direct meters write their colour to a field
#define METADATA bit<32> colour;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_meter<bit<32>>(MeterType.packets) rates;
    action set() { rates.read(meta.colour); }
    table rules {
        key = { hdr.data.a: exact; }
        actions = { set; NoAction; }
        meters = rates;
    }
    apply {
        standard.egress_spec = 1;
        meta.colour = 7;
        rules.apply();
        hdr.data.d = meta.colour;
    }
}

#include "include/end.p4"
