// What programs do at the edges: overflow, division, misses, short packets, shifts, indices beyond the end.
#include <core.p4>
#include <v1model.p4>

header in_t { bit<8> op; bit<8> a; bit<8> b; bit<16> wide; int<8> sign; }
struct headers_t { in_t h; }
struct metadata_t { bit<8> found; }

parser P(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(headers.h); transition accept; }
}
control Check(inout headers_t headers, inout metadata_t meta) { apply { } }
control Refresh(inout headers_t headers, inout metadata_t meta) { apply { } }

control In(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(4) cells;
    meter(2, MeterType.bytes) rates;
    action found(bit<8> value) { meta.found = value; }
    table lookup { key = { headers.h.a : exact; } actions = { found; NoAction; } default_action = NoAction; }
    apply {
        standard.egress_spec = 2;
        if (!headers.h.isValid()) { standard.egress_spec = 3; exit; }
        bit<8> cell = 7;
        if (headers.h.op == 1) { headers.h.a = headers.h.a + headers.h.b; }
        else if (headers.h.op == 2) { headers.h.a = headers.h.a - headers.h.b; }
        else if (headers.h.op == 3) { headers.h.a = headers.h.a |+| headers.h.b; headers.h.b = headers.h.b |-| 100; }
        else if (headers.h.op == 4) { headers.h.wide = headers.h.wide << headers.h.a; headers.h.sign = headers.h.sign >> headers.h.b; }
        else if (headers.h.op == 5) { cells.read(cell, (bit<32>) headers.h.a); headers.h.b = cell; }
        else if (headers.h.op == 6) {
            cells.read(cell, (bit<32>) headers.h.a);
            cells.write((bit<32>) headers.h.a, cell + 200);
            headers.h.b = cell;
        }
        else if (headers.h.op == 7) { meta.found = 9; lookup.apply(); headers.h.b = meta.found; }
        else if (headers.h.op == 8) { headers.h.sign = -headers.h.sign; headers.h.wide = headers.h.wide * 257; }
        else if (headers.h.op == 9) { random(headers.h.a, headers.h.b, headers.h.b); }
        else if (headers.h.op == 11) { rates.execute_meter((bit<32>) headers.h.a, headers.h.b); }
        else if (headers.h.op == 12) { headers.h.a = (1w0 ++ (bit<32>) headers.h.b == 33w5) ? 8w1 : 8w2; }
        else if (headers.h.op == 13) { headers.h.a = (headers.h.sign >> 3) < 0 ? 8w1 : 8w2; }
        else if (headers.h.op == 10) { hash(headers.h.wide, HashAlgorithm.crc16, (bit<16>) headers.h.a, { headers.h.b }, (bit<16>) headers.h.a); }
    }
}
control Out(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control Emit(packet_out packet, in headers_t headers) { apply { packet.emit(headers.h); } }
V1Switch(P(), Check(), In(), Out(), Refresh(), Emit()) main;
