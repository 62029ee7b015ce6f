// HULA: each switch knows the best next hop to every edge, the one on the path with the least loaded links, from probes of that
// edge; flowlets take it (Katta et al., SOSR 2016). Edges send probes to each edge over random paths; switches copy none.
header hula_t { bit<8> load; }
#ifndef PROBE_INTERVAL_US
#define PROBE_INTERVAL_US 1
#endif
#define EDGE_HEADER hula_t
#define EACH_LINK
#include "fabric.p4"
#include "uplinks.p4"
#include "flowlet.p4"
#include "best_hop.p4"

#define CHECK(N) if (flowlet.uplink == N && uplinks.weight##N != 0) { is_usable = true; }

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    Uplinks() uplinks_of_schedule;
    ReadFlowlet() read_flowlet;
    ReadHop() read_hop;
    uplinks_t uplinks;
    flowlet_t flowlet;
    bit<16> draw;
    bit<9> port;
    bool is_usable;

    apply {
        random(draw, 16w0, 16w0xFFFF);
        schedule.apply(meta.schedule, (bit<16>) (((bit<32>) draw * (bit<32>) meta.length) >> 16), standard_metadata);
        if (!meta.is_probe) {
            uplinks_of_schedule.apply(meta, uplinks);
            read_flowlet.apply(headers, standard_metadata, flowlet);
            if (flowlet.is_new) {
                read_hop.apply(meta, standard_metadata, port);
                flowlet.uplink = port - uplinks.first_port;
            }
            // A best hop that is not known, or has failed, leaves the random uplink.
            is_usable = false;
            EACH_UPLINK(CHECK)
            if (is_usable) { standard_metadata.egress_spec = uplinks.first_port + flowlet.uplink; }
            flowlet_uplinks.write(flowlet.cell, standard_metadata.egress_spec - uplinks.first_port);
        }
    }
}

control EachLink(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    LearnHop() learn_hop;
    AddLoad() add_load;
    apply {
        if (meta.is_probe && meta.edge == NO_EDGE) { learn_hop.apply(headers, meta, standard_metadata); }
        add_load.apply(standard_metadata);
    }
}
control Probe(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    LearnHop() learn_hop;
    apply { learn_hop.apply(headers, meta, standard_metadata); }
}
control Feedback(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }
#include "switch.p4"
