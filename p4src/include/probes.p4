// Probes: small packets that each edge sends to all other edges, as packet-outs for the CPU port: its timer, or the controller in
// place of a timer. LoadBalancer chooses their ports, EachLink is applied to them at each link, and the control Probe at the edge
// where they end. Hosts never see them.
#ifndef PROBES_P4
#define PROBES_P4

// Where a packet is a probe: at its destination's edge it is taken, or turns back as an answer, with its header as it is.
control TakeProbe(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                  out bool is_taken) {
    Probe() probe;
    bit<32> address;

    // Where networks find the interval of a compiled program.
    @id(EVERY_ACTION)
    action every(bit<32> interval_us) {
        meta.probe_interval_us = interval_us;
    }

    @id(PROBE_TIMER_TABLE)
    table probe_timer {
        actions = { every; }
        size = 1;
        default_action = every(PROBE_INTERVAL_US);
    }

    apply {
        is_taken = false;
        // Edges get probes only where they end: a host cannot send one on.
        if (headers.edge_header.isValid() && headers.ethernet.ethertype == ETHERTYPE_PROBE &&
            (meta.edge == NO_EDGE || meta.edge == meta.destination_edge)) {
            meta.is_probe = true;
        }
        if (meta.is_probe) {
            probe_timer.apply();
            meta.is_answer = headers.ipv4.identification == PROBE_ANSWER;
            if (meta.edge == meta.destination_edge) {
                probe.apply(headers, meta, standard_metadata);
                if (meta.answers && !meta.is_answer) {
                    headers.ipv4.identification = PROBE_ANSWER;
                    meta.is_answer = true;
                    address = headers.ipv4.source;
                    headers.ipv4.source = headers.ipv4.destination;
                    headers.ipv4.destination = address;
                    meta.destination_edge = meta.source_edge;
                    meta.source_edge = meta.edge;
                } else {
                    mark_to_drop(standard_metadata);
                    is_taken = true;
                }
            }
        }
    }
}

#endif
