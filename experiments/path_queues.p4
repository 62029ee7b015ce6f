// Random uplinks. The destination's edge stores the longest queue on packets' paths, by the uplink of their first edge.
header path_t {
    bit<32> queue_bytes;
    bit<8> uplink;
}

#define EDGE_HEADER path_t
#define EACH_LINK
#include "fabric.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    bit<16> draw;

    apply {
        random(draw, 16w0, 16w0xFFFF);
        schedule.apply(meta.schedule, (bit<16>) (((bit<32>) draw * (bit<32>) meta.length) >> 16), standard_metadata);
        if (meta.edge == meta.source_edge) {
            headers.edge_header.uplink = (bit<8>) standard_metadata.egress_spec;
        }
    }
}

control EachLink(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> waiting;

    apply {
        queue_bytes.read(waiting, (bit<32>) standard_metadata.egress_spec);
        if (waiting > headers.edge_header.queue_bytes) {
            headers.edge_header.queue_bytes = waiting;
        }
    }
}

control Feedback(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(512) longest_bytes;
    bit<32> longest;

    apply {
        longest_bytes.read(longest, (bit<32>) headers.edge_header.uplink);
        if (headers.edge_header.queue_bytes > longest) {
            longest_bytes.write((bit<32>) headers.edge_header.uplink, headers.edge_header.queue_bytes);
        }
    }
}

#include "switch.p4"
