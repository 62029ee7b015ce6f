// Types: bool fields of headers
#define HEADERS flags_t flags;
#define OWN_PARSER
header flags_t { bool first; bool second; bit<6> rest; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.flags); transition select(hdr.flags.first) { true: accept; false: accept; } }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.flags.first && !hdr.flags.second) { hdr.flags.rest = 1; }
        bool old = hdr.flags.first;
        hdr.flags.first = hdr.flags.second;
        hdr.flags.second = old;
        if (hdr.flags.first == hdr.flags.second) { hdr.flags.rest = 63; }
    }
}

#include "include/end.p4"
