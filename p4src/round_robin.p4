// Simple RR: one pointer per (next-hop group, class), or one per group for both classes, whatever the destination. Switch
// Pkt: one per group, over one of 16 random orders of the uplinks, which is drawn again after every 5 wraparounds.
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
    bool is_shared;
    bit<8> shuffle;
    bit<4> wraps;
    bit<4> order;

    @id(RESHUFFLE_AFTER_ACTION)
    action reshuffle_after(bit<4> wraparounds) {
        limit = wraparounds;
        is_shared = wraparounds != 0;
    }

    @id(SHARE_POINTER_ACTION)
    action share_pointer() {
        limit = 0;
        is_shared = true;
    }

    // reshuffle_after(0), which is never, and share_pointer are Simple RR's two forms. Otherwise a group owns 16 consecutive
    // schedules, one per order. A shared pointer is that of data: it starts where data does.
    @id(ORDERS_TABLE)
    table orders {
        actions = { reshuffle_after; share_pointer; }
        size = 1;
        default_action = reshuffle_after(0);
    }

    apply {
        orders.apply();
        read_pointer.apply(meta, is_shared ? DATA : meta.packet_class, pointer);
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
