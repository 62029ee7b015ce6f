// Tables: isValid(), bools, enums and errors as keys
enum Colour { Red, Green }
#define HEADERS data_t data; data_t second;
#define METADATA bool flag; Colour colour;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a) { 1: more; default: accept; }
    }
    state more { packet.extract(hdr.second); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table known {
        key = {
            hdr.second.isValid(): exact;
            meta.flag: exact;
            meta.colour: exact;
            standard.parser_error: exact;
        }
        actions = { set; NoAction; }
        const entries = {
            (true, true, Colour.Green, error.NoError): set(1);
            (false, true, Colour.Green, error.NoError): set(2);
            (false, false, Colour.Red, error.NoError): set(3);
            (false, false, Colour.Red, error.PacketTooShort): set(4);
        }
    }
    apply {
        standard.egress_spec = 1;
        meta.flag = hdr.data.c == 1;
        meta.colour = meta.flag ? Colour.Green : Colour.Red;
        known.apply();
    }
}

#include "include/end.p4"
