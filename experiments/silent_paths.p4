// Random uplinks, but none over which the destination's edge has answered no probe for SILENT_US microseconds.
header path_t {
    bit<8> uplink;
}

#ifndef PROBE_INTERVAL_US
#define PROBE_INTERVAL_US 1
#endif
#ifndef SILENT_US
#define SILENT_US 20
#endif
#define EDGE_HEADER path_t
#include "fabric.p4"
#include "uplinks.p4"

// When each path was heard of last, by the destination's edge and the uplink of the first edge.
register<bit<48>>(MAX_ROUTES / 2 * MAX_UPLINKS) heard_us;
#define PATH(EDGE, UPLINK) ((bit<32>) (EDGE) * MAX_UPLINKS + (bit<32>) (UPLINK))

// Of n uplinks that may be taken, each has the same chance: the last takes its place with a chance of 1 / n.
#define LOOK(N) heard_us.read(last_us, PATH(meta.destination_edge, N)); \
    if (uplinks.weight##N != 0 && (takes_all || now_us - last_us < SILENT_US)) { \
        count = count + 1; \
        random(draw, 16w0, 16w0xFFFF); \
        if (((bit<32>) draw * count) >> 16 == 0) { uplink = N; } }

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Uplinks() uplinks_of_schedule;
    uplinks_t uplinks;
    bit<48> now_us;
    bit<48> last_us;
    bit<16> draw;
    bit<32> count;
    bit<9> uplink;
    bool takes_all;

    apply {
        uplinks_of_schedule.apply(meta, uplinks);
        now_us = standard_metadata.ingress_global_timestamp;
        takes_all = meta.is_probe || meta.edge == NO_EDGE || now_us < SILENT_US;
        count = 0;
        uplink = 0;
        EACH_UPLINK(LOOK)
        if (count == 0) {
            takes_all = true;
            EACH_UPLINK(LOOK)
        }
        standard_metadata.egress_spec = uplinks.first_port + uplink;
        if (meta.is_probe && !meta.is_answer && meta.edge == meta.source_edge) {
            headers.edge_header.uplink = (bit<8>) uplink;
        }
    }
}

control Probe(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.is_answer) {
            heard_us.write(PATH(meta.source_edge, headers.edge_header.uplink),
                           standard_metadata.ingress_global_timestamp);
        } else {
            meta.answers = true;
        }
    }
}

control Feedback(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

#include "switch.p4"
