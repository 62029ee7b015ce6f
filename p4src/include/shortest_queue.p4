// The uplink with the shortest queue for its weight: queue_i / weight_i is compared by cross-multiplication, and a 16-bit
// draw picks among equals in the order of the uplinks.
#ifndef SHORTEST_QUEUE_P4
#define SHORTEST_QUEUE_P4

#define COMPARE(N) if (uplinks.weight##N != 0) { \
    this_side = (bit<40>) uplinks.queue##N * weight; \
    best_side = queue * (bit<40>) uplinks.weight##N; \
    if (this_side < best_side) { \
        queue = (bit<40>) uplinks.queue##N; weight = (bit<40>) uplinks.weight##N; ties = 1; \
    } else if (this_side == best_side) { ties = ties + 1; } }
#define PICK_TIE(N) \
    if (uplinks.weight##N != 0 && (bit<40>) uplinks.queue##N * weight == queue * (bit<40>) uplinks.weight##N) { \
        if (ties == 0) { uplink = N; } \
        ties = ties - 1; }

control ShortestQueue(inout uplinks_t uplinks, in bit<16> draw, out bit<9> uplink) {
    bit<40> queue;
    bit<40> weight;
    bit<40> this_side;
    bit<40> best_side;
    bit<32> ties;

    apply {
        uplink = 0;
        // 1 / 0 is longer than any queue.
        queue = 1;
        weight = 0;
        ties = 0;
        EACH_UPLINK(COMPARE)
        ties = ((bit<32>) draw * ties) >> 16;
        EACH_UPLINK(PICK_TIE)
    }
}

#endif
