// RSQ: a random slot. JSQ: the uplink with the shortest queue for its weight. Switch Pkt AR: an uplink of the lowest bin of
// queue lengths, in proportion to its weight.
#include "include/fabric.p4"
#include "include/uplinks.p4"
#include "include/shortest_queue.p4"
#include "include/lowest_bin.p4"

const bit<8> RSQ = 0;
const bit<8> JSQ = 1;

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Uplinks() uplinks_of_schedule;
    ShortestQueue() shortest_queue;
    LowestBin() lowest_bin;
    Schedule() schedule;
    uplinks_t uplinks;
    bit<8> mode;
    bit<32> first;
    bit<32> second;
    bit<32> third;
    bit<16> draw;
    bit<16> slot;
    bit<9> uplink;

    @id(SET_QUANTA_ACTION)
    action set_quanta(bit<8> scheme, bit<32> first_bytes, bit<32> second_bytes, bit<32> third_bytes) {
        mode = scheme;
        first = first_bytes;
        second = second_bytes;
        third = third_bytes;
    }

    // Schemes: 0 RSQ, 1 JSQ, 2 Switch Pkt AR, whose bins begin at 0 and at the three thresholds.
    @id(QUANTA_TABLE)
    table quanta {
        actions = { set_quanta; }
        size = 1;
        default_action = set_quanta(RSQ, 0, 0, 0);
    }

    apply {
        quanta.apply();
        random(draw, 16w0, 16w0xFFFF);
        if (mode == RSQ) {
            slot = (bit<16>) (((bit<32>) draw * (bit<32>) meta.length) >> 16);
            schedule.apply(meta.schedule, slot, standard_metadata);
        } else {
            uplinks_of_schedule.apply(meta, uplinks);
            if (mode == JSQ) {
                shortest_queue.apply(uplinks, draw, uplink);
            } else {
                lowest_bin.apply(uplinks, first, second, third, draw, uplink);
            }
            standard_metadata.egress_spec = uplinks.first_port + uplink;
        }
    }
}

#include "include/switch.p4"
