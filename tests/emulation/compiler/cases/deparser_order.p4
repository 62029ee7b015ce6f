// Architecture: the deparser emits valid headers in its own order
#define HEADERS data_t data; byte_t[2] bytes; byte_t last;
#define OWN_DEPARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.last.setValid();
        hdr.last.value = 0x99;
        hdr.bytes[1].setValid();
        hdr.bytes[1].value = 0x11;
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.last);
        packet.emit(hdr.bytes);
        packet.emit(hdr.data);
    }
}

#include "include/end.p4"
