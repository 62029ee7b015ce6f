// MRC over SRv6: the host has chosen the way and written it as micro-segments into the destination of an IPv6 header in
// front, so that nothing is left to balance; a northbound packet without them is dropped.
#define SRV6
#include "include/fabric.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        mark_to_drop(standard_metadata);
    }
}

#include "include/switch.p4"
