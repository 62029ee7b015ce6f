// One pointer per (group, class): where the next packet of the class takes its slot. It starts where the group says and
// survives a change of schedule; beyond the end of a new schedule it restarts at 0.
#ifndef POINTER_P4
#define POINTER_P4

// A cell holds the slot + 1, so that 0 means "never used".
@id(POINTERS_REGISTER)
register<bit<16>>(MAX_POINTERS) pointers;

struct pointer_t {
    bit<32> cell;
    bool is_fresh;
    bit<16> slot;
    bool has_wrapped;
}

control ReadPointer(inout metadata_t meta, in bit<1> packet_class, out pointer_t pointer) {
    bit<16> stored;

    apply {
        pointer.cell = (bit<32>) (meta.group ++ packet_class);
        pointers.read(stored, pointer.cell);
        pointer.is_fresh = stored == 0;
        if (stored == 0) {
            if (packet_class == ACK) {
                pointer.slot = meta.ack_start;
            } else {
                pointer.slot = meta.data_start;
            }
        } else if (stored > meta.length) {
            pointer.slot = 0;
        } else {
            pointer.slot = stored - 1;
        }
    }
}

control AdvancePointer(inout metadata_t meta, inout pointer_t pointer) {
    bit<16> following;

    apply {
        following = pointer.slot + 1;
        pointer.has_wrapped = following == meta.length;
        if (pointer.has_wrapped) {
            following = 0;
        }
        pointers.write(pointer.cell, following + 1);
    }
}

#endif
