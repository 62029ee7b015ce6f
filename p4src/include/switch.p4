// The whole switch around a LoadBalancer control, for edge, aggregation and core switches alike: their tables differ.
#ifndef SWITCH_P4
#define SWITCH_P4

#if defined(EDGE_HEADER) && !defined(HAS_EDGE_HEADER)
#error "define EDGE_HEADER before fabric.p4 is included"
#endif
#if defined(EACH_LINK) && !defined(EDGE_HEADER)
#error "EACH_LINK needs an EDGE_HEADER, which the control EachLink changes"
#endif
#if defined(PROBE_INTERVAL_US) && !defined(HAS_PROBES)
#error "define PROBE_INTERVAL_US before fabric.p4 is included"
#endif

#include "parser.p4"
#include "checksum.p4"
#include "waypoint.p4"
#ifdef SRV6
#include "segments.p4"
#endif
#include "routes.p4"
#include "punt.p4"
#ifdef HAS_EDGE_HEADER
#include "between_edges.p4"
#endif
#ifdef HAS_PROBES
#include "probes.p4"
#endif
#include "ecn.p4"

control Forward(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
#ifdef SRV6
    Segments() segments;
#endif
    Waypoint() waypoint;
    Routes() routes;
    LoadBalancer() load_balancer;
#ifdef HAS_EDGE_HEADER
    Edges() edges;
    PutOnEdgeHeader() put_on_edge_header;
    PassEdgeHeader() pass_edge_header;
#endif
#ifdef HAS_PROBES
    TakeProbe() take_probe;
    bool is_taken;
#endif
    bool is_northbound;

    apply {
#ifdef SRV6
        if (headers.ipv6.isValid()) {
            segments.apply(headers, meta, standard_metadata);
            if (headers.ipv6.isValid()) {
                return;
            }
        }
#endif
        if (headers.inner_ipv4.isValid()) {
            waypoint.apply(headers, standard_metadata);
        }
        if (headers.ipv4.ttl < 2) {
            mark_to_drop(standard_metadata);
        } else {
            headers.ipv4.ttl = headers.ipv4.ttl - 1;
            // Of the host's own packet, whatever it is in: with its outer header it may have some bytes more.
            if (headers.inner_ipv4.isValid()) {
                meta.packet_class = headers.inner_ipv4.total_length < ACK_BELOW ? ACK : DATA;
            } else {
                meta.packet_class = headers.ipv4.total_length < ACK_BELOW ? ACK : DATA;
            }
#ifdef HAS_PROBES
            // Before routes, as a probe may turn back.
            edges.apply(headers, meta);
            take_probe.apply(headers, meta, standard_metadata, is_taken);
            if (is_taken) {
                return;
            }
#endif
            routes.apply(headers, meta, standard_metadata, is_northbound);
#if defined(HAS_EDGE_HEADER) && !defined(HAS_PROBES)
            edges.apply(headers, meta);
#endif
#ifdef HAS_EDGE_HEADER
            if (is_northbound) {
                put_on_edge_header.apply(headers, meta);
            }
#endif
            if (is_northbound) {
                load_balancer.apply(headers, meta, standard_metadata);
            }
#ifdef HAS_EDGE_HEADER
            pass_edge_header.apply(headers, meta, standard_metadata, is_northbound);
#endif
        }
    }
}

control SwitchIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forward;
    Punt() punt;
    Enqueue() enqueue;
    Ecn() ecn;
#ifdef SRV6
    bit<2> inner_ecn;
#endif

    apply {
#ifdef HAS_PROBES
        // A packet-out for the CPU port itself is a probe of this edge: the load balancer chooses its port.
        if (headers.packet_out.isValid() && headers.packet_out.egress_port == CPU_PORT) {
            headers.packet_out.setInvalid();
            meta.is_probe = true;
        }
#endif
        if (headers.packet_out.isValid()) {
            standard_metadata.egress_spec = headers.packet_out.egress_port;
        } else if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            mark_to_drop(standard_metadata);
        } else if (headers.ipv4.isValid()) {
            forward.apply(headers, meta, standard_metadata);
        } else {
            punt.apply(headers, standard_metadata);
        }
        if (headers.packet_out.isValid()) {
            // In a queue of its own, where there is one, and no load to balance.
            standard_metadata.priority = CONTROL_PRIORITY;
        } else if (standard_metadata.egress_spec != DROP_PORT) {
#if ACK_PRIORITY > 0
            if (headers.ipv4.isValid() && meta.packet_class == ACK) {
                standard_metadata.priority = ACK_PRIORITY;
            }
#endif
            enqueue.apply(meta, standard_metadata);
#ifdef SRV6
            // The outer header's mark is what counts, so for a moment it stands where marks are made.
            inner_ecn = headers.ipv4.ecn;
            if (headers.ipv6.isValid()) {
                headers.ipv4.ecn = headers.ipv6.ecn;
            }
#endif
            ecn.apply(headers, meta);
#ifdef SRV6
            if (headers.ipv6.isValid()) {
                headers.ipv6.ecn = headers.ipv4.ecn;
                headers.ipv4.ecn = inner_ecn;
            }
#endif
        }
    }
}

control SwitchEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Dequeue() dequeue;

    apply {
        if (!headers.packet_out.isValid()) {
            dequeue.apply(meta, standard_metadata);
        }
        if (standard_metadata.egress_port == CPU_PORT) {
            headers.packet_in.setValid();
            headers.packet_in.ingress_port = standard_metadata.ingress_port;
            headers.packet_in.padding = 0;
        }
    }
}

V1Switch(SwitchParser(), SwitchVerifyChecksum(), SwitchIngress(), SwitchEgress(), SwitchComputeChecksum(),
         SwitchDeparser()) main;

#endif
