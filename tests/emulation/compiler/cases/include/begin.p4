// What every language case starts with: one header of eight bytes, and metadata to play with.
#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8> a;
    bit<8> b;
    bit<16> c;
    bit<32> d;
}

#ifndef HEADERS
#define HEADERS data_t data;
#endif

#ifndef METADATA
#define METADATA bit<8> unused;
#endif

struct headers_t { HEADERS }
struct metadata_t { METADATA }

#ifndef OWN_PARSER
parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}
#endif
