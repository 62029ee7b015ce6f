// Types: enums and `type`
#include "include/begin.p4"

enum Colour { Red, Green, Blue }
enum bit<8> Kind { Ack = 7, Data = 9 }
type bit<8> id_t;
typedef bit<8> byte_t;

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Colour colour = Colour.Green;
    apply {
        standard.egress_spec = 1;
        Kind kind = (Kind) hdr.data.a;
        if (kind == Kind.Ack) { colour = Colour.Blue; }
        id_t id = (id_t) hdr.data.b;
        byte_t plain = (byte_t) id + 1;
        hdr.data.b = plain;
        if (colour == Colour.Blue) { hdr.data.c = (bit<16>) Kind.Data; }
        hdr.data.d = (bit<32>) (bit<8>) kind;
    }
}

#include "include/end.p4"
