// Micro-segments in an IPv6 destination (SRv6, RFC 9800, NEXT-C-SID): block and active segment say what to do, an adjacency
// (End.X) moves the others up by 16 bits, the last one takes the outer header off (End.DT4).
#ifndef SEGMENTS_P4
#define SEGMENTS_P4

control Segments(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<2> outer_ecn;

    @id(CROSS_ACTION)
    action cross(bit<9> port) {
        standard_metadata.egress_spec = port;
        headers.ipv6.active = headers.ipv6.second;
        headers.ipv6.second = headers.ipv6.third;
        headers.ipv6.third = headers.ipv6.fourth;
        headers.ipv6.fourth = headers.ipv6.fifth;
        headers.ipv6.fifth = headers.ipv6.sixth;
        headers.ipv6.sixth = 0;
    }

    @id(DECAPSULATE_ACTION)
    action decapsulate() {
        headers.ipv6.setInvalid();
        headers.ethernet.ethertype = ETHERTYPE_IPV4;
    }

    @id(NO_SEGMENT_ACTION)
    action no_segment() {
        mark_to_drop(standard_metadata);
    }

    // Written once: whatever fails, a segment means what it means.
    @id(SEGMENTS_TABLE)
    table segments {
        key = {
            headers.ipv6.block: exact @name("block");
            headers.ipv6.active: exact @name("segment");
        }
        actions = { cross; decapsulate; @defaultonly no_segment; }
        size = MAX_PORTS;
        const default_action = no_segment();
    }

    apply {
        outer_ecn = headers.ipv6.ecn;
        segments.apply();
        if (headers.ipv6.isValid()) {
            meta.packet_class = headers.ipv4.total_length < ACK_BELOW ? ACK : DATA;
            if (headers.ipv6.hop_limit < 2) {
                mark_to_drop(standard_metadata);
            } else {
                headers.ipv6.hop_limit = headers.ipv6.hop_limit - 1;
            }
        } else if (outer_ecn == CE) {
            // As where Host DR's tunnels end: the mark must survive it (RFC 6040, section 4.2).
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
