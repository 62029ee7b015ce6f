// Architecture: reads and writes of invalid headers have no effect on the packet
#define HEADERS data_t data; data_t absent;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.absent.a = 0x77;
        hdr.data.b = hdr.absent.isValid() ? 8w1 : 8w0;
        hdr.absent.setInvalid();
        hdr.data.setValid();
    }
}

#include "include/end.p4"
