// An uplink among those whose queues are in the lowest bin, in proportion to their weights.
#ifndef LOWEST_BIN_P4
#define LOWEST_BIN_P4

#define FIND_BIN(N) if (uplinks.weight##N != 0) { \
    uplinks.queue##N = (uplinks.queue##N >= first ? 32w1 : 0) + (uplinks.queue##N >= second ? 32w1 : 0) \
        + (uplinks.queue##N >= third ? 32w1 : 0); \
    if (uplinks.queue##N < lowest) { \
        lowest = uplinks.queue##N; total = (bit<32>) uplinks.weight##N; \
    } else if (uplinks.queue##N == lowest) { total = total + (bit<32>) uplinks.weight##N; } }
#define PICK_SHARE(N) if (uplinks.weight##N != 0 && uplinks.queue##N == lowest) { \
    if (total < (bit<32>) uplinks.weight##N) { uplink = N; } \
    total = total - (bit<32>) uplinks.weight##N; }

// Queue lengths of `uplinks` become the numbers of their bins. A share that has been passed wraps below 0, beyond any weight.
control LowestBin(inout uplinks_t uplinks, in bit<32> first, in bit<32> second, in bit<32> third, in bit<16> draw,
                  out bit<9> uplink) {
    bit<32> lowest;
    bit<32> total;

    apply {
        uplink = 0;
        lowest = 4;
        total = 0;
        EACH_UPLINK(FIND_BIN)
        total = ((bit<32>) draw * total) >> 16;
        EACH_UPLINK(PICK_SHARE)
    }
}

#endif
