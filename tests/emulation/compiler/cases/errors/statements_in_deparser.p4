// Architecture: conditions in the deparser
#define OWN_DEPARSER
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        if (hdr.data.a == 1) {  // error: the target allows only calls of emit() here
            packet.emit(hdr.data);
        }
    }
}

#include "../include/end.p4"
