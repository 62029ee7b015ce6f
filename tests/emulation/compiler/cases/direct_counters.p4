// Architecture: direct counters count per entry
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action set() { hits.count(); }
    table rules {
        key = { hdr.data.a: exact; }
        actions = { set; NoAction; }
        counters = hits;
    }
    apply { standard.egress_spec = 1; rules.apply(); }
}

#include "include/end.p4"
