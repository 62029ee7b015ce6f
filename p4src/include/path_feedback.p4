// Congestion of paths between edges, after CONGA. A path has the number of its first edge's uplink. A packet collects the
// greatest load of its path's links; the last edge stores it, and sends it back in later packets, one path in each of them.
// The program's EDGE_HEADER has the fields uplink, congestion, feedback_uplink and feedback, 8 bits each.
#ifndef PATH_FEEDBACK_P4
#define PATH_FEEDBACK_P4

#include "aging.p4"
#include "link_load.p4"

// Congestion fades in 2^FEEDBACK_SHIFT microseconds without packets, at both ends, so that a path is tried again.
#ifndef FEEDBACK_SHIFT
#define FEEDBACK_SHIFT 7
#endif
// A fabric has at most half as many edges as routes (sizes.p4).
#define MAX_PATHS (MAX_ROUTES / 2 * MAX_UPLINKS)
#define PATH(EDGE, UPLINK) ((bit<32>) (EDGE) * MAX_UPLINKS + (bit<32>) (UPLINK))

// Congestion of paths to other edges, from feedback, and of paths from other edges, from packets, and their times; and the
// uplink of the next feedback to each edge.
register<bit<8>>(MAX_PATHS) congestion_to;
register<bit<48>>(MAX_PATHS) feedback_us;
register<bit<8>>(MAX_PATHS) congestion_from;
register<bit<48>>(MAX_PATHS) packet_us;
register<bit<8>>(MAX_ROUTES / 2) next_feedback;

// Reads the congestion of the path through an uplink to the edge of the packet's destination.
control ReadPath(inout metadata_t meta, in bit<8> uplink, inout standard_metadata_t standard_metadata,
                 out bit<32> congestion) {
    Age() age;
    bit<8> feedback;
    bit<48> last_us;

    apply {
        congestion_to.read(feedback, PATH(meta.destination_edge, uplink));
        feedback_us.read(last_us, PATH(meta.destination_edge, uplink));
        age.apply((bit<32>) feedback, standard_metadata.ingress_global_timestamp - last_us, FEEDBACK_SHIFT, congestion);
    }
}

// At the first edge: writes the header of a packet that leaves through an uplink.
control SendFeedback(inout headers_t headers, inout metadata_t meta, in bit<8> uplink,
                     inout standard_metadata_t standard_metadata) {
    Age() age;
    bit<8> next;
    bit<8> fresh;
    bit<48> last_us;
    bit<32> aged;

    apply {
        next_feedback.read(next, (bit<32>) meta.destination_edge);
        next_feedback.write((bit<32>) meta.destination_edge, (next + 1) & (MAX_UPLINKS - 1));
        headers.edge_header.uplink = uplink;
        headers.edge_header.feedback_uplink = next;
        congestion_from.read(fresh, PATH(meta.destination_edge, next));
        packet_us.read(last_us, PATH(meta.destination_edge, next));
        age.apply((bit<32>) fresh, standard_metadata.ingress_global_timestamp - last_us, FEEDBACK_SHIFT, aged);
        headers.edge_header.feedback = (bit<8>) aged;
    }
}

// At each link: adds the packet to the link's load, and keeps the greatest load of its path.
control CollectLoad(inout headers_t headers, inout standard_metadata_t standard_metadata) {
    ReadLoad() read_load;
    AddLoad() add_load;
    bit<32> load;

    apply {
        read_load.apply(standard_metadata.egress_spec, standard_metadata, load);
        add_load.apply(standard_metadata);
        if (load > (bit<32>) headers.edge_header.congestion) {
            headers.edge_header.congestion = (bit<8>) load;
        }
    }
}

// At the last edge: stores the congestion of the packet's path, and the feedback in its header.
control TakeFeedback(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        congestion_from.write(PATH(meta.source_edge, headers.edge_header.uplink), headers.edge_header.congestion);
        packet_us.write(PATH(meta.source_edge, headers.edge_header.uplink), standard_metadata.ingress_global_timestamp);
        congestion_to.write(PATH(meta.source_edge, headers.edge_header.feedback_uplink), headers.edge_header.feedback);
        feedback_us.write(PATH(meta.source_edge, headers.edge_header.feedback_uplink),
                          standard_metadata.ingress_global_timestamp);
    }
}

#endif
