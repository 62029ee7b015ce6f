// Frames that are not IPv4 (ARP, LLDP, ...) are dropped, unless the controller asks for their Ethernet type.
#ifndef PUNT_P4
#define PUNT_P4

control Punt(inout headers_t headers, inout standard_metadata_t standard_metadata) {
    @id(TO_CONTROLLER_ACTION)
    action to_controller() {
        standard_metadata.egress_spec = CPU_PORT;
    }

    @id(IGNORE_ACTION)
    action ignore() {
        mark_to_drop(standard_metadata);
    }

    @id(PUNT_TABLE)
    table punt {
        key = { headers.ethernet.ethertype: exact @name("ethertype"); }
        actions = { to_controller; @defaultonly ignore; }
        size = 16;
        const default_action = ignore();
    }

    apply {
        punt.apply();
    }
}

#endif
