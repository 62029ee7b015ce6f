// The path is in the packet: a byte names the edge's uplink, the next one that of the aggregation switch.
header path_t {
    bit<8> at_edge;
    bit<8> at_agg;
    bit<16> reserved;
}

#define AFTER_UDP path_t
#include "fabric.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    bit<8> name;
    bit<16> slot;

    apply {
        name = headers.ipv4.ttl == 63 ? headers.after_udp.at_edge : headers.after_udp.at_agg;
        slot = (bit<16>) (((bit<32>) name * (bit<32>) meta.length) >> 8);
        schedule.apply(meta.schedule, slot, standard_metadata);
    }
}

#include "switch.p4"
