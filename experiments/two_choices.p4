// Two choices: of two random uplinks of the group, the one at which less waits.
#include "fabric.p4"
#include "uplinks.p4"

#define COUNT(N) if (uplinks.weight##N != 0) { count = count + 1; }
#define LOOK(N) if (uplinks.weight##N != 0) { \
    if ((number == first && uplinks.queue##N <= least) || (number == second && uplinks.queue##N < least)) { \
        uplink = N; least = uplinks.queue##N; } \
    number = number + 1; }

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Uplinks() uplinks_of_schedule;
    uplinks_t uplinks;
    bit<16> draw;
    bit<16> other_draw;
    bit<32> count;
    bit<32> first;
    bit<32> second;
    bit<32> number;
    bit<32> least;
    bit<9> uplink;

    apply {
        uplinks_of_schedule.apply(meta, uplinks);
        count = 0;
        EACH_UPLINK(COUNT)
        random(draw, 16w0, 16w0xFFFF);
        random(other_draw, 16w0, 16w0xFFFF);
        first = ((bit<32>) draw * count) >> 16;
        second = ((bit<32>) other_draw * count) >> 16;
        number = 0;
        least = 0xFFFFFFFF;
        uplink = 0;
        EACH_UPLINK(LOOK)
        standard_metadata.egress_spec = uplinks.first_port + uplink;
    }
}

#include "switch.p4"
