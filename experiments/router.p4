// A router of IPv4: the longest prefix leads to a port, the TTL goes down, the checksum follows.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> source; bit<32> destination;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { }

parser Read(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(headers.ipv4); transition accept; }
}

control Check(inout headers_t headers, inout metadata_t meta) { apply { } }

control Route(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() { mark_to_drop(standard_metadata); }
    action forward(bit<9> port, bit<48> neighbour) {
        standard_metadata.egress_spec = port;
        headers.ethernet.destination = neighbour;
        headers.ipv4.ttl = headers.ipv4.ttl - 1;
    }
    table routes {
        key = { headers.ipv4.destination: lpm @name("destination"); }
        actions = { forward; drop; }
        default_action = drop();
    }

    apply {
        if (headers.ipv4.isValid() && headers.ipv4.ttl > 1) { routes.apply(); } else { drop(); }
    }
}

control Leave(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply { } }

control Sum(inout headers_t headers, inout metadata_t meta) {
    apply {
        update_checksum(headers.ipv4.isValid(),
            { headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.tos, headers.ipv4.length, headers.ipv4.id,
              headers.ipv4.flags, headers.ipv4.offset, headers.ipv4.ttl, headers.ipv4.protocol,
              headers.ipv4.source, headers.ipv4.destination },
            headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Write(packet_out packet, in headers_t headers) { apply { packet.emit(headers); } }

V1Switch(Read(), Check(), Route(), Leave(), Sum(), Write()) main;
