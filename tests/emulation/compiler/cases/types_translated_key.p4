// Types: `type` with @p4runtime_translation as table key and action parameter
@p4runtime_translation("example.org/port", 32)
type bit<8> Port;
#define HEADERS hop_t hop;
#define OWN_PARSER
header hop_t { Port port; bit<8> next; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.hop); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(Port port) { hdr.hop.port = port; }
    table hops {
        key = { hdr.hop.port: exact @name("port"); }
        actions = { set; NoAction; }
    }
    apply {
        standard.egress_spec = 1;
        hops.apply();
        if (hdr.hop.port == (Port) (bit<8>) 9) { hdr.hop.next = 1; }
    }
}

#include "include/end.p4"
