// Flowlets: packets of a flow between two pauses of GAP_US microseconds, which take the same uplink. Flows with the same low
// bits of their hash share a cell.
#ifndef FLOWLET_P4
#define FLOWLET_P4

#include "flow_hash.p4"

#ifndef GAP_US
#define GAP_US 1
#endif
#define FLOWLETS 4096

register<bit<48>>(FLOWLETS) flowlet_us;
register<bit<9>>(FLOWLETS) flowlet_uplinks;

struct flowlet_t {
    bit<32> cell;
    bool is_new;
    bit<9> uplink;
}

// Reads whether a packet begins a flowlet, and the uplink of the last one. The program writes a new flowlet's uplink to
// flowlet_uplinks, at its cell.
control ReadFlowlet(inout headers_t headers, inout standard_metadata_t standard_metadata, out flowlet_t flowlet) {
    FlowHash() flow_hash;
    bit<32> digest;
    bit<48> last_us;

    apply {
        flow_hash.apply(headers, digest);
        flowlet.cell = digest & (FLOWLETS - 1);
        flowlet_us.read(last_us, flowlet.cell);
        flowlet_us.write(flowlet.cell, standard_metadata.ingress_global_timestamp);
        flowlet.is_new = last_us == 0 || standard_metadata.ingress_global_timestamp - last_us >= GAP_US;
        flowlet_uplinks.read(flowlet.uplink, flowlet.cell);
    }
}

#endif
