// How many bytes wait at every output port, in one register that ingress and egress share.
#ifndef QUEUE_STATS_P4
#define QUEUE_STATS_P4

@id(QUEUE_BYTES_REGISTER)
register<bit<32>>(MAX_PORTS) queue_bytes;

control Enqueue(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        meta.charged_bytes = standard_metadata.packet_length;
        queue_bytes.read(meta.queue_bytes, (bit<32>) standard_metadata.egress_spec);
        queue_bytes.write((bit<32>) standard_metadata.egress_spec, meta.queue_bytes + meta.charged_bytes);
    }
}

// A tail drop never comes here, so its bytes would stay for ever: an empty queue sets them right.
control Dequeue(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> waiting;

    apply {
        waiting = 0;
        if (standard_metadata.deq_qdepth != 0) {
            queue_bytes.read(waiting, (bit<32>) standard_metadata.egress_port);
            waiting = waiting - meta.charged_bytes;
        }
        queue_bytes.write((bit<32>) standard_metadata.egress_port, waiting);
    }
}

#endif
