// Types: enums with an underlying type, in headers and select
#define HEADERS kind_t kind;
#define OWN_PARSER
enum bit<8> Kind { One = 1, Two = 2, Many = 0x10 }
header kind_t { Kind kind; bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            Kind.One: accept;
            Kind.Two: two;
            default: other;
        }
    }
    state two { hdr.kind.value = 0x22; transition accept; }
    state other { hdr.kind.value = 0xff; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.kind.kind == Kind.One) { hdr.kind.kind = Kind.Many; }
        else if (hdr.kind.kind == Kind.Two) { hdr.kind.kind = (Kind) (bit<8>) 7; }
        else { hdr.kind.value = (bit<8>) hdr.kind.kind + 1; }
    }
}

#include "include/end.p4"
