// Weighted round robin: each packet of a group takes the next slot of the group's schedule, which has an uplink as often
// as it weighs (Katevenis, Sidiropoulos and Courcoubetis, JSAC 1991). Data and ACKs have a pointer each.
#include "fabric.p4"
#include "pointer.p4"

control LoadBalancer(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    ReadPointer() read_pointer;
    AdvancePointer() advance_pointer;
    Schedule() schedule;
    pointer_t pointer;

    apply {
        read_pointer.apply(meta, meta.packet_class, pointer);
        advance_pointer.apply(meta, pointer);
        schedule.apply(meta.schedule, pointer.slot, standard_metadata);
    }
}

#include "switch.p4"
