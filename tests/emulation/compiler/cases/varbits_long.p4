// Types: varbit fields of thousands of bits
#define HEADERS data_t data; options_t options;
#define OWN_PARSER
header options_t { varbit<8032> rest; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.options, (bit<32>) hdr.data.a * 8);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; hdr.data.setInvalid(); }
}

#include "include/end.p4"
