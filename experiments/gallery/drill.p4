// DRILL(2, 1): each packet takes the shortest of two random uplinks and the one that was best last time (Ghorbani et
// al., SIGCOMM 2017). With -D SAMPLES=1 it is the power of two choices with memory (Mitzenmacher, Prabhakar and Shah,
// FOCS 2002): one random uplink and the remembered one. Memory is for each group, as groups may lack failed uplinks.
#include "fabric.p4"
#include "uplinks.p4"

#ifndef SAMPLES
#define SAMPLES 2
#endif

#define COUNT(N) if (uplinks.weight##N != 0) { count = count + 1; }
#define LOOK(N) if (uplinks.weight##N != 0) { \
    if (number == first || number == second || remembered == N + 1) { \
        if (uplinks.queue##N < least || (uplinks.queue##N == least && number == first)) { \
            uplink = N; least = uplinks.queue##N; } } \
    number = number + 1; }

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Uplinks() uplinks_of_schedule;
    // The best uplink of the last packet, plus 1: 0 is none.
    register<bit<16>>(4096) memory;
    uplinks_t uplinks;
    bit<16> draw;
    bit<16> remembered;
    bit<32> count;
    bit<32> first;
    bit<32> second;
    bit<32> number;
    bit<32> least;
    bit<9> uplink;

    apply {
        uplinks_of_schedule.apply(meta, uplinks);
        memory.read(remembered, (bit<32>) meta.group);
        count = 0;
        EACH_UPLINK(COUNT)
        random(draw, 16w0, 16w0xFFFF);
        first = ((bit<32>) draw * count) >> 16;
        second = first;
#if SAMPLES == 2
        random(draw, 16w0, 16w0xFFFF);
        second = ((bit<32>) draw * count) >> 16;
#endif
        number = 0;
        least = 0xFFFFFFFF;
        uplink = 0;
        EACH_UPLINK(LOOK)
        memory.write((bit<32>) meta.group, (bit<16>) uplink + 1);
        standard_metadata.egress_spec = uplinks.first_port + uplink;
    }
}

#include "switch.p4"
