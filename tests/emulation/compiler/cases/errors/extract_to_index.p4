// Parsers: extraction to a computed element of a stack
#define HEADERS data_t data; data_t[2] more;
#define OWN_PARSER
#include "../include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); packet.extract(hdr.more[hdr.data.a]); transition accept; }  // error: the target extracts to named headers and to 'next' of a stack only
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
