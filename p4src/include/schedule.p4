// The port at a slot of a schedule. Weighted load balancing is nothing but longer schedules (paper, appendix F).
#ifndef SCHEDULE_P4
#define SCHEDULE_P4

control Schedule(in bit<32> schedule_id, in bit<16> slot, inout standard_metadata_t standard_metadata) {
    @id(TAKE_PORT_ACTION)
    action take_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    @id(NO_SLOT_ACTION)
    action no_slot() {
        mark_to_drop(standard_metadata);
    }

    @id(SCHEDULE_TABLE)
    table schedule {
        key = {
            schedule_id: exact @name("schedule");
            slot: exact @name("slot");
        }
        actions = { take_port; @defaultonly no_slot; }
        size = MAX_SLOTS;
        const default_action = no_slot();
    }

    apply {
        schedule.apply();
    }
}

#endif
