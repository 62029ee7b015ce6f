// Host DR: the host has chosen the way and wrapped the packet to a waypoint, so that nothing is left to balance; a
// northbound packet without a waypoint is dropped.
#include "include/fabric.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        mark_to_drop(standard_metadata);
    }
}

#include "include/switch.p4"
