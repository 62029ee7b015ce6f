// Expressions: operands are evaluated once and from left to right
#define HEADERS data_t data; byte_t[4] cells;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.cells.next);
        packet.extract(hdr.cells.next);
        packet.extract(hdr.cells.next);
        packet.extract(hdr.cells.next);
        transition accept;
    }
}

bit<8> next(inout bit<8> n) {
    n = n + 1;
    return n - 1;
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.cells[next(hdr.data.a) & 3].value += 0x10;
        hdr.cells[next(hdr.data.a) & 3].value = hdr.data.a;
        bit<8> n = 1;
        hdr.data.b = n + next(n) + n;
        hdr.data.c = next(n) ++ next(n);
        hdr.data.d = (bit<32>) (next(n) < 5 ? next(n) : n);
    }
}

#include "include/end.p4"
