// Unwraps a packet whose outer IPv4 header is addressed to this switch (Host DR's source route).
#ifndef WAYPOINT_P4
#define WAYPOINT_P4

control Waypoint(inout headers_t headers, inout standard_metadata_t standard_metadata) {
    @id(UNWRAP_ACTION)
    action unwrap() {
        headers.ipv4 = headers.inner_ipv4;
        headers.inner_ipv4.setInvalid();
    }

    @id(WAYPOINT_TABLE)
    table waypoint {
        key = { headers.ipv4.destination: exact @name("destination"); }
        actions = { unwrap; @defaultonly NoAction; }
        size = 16;
        const default_action = NoAction();
    }

    bit<2> outer_ecn;

    apply {
        outer_ecn = headers.ipv4.ecn;
        // The mark of the outer header must survive it (RFC 6040, section 4.2).
        if (waypoint.apply().hit && outer_ecn == CE) {
            if (headers.ipv4.ecn == NOT_ECT) {
                mark_to_drop(standard_metadata);
                exit;
            } else {
                headers.ipv4.ecn = CE;
            }
        }
    }
}

#endif
