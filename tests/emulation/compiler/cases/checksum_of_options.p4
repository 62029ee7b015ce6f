// Architecture: checksums over fields of variable length, with others behind them
#define OWN_PARSER
#define OWN_VERIFY
#define OWN_COMPUTE
#define OWN_DEPARSER
#define HEADERS data_t data; options_t options; more_t more;
header options_t { bit<4> size; bit<4> kind; varbit<64> options; }
header more_t { bit<8> first; bit<16> sum; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a) {
            0: more;
            default: options;
        }
    }
    state options {
        bit<4> size = packet.lookahead<bit<4>>();
        packet.extract(hdr.options, (bit<32>) (size ++ 3w0));
        transition more;
    }
    state more { packet.extract(hdr.more); transition accept; }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(true, {
            hdr.data.a, hdr.options.size, hdr.options.kind, hdr.options.options,
            hdr.data.c, hdr.more.first }, hdr.more.sum, HashAlgorithm.csum16);
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.b = (bit<8>) standard.checksum_error;
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(true, {
            hdr.data.a, hdr.options.size, hdr.options.kind, hdr.options.options,
            hdr.data.d, hdr.more.first }, hdr.more.sum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

#include "include/end.p4"
