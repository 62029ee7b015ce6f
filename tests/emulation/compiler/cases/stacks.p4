// Types: header stacks with next and last
#define HEADERS data_t data; byte_t[4] bytes;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        transition next;
    }
    state next {
        packet.extract(hdr.bytes.next);
        transition select(hdr.bytes.last.value) {
            0xff: accept;
            _: next;
        }
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.b = hdr.bytes[1].value;
        hdr.bytes[hdr.data.a].value = 0x77;
        hdr.data.c = (bit<16>) hdr.bytes[hdr.data.a].value;
        hdr.bytes.push_front(1);
        hdr.bytes[0] = { 0x55 };
        hdr.bytes.pop_front(2);
        hdr.data.d = hdr.bytes.size;
    }
}

#include "include/end.p4"
