// Architecture: V1MODEL_VERSION 20200408 and typed indices
#define V1MODEL_VERSION 20200408
#define METADATA PortId_t port;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter<bit<8>>(4, CounterType.packets) seen;
    register<bit<16>, bit<8>>(4) last;
    meter<bit<8>>(4, MeterType.bytes) rate;
    apply {
        meta.port = 1;
        standard.egress_spec = meta.port;
        bit<8> colour;
        seen.count(hdr.data.a);
        last.read(hdr.data.c, hdr.data.a);
        last.write(hdr.data.a, 0x1234);
        rate.execute_meter(hdr.data.a, colour);
        hdr.data.b = colour;
    }
}

#include "include/end.p4"
