// Southbound a destination prefix leads to a port, northbound to a group, whose port the load balancer chooses.
#ifndef ROUTES_P4
#define ROUTES_P4

control Routes(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata,
               out bool is_northbound) {
    @id(DROP_ACTION)
    action drop() {
        mark_to_drop(standard_metadata);
    }

    @id(TO_PORT_ACTION)
    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    @id(TO_GROUP_ACTION)
    action to_group(bit<16> group, bit<32> schedule, bit<16> length, bit<16> data_start, bit<16> ack_start) {
        meta.group = group;
        meta.schedule = schedule;
        meta.length = length;
        meta.data_start = data_start;
        meta.ack_start = ack_start;
        is_northbound = true;
    }

    @id(ROUTES_TABLE)
    table routes {
        key = { headers.ipv4.destination: lpm @name("destination"); }
        actions = { to_port; to_group; drop; }
        size = MAX_ROUTES;
        const default_action = drop();
    }

    apply {
        is_northbound = false;
        routes.apply();
    }
}

#endif
