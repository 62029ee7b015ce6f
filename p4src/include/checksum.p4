// The IPv4 header checksum: verified on arrival (both headers of a tunnelled packet), written anew on departure.
#ifndef CHECKSUM_P4
#define CHECKSUM_P4

#define CHECKED_FIELDS(H) { H.version, H.header_words, H.dscp, H.ecn, H.total_length, H.identification, \
    H.flags, H.fragment_offset, H.ttl, H.protocol, H.source, H.destination }

control SwitchVerifyChecksum(inout headers_t headers, inout metadata_t meta) {
    apply {
        verify_checksum(headers.ipv4.isValid(), CHECKED_FIELDS(headers.ipv4), headers.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum(headers.inner_ipv4.isValid(), CHECKED_FIELDS(headers.inner_ipv4), headers.inner_ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

control SwitchComputeChecksum(inout headers_t headers, inout metadata_t meta) {
    apply {
        update_checksum(headers.ipv4.isValid(), CHECKED_FIELDS(headers.ipv4), headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

#endif
