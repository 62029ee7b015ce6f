// Parsers: a loop over states that fills a stack, as MPLS labels do
#define HEADERS label_t[4] labels; data_t data;
#define OWN_PARSER
header label_t { bit<20> label; bit<3> class; bit<1> bottom; bit<8> ttl; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) { 0: start; 1: inner; }
    }
    state inner { packet.extract(hdr.data); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.labels[0].ttl = hdr.labels[0].ttl - 1;
        hdr.data.a = hdr.labels[1].isValid() ? 8w2 : 8w1;
        hdr.labels.pop_front(1);
    }
}

#include "include/end.p4"
