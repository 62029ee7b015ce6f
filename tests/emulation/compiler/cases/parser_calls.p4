// Parsers: sub-parsers with parameters, applied twice
#define HEADERS data_t data; data_t first; data_t second;
#define METADATA bit<8> sum;
#define OWN_PARSER
#include "include/begin.p4"

parser Inner(packet_in packet, out data_t into, inout bit<8> sum)(bit<8> extra) {
    state start {
        packet.extract(into);
        sum = sum + into.a + extra;
        transition select(into.b) { 0: accept; default: twice; }
    }
    state twice { sum = sum + into.b; transition accept; }
}

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Inner(1) inner;
    state start {
        packet.extract(hdr.data);
        inner.apply(packet, hdr.first, meta.sum);
        inner.apply(packet, hdr.second, meta.sum);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; hdr.data.a = meta.sum; }
}

#include "include/end.p4"
