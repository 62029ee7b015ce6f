// PRIME: the flow label (UDP source port) has a part for each tier, which names the slot there. The edge looks at the
// lower byte, the agg at the upper one. What has no UDP counts as label 0.
#include "include/fabric.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    bit<16> label;
    bit<16> part;
    bit<16> slot;

    @id(SKIP_BITS_ACTION)
    action skip_bits(bit<8> bits) {
        part = (label >> bits) & 0xFF;
    }

    @id(PARTS_TABLE)
    table parts {
        actions = { skip_bits; }
        size = 1;
        default_action = skip_bits(0);
    }

    apply {
        label = 0;
        if (headers.udp.isValid()) {
            label = headers.udp.source_port;
        }
        parts.apply();
        // The target's only modulo at run time is that of hash().
        hash(slot, HashAlgorithm.identity, 16w0, { part }, meta.length);
        schedule.apply(meta.schedule, slot, standard_metadata);
    }
}

#include "include/switch.p4"
