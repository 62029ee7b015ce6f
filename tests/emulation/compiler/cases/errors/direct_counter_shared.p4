// Architecture: a direct counter of two tables
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets) hits;
    table first { key = { hdr.data.a: exact; } actions = { NoAction; } counters = hits; }
    table second { key = { hdr.data.a: exact; } actions = { NoAction; } counters = hits; }  // error: 'CaseIngress.hits' is attached to two tables
    apply {
        first.apply();
        second.apply();
    }
}

#include "../include/end.p4"
