// Parsers: varbit headers extracted without a length
#define HEADERS some_t some; data_t data;
#define OWN_PARSER
header some_t { bit<8> x; varbit<8> y; }
#include "../include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.some); transition accept; }  // error: header some_t needs the length of its varbit field
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
