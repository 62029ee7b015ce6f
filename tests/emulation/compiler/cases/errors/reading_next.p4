// Types: reading `next` of a stack
#define HEADERS data_t data; data_t[2] more;
#define OWN_PARSER
#include "../include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        hdr.data.a = hdr.more.next.a;  // error: the target cannot reach this field
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
