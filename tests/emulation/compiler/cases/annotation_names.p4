// Annotations: @name of tables, actions, keys and parameters
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @name("put") action set(@name("what") bit<8> value) { hdr.data.b = value; }
    @name("known") table rules {
        key = { hdr.data.a: exact @name("first"); }
        actions = { set; NoAction; }
    }
    @name(".outside") table more {
        key = { hdr.data.a: exact; }
        actions = { @name("again") set; NoAction; }
    }
    apply { standard.egress_spec = 1; rules.apply(); more.apply(); }
}

#include "include/end.p4"
