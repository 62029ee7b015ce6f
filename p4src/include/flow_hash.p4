// The hash of the five-tuple: what all packets of a flow with one label share. Ports that a packet lacks count as 0.
#ifndef FLOW_HASH_P4
#define FLOW_HASH_P4

control FlowHash(inout headers_t headers, out bit<32> digest) {
    bit<16> source_port;
    bit<16> destination_port;

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
    }
}

#endif
