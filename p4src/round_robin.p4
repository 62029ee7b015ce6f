// Simple RR: one pointer per (next-hop group, class), whatever the destination. Switch Pkt: one pointer per group for both
// classes, over one of 16 random orders of the uplinks, which is drawn again after every 5 wraparounds.
#include "include/fabric.p4"
#include "include/pointer.p4"

@id(SHUFFLES_REGISTER)
register<bit<8>>(MAX_POINTERS) shuffles;

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReadPointer() read_pointer;
    AdvancePointer() advance_pointer;
    Schedule() schedule;
    pointer_t pointer;
    bit<4> limit;
    bit<8> shuffle;
    bit<4> wraps;
    bit<4> order;

    @id(RESHUFFLE_AFTER_ACTION)
    action reshuffle_after(bit<4> wraparounds) {
        limit = wraparounds;
    }

    // 0 wraparounds: never, which is Simple RR. Otherwise a group owns 16 consecutive schedules, one per order.
    @id(ORDERS_TABLE)
    table orders {
        actions = { reshuffle_after; }
        size = 1;
        default_action = reshuffle_after(0);
    }

    apply {
        orders.apply();
        read_pointer.apply(meta, limit == 0 ? meta.packet_class : DATA, pointer);
        advance_pointer.apply(meta, pointer);
        order = 0;
        if (limit != 0) {
            shuffles.read(shuffle, pointer.cell);
            wraps = shuffle[7:4];
            order = shuffle[3:0];
            if (pointer.is_fresh || wraps >= limit) {
                random(order, 4w0, 4w15);
                wraps = 0;
            }
            if (pointer.has_wrapped) {
                wraps = wraps + 1;
            }
            shuffles.write(pointer.cell, wraps ++ order);
        }
        schedule.apply(meta.schedule + (bit<32>) order, pointer.slot, standard_metadata);
    }
}

#include "include/switch.p4"
