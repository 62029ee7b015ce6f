// ECMP: a hash of the five-tuple picks the slot, so that all packets with one flow label take one path.
#include "include/fabric.p4"
#include "include/flow_hash.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    FlowHash() flow_hash;
    Schedule() schedule;
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
        flow_hash.apply(headers, digest);
        hashing.apply();
        slot = (bit<16>) ((((digest * multiplier) >> 16) * (bit<32>) meta.length) >> 16);
        schedule.apply(meta.schedule, slot, standard_metadata);
    }
}

#include "include/switch.p4"
