// Ofan whose pointers start at the uplink with the shortest queue when their first packet comes; schedules are not shuffled.
#include "include/fabric.p4"
#include "include/pointer.p4"
#include "include/uplinks.p4"
#include "include/shortest_queue.p4"

// Without shuffling the first cycle of a schedule visits its uplinks in their order.
#define COUNT_BEFORE(N) if (uplinks.weight##N != 0 && uplink > N) { pointer.slot = pointer.slot + 1; }

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReadPointer() read_pointer;
    AdvancePointer() advance_pointer;
    Uplinks() uplinks_of_schedule;
    ShortestQueue() shortest_queue;
    Schedule() schedule;
    pointer_t pointer;
    uplinks_t uplinks;
    bit<16> draw;
    bit<9> uplink;

    apply {
        read_pointer.apply(meta, meta.packet_class, pointer);
        if (pointer.is_fresh) {
            random(draw, 16w0, 16w0xFFFF);
            uplinks_of_schedule.apply(meta, uplinks);
            shortest_queue.apply(uplinks, draw, uplink);
            pointer.slot = 0;
            EACH_UPLINK(COUNT_BEFORE)
        }
        advance_pointer.apply(meta, pointer);
        schedule.apply(meta.schedule, pointer.slot, standard_metadata);
    }
}

#include "include/switch.p4"
