// Statements: arguments are evaluated one after the other, and keep what they were
#define HEADERS data_t data; data_t second; data_t third; data_t[2] items;
#define OWN_PARSER
#include "include/begin.p4"

struct pair_t { bit<8> x; bit<8> y; }

bit<8> add(inout bit<8> x, in bit<8> by) { x = x + by; return x; }
bit<16> both(in bit<8> x, in bit<8> y) { return x ++ y; }
bit<16> joined(in pair_t pair) { return pair.x ++ pair.y; }
void keep(inout bit<8> x, in bit<8> y) { x = x + y; }
void into(out bit<8> x, in bit<8> y) { x = y; }
void two(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 16; }

parser Inner(packet_in packet, out data_t item, in bit<8> before, in bit<8> after) {
    state start {
        packet.extract(item);
        item.c = before ++ after;
        transition accept;
    }
}

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Inner() inner;
    state start {
        packet.extract(hdr.data);
        hdr.data.d[31:16] = both(hdr.data.a, add(hdr.data.a, 1));
        inner.apply(packet, hdr.second, hdr.data.b, add(hdr.data.b, 1));
        packet.extract(hdr.third);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        transition accept;
    }
}

control Joined(inout bit<8> x, in bit<8> y, out bit<16> z) {
    apply {
        z = x ++ y;
        x = x + y;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Joined() joined_control;
    action join(inout bit<8> x, in bit<8> y) { x = x + y; hdr.third.d[31:24] = x; }
    apply {
        standard.egress_spec = 1;
        // 1: the example of the specification.
        keep(hdr.second.a, add(hdr.second.a, 1));
        join(hdr.second.b, add(hdr.second.b, 1));
        joined_control.apply(hdr.third.a, add(hdr.third.a, 1), hdr.third.c);

        // 2: by name, in the order of the text.
        hdr.second.d[31:16] = both(y = add(hdr.third.b, 1), x = hdr.third.b);
        hdr.second.d[15:0] = joined({ y = add(hdr.third.b, 1), x = hdr.third.b });

        // 3: results go back one after the other.
        two(hdr.items[1].a, hdr.items[1].a);
    }
}

#include "include/end.p4"
