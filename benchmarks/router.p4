// A plain IPv4 router, for benchmarks: longest prefix, new MAC addresses, TTL, checksum.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> ethertype; }
header ipv4_t {
    bit<4> version; bit<4> header_words; bit<8> tos; bit<16> total_length;
    bit<16> identification; bit<3> flags; bit<13> fragment_offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> source; bit<32> destination;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { }

parser RouterParser(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(headers.ipv4); transition accept; }
}

control Verify(inout headers_t headers, inout metadata_t meta) {
    apply {
        verify_checksum(headers.ipv4.isValid(),
            { headers.ipv4.version, headers.ipv4.header_words, headers.ipv4.tos, headers.ipv4.total_length,
              headers.ipv4.identification, headers.ipv4.flags, headers.ipv4.fragment_offset,
              headers.ipv4.ttl, headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination },
            headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Router(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action next_hop(bit<9> port, bit<48> source, bit<48> destination) {
        standard.egress_spec = port;
        headers.ethernet.source = source;
        headers.ethernet.destination = destination;
        headers.ipv4.ttl = headers.ipv4.ttl - 1;
    }
    table routes {
        key = { headers.ipv4.destination: lpm @name("destination"); }
        actions = { next_hop; drop; }
        size = 65536;
        const default_action = drop();
    }
    apply {
        if (headers.ipv4.isValid() && headers.ipv4.ttl > 1 && standard.checksum_error == 0) { routes.apply(); } else { drop(); }
    }
}

control NoEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control Update(inout headers_t headers, inout metadata_t meta) {
    apply {
        update_checksum(headers.ipv4.isValid(),
            { headers.ipv4.version, headers.ipv4.header_words, headers.ipv4.tos, headers.ipv4.total_length,
              headers.ipv4.identification, headers.ipv4.flags, headers.ipv4.fragment_offset,
              headers.ipv4.ttl, headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination },
            headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t headers) {
    apply { packet.emit(headers.ethernet); packet.emit(headers.ipv4); }
}

V1Switch(RouterParser(), Verify(), Router(), NoEgress(), Update(), RouterDeparser()) main;
