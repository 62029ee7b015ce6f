// Architecture: direct meters that nothing reads
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_meter<bit<8>>(MeterType.bytes) rate;  // error: direct meter 'CaseIngress.rate' is never read
    table t { key = { hdr.data.a: exact; } actions = { NoAction; } meters = rate; }
    apply { t.apply(); }
}

#include "../include/end.p4"
