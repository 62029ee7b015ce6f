// Flowlets: a flow that has paused for GAP_US microseconds goes on over a random uplink.
#include "fabric.p4"
#include "flow_hash.p4"

#ifndef GAP_US
#define GAP_US 1
#endif

control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    FlowHash() flow_hash;
    register<bit<48>>(4096) last_seen_us;
    register<bit<16>>(4096) chosen;
    counter(1, CounterType.packets_and_bytes) flowlets;
    bit<32> digest;
    bit<32> flow;
    bit<48> last_us;
    bit<48> now_us;
    bit<16> draw;

    apply {
        flow_hash.apply(headers, digest);
        flow = digest & 0xFFF;
        now_us = standard_metadata.ingress_global_timestamp;
        last_seen_us.read(last_us, flow);
        last_seen_us.write(flow, now_us);
        chosen.read(draw, flow);

        if (last_us == 0 || now_us - last_us >= GAP_US) {
            random(draw, 16w0, 16w0xFFFF);
            chosen.write(flow, draw);
            flowlets.count(0);
        }

        schedule.apply(meta.schedule, (bit<16>) (((bit<32>) draw * (bit<32>) meta.length) >> 16), standard_metadata);
    }
}

#include "switch.p4"
