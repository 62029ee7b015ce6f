// An access list over the five-tuple, for benchmarks of ternary tables.
#include <core.p4>
#include <v1model.p4>

header tuple_t { bit<32> source; bit<32> destination; bit<8> protocol; bit<16> source_port; bit<16> destination_port; bit<8> rest; }
struct headers_t { tuple_t five; }
struct metadata_t { }

parser AclParser(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(headers.five); transition accept; }
}
control Verify(inout headers_t headers, inout metadata_t meta) { apply { } }
control Acl(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    action permit(bit<9> port) { standard.egress_spec = port; }
    action deny() { mark_to_drop(standard); }
    table acl {
        key = {
            headers.five.source: ternary; headers.five.destination: ternary; headers.five.protocol: ternary;
            headers.five.source_port: ternary; headers.five.destination_port: ternary;
        }
        actions = { permit; deny; }
        size = 65536;
        default_action = permit(1);
    }
    apply { acl.apply(); }
}
control NoEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control Update(inout headers_t headers, inout metadata_t meta) { apply { } }
control AclDeparser(packet_out packet, in headers_t headers) { apply { packet.emit(headers.five); } }

V1Switch(AclParser(), Verify(), Acl(), NoEgress(), Update(), AclDeparser()) main;
