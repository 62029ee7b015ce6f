// ECMP: a hash of the five-tuple picks the slot, so that all packets with one flow label take one path.
#include "include/fabric.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    bit<16> source_port;
    bit<16> destination_port;
    bit<32> digest;
    bit<32> multiplier;
    bit<16> slot;

    @id(MULTIPLY_BY_ACTION)
    action multiply_by(bit<32> odd) {
        multiplier = odd;
    }

    // Each switch has a multiplier of its own: salting the CRC would be linear and leave most paths unused.
    @id(HASHING_TABLE)
    table hashing {
        actions = { multiply_by; }
        size = 1;
        default_action = multiply_by(1);
    }

    apply {
        source_port = 0;
        destination_port = 0;
        if (headers.udp.isValid()) {
            source_port = headers.udp.source_port;
            destination_port = headers.udp.destination_port;
        }
        hash(digest, HashAlgorithm.crc32, 32w0,
             { headers.ipv4.source, headers.ipv4.destination, headers.ipv4.protocol, source_port, destination_port },
             64w0x100000000);
        hashing.apply();
        slot = (bit<16>) ((((digest * multiplier) >> 16) * (bit<32>) meta.length) >> 16);
        schedule.apply(meta.schedule, slot, standard_metadata);
    }
}

#include "include/switch.p4"
