// What the switches read of a packet, and what they remember about it from ingress to egress.
#ifndef HEADERS_P4
#define HEADERS_P4

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86DD;
const bit<8> VERSION_4_NO_OPTIONS = 0x45;
const bit<8> PROTOCOL_IPIP = 4;
const bit<8> PROTOCOL_UDP = 17;
const bit<2> NOT_ECT = 0;
const bit<2> CE = 3;
const bit<16> ACK_BELOW = 256;
const bit<1> DATA = 0;
const bit<1> ACK = 1;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ethertype;
}

header ipv4_t {
    bit<4> version;
    bit<4> header_words;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

// With micro-segments in the destination, of which `active` is the next to act on.
header ipv6_t {
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    bit<64> source_network;
    bit<64> source_interface;
    bit<32> block;
    bit<16> active;
    bit<16> second;
    bit<16> third;
    bit<16> fourth;
    bit<16> fifth;
    bit<16> sixth;
}

header udp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> length;
    bit<16> checksum;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    @padding bit<7> padding;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    @padding bit<7> padding;
}

// A program may have a header of its own in packets of its own (hosts' --agent-packet): between Ethernet and IPv4, of type
// BEFORE_IPV4 and announced by the ethertype BEFORE_IPV4_TYPE, or of type AFTER_UDP behind UDP headers: those to the port
// AFTER_UDP_PORT, if there is one.
#ifndef AFTER_UDP_PORT
#define AFTER_UDP_PORT _
#endif

// And a header of type EDGE_HEADER that switches put on and take off between edges (between_edges.p4), announced by IEEE
// 802's local experimental EtherType 2. The control Feedback reads it, and EachLink where EACH_LINK is defined.
#if defined(EDGE_HEADER) && (defined(BEFORE_IPV4) || defined(SRV6))
#error "EDGE_HEADER cannot be combined with BEFORE_IPV4 or SRV6: each begins behind Ethernet"
#endif
#ifdef EDGE_HEADER
#define HAS_EDGE_HEADER
const bit<16> ETHERTYPE_EDGE_HEADER = 0x88B6;
const bit<16> NO_EDGE = 0xFFFF;
#endif

// Edges of a program that defines PROBE_INTERVAL_US send probes to all other edges at that interval (probes.p4), announced by
// IEEE 802's other local experimental EtherType.
#if defined(PROBE_INTERVAL_US) && !defined(EDGE_HEADER)
#error "PROBE_INTERVAL_US needs an EDGE_HEADER, which probes carry between edges"
#endif
#if defined(PROBE_INTERVAL_US) && PROBE_INTERVAL_US + 0 < 1
#error "PROBE_INTERVAL_US must be at least 1"
#endif
#ifdef PROBE_INTERVAL_US
#define HAS_PROBES
const bit<16> ETHERTYPE_PROBE = 0x88B5;
// The identification in IPv4 of probes that an edge has answered.
const bit<16> PROBE_ANSWER = 1;
#endif

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
#ifdef HAS_EDGE_HEADER
    EDGE_HEADER edge_header;
#endif
#ifdef BEFORE_IPV4
    BEFORE_IPV4 before_ipv4;
#endif
#ifdef SRV6
    ipv6_t ipv6;
#endif
    ipv4_t ipv4;
    ipv4_t inner_ipv4;
    udp_t udp;
#ifdef AFTER_UDP
    AFTER_UDP after_udp;
#endif
}

// packet_class is DATA or ACK. A northbound packet has a group: the owner of a pointer per class, its schedule of `length`
// slots, and where its two pointers start. queue_bytes is what waits at the output port before this packet, charged_bytes
// what the packet adds there. With an EDGE_HEADER, edges have numbers: this switch's (NO_EDGE at others) and both hosts'. A
// packet may be a probe, or a probe's answer; the control Probe sets `answers` to send a probe back.
struct metadata_t {
    bit<1> packet_class;
    bit<16> group;
    bit<32> schedule;
    bit<16> length;
    bit<16> data_start;
    bit<16> ack_start;
    bit<32> queue_bytes;
    bit<32> charged_bytes;
#ifdef HAS_EDGE_HEADER
    bit<16> edge;
    bit<16> source_edge;
    bit<16> destination_edge;
#endif
#ifdef HAS_PROBES
    bit<32> probe_interval_us;
    bool is_probe;
    bool is_answer;
    bool answers;
#endif
}

#endif
