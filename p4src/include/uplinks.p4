// The uplinks that a schedule uses: the first one's port, every one's weight (0: not used) and how much waits at it.
#ifndef UPLINKS_P4
#define UPLINKS_P4

#define WEIGHT_AND_QUEUE(N) bit<8> weight##N; bit<32> queue##N;
#define WEIGHT_PARAMETER(N) , bit<8> weight##N
#define SET_WEIGHT(N) uplinks.weight##N = weight##N;
#define NO_WEIGHT(N) , 0
#define READ_QUEUE(N) if (uplinks.weight##N != 0) { \
    queue_bytes.read(uplinks.queue##N, (bit<32>) (uplinks.first_port + N)); }

struct uplinks_t {
    bit<9> first_port;
    EACH_UPLINK(WEIGHT_AND_QUEUE)
}

control Uplinks(inout metadata_t meta, inout uplinks_t uplinks) {
    @id(WEIGH_ACTION)
    action weigh(bit<9> first_port EACH_UPLINK(WEIGHT_PARAMETER)) {
        uplinks.first_port = first_port;
        EACH_UPLINK(SET_WEIGHT)
    }

    // Keyed by schedule: a group that moves to a new schedule moves to its weights at the same instant.
    @id(UPLINKS_TABLE)
    table uplinks_of {
        key = { meta.schedule: exact @name("schedule"); }
        actions = { weigh; }
        size = MAX_SCHEDULES;
        const default_action = weigh(DROP_PORT EACH_UPLINK(NO_WEIGHT));
    }

    apply {
        uplinks_of.apply();
        EACH_UPLINK(READ_QUEUE)
    }
}

#endif
