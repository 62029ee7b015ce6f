// Architecture: indirect counters of packets and bytes
#define METADATA bit<32> index;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets) packets;
    counter(4, CounterType.bytes) bytes;
    counter(4, CounterType.packets_and_bytes) both;
    apply {
        standard.egress_spec = 1;
        packets.count((bit<32>) hdr.data.a);
        bytes.count((bit<32>) hdr.data.a);
        both.count(3);
    }
}

#include "include/end.p4"
