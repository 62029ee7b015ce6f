// Ethernet, IPv4 without options, one IPv4 inside it, UDP; anything else leaves its headers invalid.
#ifndef PARSER_P4
#define PARSER_P4

parser SwitchParser(packet_in packet, out headers_t headers, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(headers.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_IPV4: check_ipv4;
#ifdef HAS_EDGE_HEADER
            ETHERTYPE_EDGE_HEADER: parse_edge_header;
#endif
#ifdef HAS_PROBES
            ETHERTYPE_PROBE: parse_edge_header;
#endif
#ifdef BEFORE_IPV4
            BEFORE_IPV4_TYPE: parse_before_ipv4;
#endif
#ifdef SRV6
            ETHERTYPE_IPV6: parse_ipv6;
#endif
            default: accept;
        }
    }

#ifdef HAS_EDGE_HEADER
    state parse_edge_header {
        packet.extract(headers.edge_header);
        transition check_ipv4;
    }
#endif

#ifdef BEFORE_IPV4
    state parse_before_ipv4 {
        packet.extract(headers.before_ipv4);
        transition check_ipv4;
    }
#endif

#ifdef SRV6
    state parse_ipv6 {
        packet.extract(headers.ipv6);
        transition select(headers.ipv6.next_header) {
            PROTOCOL_IPIP: check_ipv4;
            default: accept;
        }
    }
#endif

    state check_ipv4 {
        transition select(packet.lookahead<bit<8>>()) {
            VERSION_4_NO_OPTIONS: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.fragment_offset, headers.ipv4.protocol) {
            (0, PROTOCOL_UDP): parse_udp;
            (0, PROTOCOL_IPIP): check_inner_ipv4;
            default: accept;
        }
    }

    state check_inner_ipv4 {
        transition select(packet.lookahead<bit<8>>()) {
            VERSION_4_NO_OPTIONS: parse_inner_ipv4;
            default: accept;
        }
    }

    state parse_inner_ipv4 {
        packet.extract(headers.inner_ipv4);
        transition accept;
    }

    state parse_udp {
        packet.extract(headers.udp);
#ifdef AFTER_UDP
        transition select(headers.udp.destination_port) {
            AFTER_UDP_PORT: parse_after_udp;
            default: accept;
        }
    }

    state parse_after_udp {
        packet.extract(headers.after_udp);
#endif
        transition accept;
    }
}

control SwitchDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.packet_in);
        packet.emit(headers.ethernet);
#ifdef HAS_EDGE_HEADER
        packet.emit(headers.edge_header);
#endif
#ifdef BEFORE_IPV4
        packet.emit(headers.before_ipv4);
#endif
#ifdef SRV6
        packet.emit(headers.ipv6);
#endif
        packet.emit(headers.ipv4);
        packet.emit(headers.inner_ipv4);
        packet.emit(headers.udp);
#ifdef AFTER_UDP
        packet.emit(headers.after_udp);
#endif
    }
}

#endif
