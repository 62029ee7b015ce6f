// Presto: a flow goes on over the next uplink after each flowcell of 64 KiB, from a start of its own (He et al., SIGCOMM
// 2015). Presto's hosts cut cells and choose whole paths; here every switch counts the bytes of a flow that pass it.
#include "fabric.p4"
#include "flow_hash.p4"

#ifndef CELL_BYTES
#define CELL_BYTES 65536
#endif

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    FlowHash() flow_hash;
    // Bytes of the present cell, and slots that the flow has gone on by. Flows with the same low bits share a cell.
    register<bit<32>>(4096) cell_bytes;
    register<bit<16>>(4096) cells;
    bit<32> digest;
    bit<32> flow;
    bit<32> bytes;
    bit<16> cell;
    bit<32> start;
    bit<16> slot;

    apply {
        flow_hash.apply(headers, digest);
        flow = digest & 0xFFF;
        cell_bytes.read(bytes, flow);
        cells.read(cell, flow);
        bytes = bytes + standard_metadata.packet_length;
        if (bytes > CELL_BYTES) {
            bytes = standard_metadata.packet_length;
            cell = cell + 1;
            cells.write(flow, cell);
        }
        cell_bytes.write(flow, bytes);

        // The high bits choose the start: flows that share a cell still differ.
        start = ((digest >> 16) * (bit<32>) meta.length) >> 16;
        slot = (bit<16>) start + cell;
        if (slot >= meta.length) {
            slot = slot - meta.length;
        }
        if (slot >= meta.length) {
            slot = 0;
            cells.write(flow, meta.length - (bit<16>) start);
        }
        schedule.apply(meta.schedule, slot, standard_metadata);
    }
}

#include "switch.p4"
