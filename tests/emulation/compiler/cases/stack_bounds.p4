// Types: computed indices beyond the end of a stack
#define HEADERS data_t data; byte_t[3] bytes;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.bytes.next);
        packet.extract(hdr.bytes.next);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.bytes[hdr.data.a].isValid()) { hdr.data.b = 1; }
        hdr.bytes[hdr.data.a].value = 0xee;
        if (hdr.data.c == 1) { hdr.bytes[(int<8>) hdr.data.a].setInvalid(); }
        if (hdr.data.c == 2) { bit<8> unused = hdr.bytes[hdr.data.a].value; }
        if (hdr.data.c == 3) { hdr.bytes[hdr.data.a] = hdr.bytes[1]; }
    }
}

#include "include/end.p4"
