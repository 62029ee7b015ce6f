// A program's own header between edges, of type EDGE_HEADER: the source's edge puts it behind Ethernet, with 0 in all fields,
// and the destination's edge takes it off. So links between switches carry it, and hosts never see it.
#ifndef BETWEEN_EDGES_P4
#define BETWEEN_EDGES_P4

// Edges are numbered pod by pod, as addresses are: 10.pod.edge.host.
control Edges(inout headers_t headers, inout metadata_t meta) {
    // Other switches than edges have the number NO_EDGE.
    @id(SET_EDGE_ACTION)
    action set_edge(bit<16> number, bit<16> edges_per_pod) {
        meta.edge = number;
        meta.source_edge = (bit<16>) headers.ipv4.source[23:16] * edges_per_pod + (bit<16>) headers.ipv4.source[15:8];
        meta.destination_edge =
            (bit<16>) headers.ipv4.destination[23:16] * edges_per_pod + (bit<16>) headers.ipv4.destination[15:8];
    }

    @id(EDGE_NUMBERS_TABLE)
    table edge_numbers {
        actions = { set_edge; }
        size = 1;
        default_action = set_edge(NO_EDGE, 0);
    }

    apply {
        edge_numbers.apply();
    }
}

// Northbound packets come to edges from hosts, which cannot bring a header of their own.
control PutOnEdgeHeader(inout headers_t headers, inout metadata_t meta) {
    apply {
#ifdef HAS_PROBES
        // An answer keeps the header that it has brought.
        if (meta.is_answer) {
            return;
        }
#endif
        if (meta.edge != NO_EDGE) {
            headers.edge_header.setInvalid();
            headers.edge_header.setValid();
            headers.ethernet.ethertype = ETHERTYPE_EDGE_HEADER;
#ifdef HAS_PROBES
            if (meta.is_probe) {
                headers.ethernet.ethertype = ETHERTYPE_PROBE;
            }
#endif
        }
    }
}

// The destination's edge: Feedback reads the header for the last time. Other switches: EachLink, if the program has it.
control PassEdgeHeader(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                       in bool is_northbound) {
    Feedback() feedback;
#ifdef EACH_LINK
    EachLink() each_link;
#endif

    apply {
        if (headers.edge_header.isValid() && standard_metadata.egress_spec != DROP_PORT) {
            if (meta.edge == meta.destination_edge && !is_northbound) {
                feedback.apply(headers, meta, standard_metadata);
                headers.edge_header.setInvalid();
                headers.ethernet.ethertype = ETHERTYPE_IPV4;
            }
#ifdef EACH_LINK
            else {
                each_link.apply(headers, meta, standard_metadata);
            }
#endif
        }
    }
}

#endif
