// Statements: an index of a left value is evaluated once, and before what follows it
#define HEADERS data_t data; data_t[2] items;
#define OWN_PARSER
#include "include/begin.p4"

bit<8> add(inout bit<8> x, in bit<8> by) { x = x + by; return x; }
void into(out bit<8> x, in bit<8> y) { x = y; }
void two(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 16; }
void clear(out data_t item) {}

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(2) cells;
    action join(inout bit<8> x, in bit<8> y) { x = x + y; }
    apply {
        standard.egress_spec = 1;
        bit<8> i = 0xff;
        into(hdr.items[add(i, 1)].a, add(i, 1));
        hdr.items[add(i, 255)].b[7:4] = add(i, 1)[3:0];
        two(hdr.items[i].c[7:0], hdr.items[add(i, 255)].c[7:0]);
        hdr.items[add(i, 1)].d[7:0] = i;
        join(hdr.items[i].d[31:24], add(i, 255) + 7);

        // Of externs as well.
        cells.write((bit<32>) add(i, 1), i + 4);
        cells.read(hdr.items[i].d[23:16], (bit<32>) i);
        cells.read(hdr.items[add(i, 255)].d[23:16], (bit<32>) (i + 1));
        hash(hdr.items[i].d[15:8], HashAlgorithm.identity, add(i, 1), { 8w0 }, add(i, 1));

        // An `out` header starts invalid, also where its index is known at run time only.
        if (hdr.data.a == 1) { i = hdr.data.b; clear(hdr.items[i]); }
    }
}

#include "include/end.p4"
