// Tables: ranges of signed keys, across zero as well, in entries and in select
#define HEADERS data_t data; small_t small;
#define OWN_PARSER
header small_t { int<8> first; int<8> second; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.small);
        transition select(hdr.small.first, hdr.small.second) {
            (-5 .. 4, -128 .. 127): near;
            (-100 .. -90, _): low;
            default: accept;
        }
    }
    state near { hdr.data.a = 1; transition accept; }
    state low { hdr.data.a = 2; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action mark(bit<8> value) { hdr.data.b = value; }
    table ranges {
        key = { hdr.small.first : range; hdr.small.second : range; }
        actions = { mark; }
        const entries = {
            (-2 .. 1, -2 .. 1) : mark(1);
            (-1 .. 100, _) : mark(2);
            (-128 .. -3, -128 .. 127) : mark(3);
        }
        default_action = mark(9);
    }
    apply { standard.egress_spec = 1; ranges.apply(); }
}

#include "include/end.p4"
