// The best next hop to each edge, after HULA. A probe collects in its header the greatest load of the links that lead back to
// its edge; a switch takes the port by which it came as its next hop to that edge if that load is less than the best hop's, or if
// it came by the best hop, whose load it renews. The program's EDGE_HEADER has the field load, of 8 bits.
#ifndef BEST_HOP_P4
#define BEST_HOP_P4

#include "link_load.p4"

// A best hop without news for so long gives way to any other.
#ifndef HOP_US
#define HOP_US 2
#endif

register<bit<9>>(MAX_ROUTES / 2) best_ports;
register<bit<8>>(MAX_ROUTES / 2) best_loads;
register<bit<48>>(MAX_ROUTES / 2) best_us;

// Reads the port of the best next hop to the edge of the packet's destination, DROP_PORT if there is no news of any.
control ReadHop(inout metadata_t meta, inout standard_metadata_t standard_metadata, out bit<9> port) {
    bit<48> last_us;

    apply {
        best_ports.read(port, (bit<32>) meta.destination_edge);
        best_us.read(last_us, (bit<32>) meta.destination_edge);
        if (port == 0 || standard_metadata.ingress_global_timestamp - last_us > HOP_US) {
            port = DROP_PORT;
        }
    }
}

// At each switch but the first: adds the link back to the header, and learns from it.
control LearnHop(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReadLoad() read_load;
    bit<32> load;
    bit<9> best_port;
    bit<8> best_load;
    bit<48> last_us;

    apply {
        read_load.apply(standard_metadata.ingress_port, standard_metadata, load);
        if (load > (bit<32>) headers.edge_header.load) {
            headers.edge_header.load = (bit<8>) load;
        }
        best_ports.read(best_port, (bit<32>) meta.source_edge);
        best_loads.read(best_load, (bit<32>) meta.source_edge);
        best_us.read(last_us, (bit<32>) meta.source_edge);
        if (best_port == standard_metadata.ingress_port || headers.edge_header.load < best_load || best_port == 0 ||
            standard_metadata.ingress_global_timestamp - last_us > HOP_US) {
            best_ports.write((bit<32>) meta.source_edge, standard_metadata.ingress_port);
            best_loads.write((bit<32>) meta.source_edge, headers.edge_header.load);
            best_us.write((bit<32>) meta.source_edge, standard_metadata.ingress_global_timestamp);
        }
    }
}

#endif
