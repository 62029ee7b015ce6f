// CONGA: a flowlet takes the uplink whose path to the destination's edge is least congested. A path's congestion is the
// greatest load of its links, collected by packets and sent back by that edge (Alizadeh et al., SIGCOMM 2014).
header conga_t {
    bit<8> uplink;
    bit<8> congestion;
    bit<8> feedback_uplink;
    bit<8> feedback;
}
#define EDGE_HEADER conga_t
#define EACH_LINK
#include "fabric.p4"
#include "uplinks.p4"
#include "shortest_queue.p4"
#include "flowlet.p4"
#include "path_feedback.p4"

#define LOOK(N) if (uplinks.weight##N != 0) { \
    read_load.apply(uplinks.first_port + N, standard_metadata, uplinks.queue##N); \
    if (meta.edge == meta.source_edge) { \
        read_path.apply(meta, N, standard_metadata, congestion); \
        if (congestion > uplinks.queue##N) { uplinks.queue##N = congestion; } } \
    } else if (flowlet.uplink == N) { flowlet.is_new = true; }

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Uplinks() uplinks_of_schedule;
    ShortestQueue() least_congested;
    ReadFlowlet() read_flowlet;
    ReadLoad() read_load;
    ReadPath() read_path;
    SendFeedback() send_feedback;
    uplinks_t uplinks;
    flowlet_t flowlet;
    bit<32> congestion;
    bit<16> draw;

    apply {
        uplinks_of_schedule.apply(meta, uplinks);
        read_flowlet.apply(headers, standard_metadata, flowlet);
        EACH_UPLINK(LOOK)
        if (flowlet.is_new) {
            random(draw, 16w0, 16w0xFFFF);
            least_congested.apply(uplinks, draw, flowlet.uplink);
            flowlet_uplinks.write(flowlet.cell, flowlet.uplink);
        }
        standard_metadata.egress_spec = uplinks.first_port + flowlet.uplink;
        if (meta.edge == meta.source_edge) {
            send_feedback.apply(headers, meta, (bit<8>) flowlet.uplink, standard_metadata);
        }
    }
}

control EachLink(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    CollectLoad() collect_load;
    apply { collect_load.apply(headers, standard_metadata); }
}
control Feedback(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    TakeFeedback() take_feedback;
    apply { take_feedback.apply(headers, meta, standard_metadata); }
}
#include "switch.p4"
