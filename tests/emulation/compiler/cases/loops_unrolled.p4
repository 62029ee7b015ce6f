// Statements: for loops over a counter known at compile time, with break and continue
#define HEADERS data_t data; byte_t[4] bytes;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        for (bit<8> i = 0; i < 4; i += 1) { packet.extract(hdr.bytes.next); }
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> i = 0; i < 4; i = i + 1) {
            if (hdr.bytes[i].value == 0) { continue; }
            if (hdr.bytes[i].value == 0xff) { break; }
            hdr.data.a = hdr.data.a + hdr.bytes[i].value;
        }
    }
}

#include "include/end.p4"
