// Tables: a field of a header that is not valid is 0 in a key, as on BMv2
#define HEADERS data_t data; more_t more;
#define OWN_PARSER
header more_t { bit<8> a; bit<8> b; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); packet.extract(hdr.more); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action mark(bit<8> value) { hdr.data.b = value; }
    table exactly { key = { hdr.more.a: exact; } actions = { mark; NoAction; } }
    table prefixes { key = { hdr.more.b: lpm; } actions = { mark; NoAction; } }
    table masks { key = { hdr.more.b: ternary; hdr.more.a: exact; } actions = { mark; NoAction; } }
    table spans { key = { hdr.more.b: range; } actions = { mark; NoAction; } }
    apply {
        standard.egress_spec = 1;
        if (hdr.data.c == 0) { hdr.more.setInvalid(); }
        if (hdr.data.a == 1) { exactly.apply(); }
        if (hdr.data.a == 2) { prefixes.apply(); }
        if (hdr.data.a == 3) { masks.apply(); }
        if (hdr.data.a == 4) { spans.apply(); }
    }
}

#include "include/end.p4"
