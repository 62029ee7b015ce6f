// The load of links, as CONGA's discounting rate estimators: each packet adds its bytes, and bytes fade within about
// 2^LOAD_SHIFT microseconds, so that a link at a rate of R has R * 2^LOAD_SHIFT us of them. Waiting bytes are added, as a link
// may be slower than known. The load is a number of steps of 2^STEP_SHIFT bytes, at most 255.
#ifndef LINK_LOAD_P4
#define LINK_LOAD_P4

#include "aging.p4"

#ifndef LOAD_SHIFT
#define LOAD_SHIFT 4
#endif
#ifndef STEP_SHIFT
#define STEP_SHIFT 17
#endif
#define MOST_LOAD 255

register<bit<32>>(MAX_PORTS) sent_bytes;
register<bit<48>>(MAX_PORTS) sent_us;

// Reads the load of the link at a port.
control ReadLoad(in bit<9> port, inout standard_metadata_t standard_metadata, out bit<32> load) {
    Age() age;
    bit<48> last_us;
    bit<32> sent;
    bit<32> waiting;

    apply {
        sent_bytes.read(sent, (bit<32>) port);
        sent_us.read(last_us, (bit<32>) port);
        age.apply(sent, standard_metadata.ingress_global_timestamp - last_us, LOAD_SHIFT, load);
        queue_bytes.read(waiting, (bit<32>) port);
        load = (load + waiting) >> STEP_SHIFT;
        if (load > MOST_LOAD) {
            load = MOST_LOAD;
        }
    }
}

// Adds a packet to the load of the link by which it leaves.
control AddLoad(inout standard_metadata_t standard_metadata) {
    Age() age;
    bit<48> last_us;
    bit<32> sent;
    bit<32> aged;

    apply {
        sent_bytes.read(sent, (bit<32>) standard_metadata.egress_spec);
        sent_us.read(last_us, (bit<32>) standard_metadata.egress_spec);
        age.apply(sent, standard_metadata.ingress_global_timestamp - last_us, LOAD_SHIFT, aged);
        sent_bytes.write((bit<32>) standard_metadata.egress_spec, aged + standard_metadata.packet_length);
        sent_us.write((bit<32>) standard_metadata.egress_spec, standard_metadata.ingress_global_timestamp);
    }
}

#endif
