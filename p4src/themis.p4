// Themis: a flow's packets take its paths in turn, by their own numbers (PSN), so that no switch remembers anything. A path
// is a number of two digits: the edge looks at the lower one, the agg at the upper one. What has no PSN counts as number 0.
header bth_t {
    bit<8> opcode;
    bit<8> flags;
    bit<16> partition;
    bit<32> queue_pair;
    bit<8> ack_request;
    bit<24> psn;
}

// RoCEv2's transport header.
#define AFTER_UDP bth_t
#define AFTER_UDP_PORT 4791
#include "include/fabric.p4"
#include "include/flow_hash.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    FlowHash() flow_hash;
    Schedule() schedule;
    bit<32> digest;
    bit<24> path;
    bit<64> reciprocal;
    bit<32> digit;
    bit<16> slot;

    @id(DIVIDE_BY_ACTION)
    action divide_by(bit<64> scaled_reciprocal) {
        reciprocal = scaled_reciprocal;
    }

    // The target cannot divide: 2^40 over the divisor, rounded up, gives the exact quotient of 24 bits by up to 16.
    @id(DIGITS_TABLE)
    table digits {
        actions = { divide_by; }
        size = 1;
        default_action = divide_by(0x10000000000);
    }

    apply {
        flow_hash.apply(headers, digest);
        path = digest[31:8];
        if (headers.after_udp.isValid()) {
            path = path + headers.after_udp.psn;
        }
        digits.apply();
        digit = (bit<32>) (((bit<64>) path * reciprocal) >> 40);
        // The target's only modulo at run time is that of hash().
        hash(slot, HashAlgorithm.identity, 16w0, { digit }, meta.length);
        schedule.apply(meta.schedule, slot, standard_metadata);
    }
}

#include "include/switch.p4"
