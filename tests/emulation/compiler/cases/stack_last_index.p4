// Types: lastIndex and a computed index of stacks
#define HEADERS data_t data; byte_t[4] bytes;
#define METADATA bit<32> count;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); transition more; }
    state more {
        packet.extract(hdr.bytes.next);
        meta.count = hdr.bytes.lastIndex;
        transition select(hdr.bytes.last.value) {
            0: accept;
            default: more;
        }
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.d = meta.count;
        hdr.data.a = hdr.bytes[meta.count - 1].value;
        hdr.bytes[hdr.data.b].value = 0xff;
    }
}

#include "include/end.p4"
