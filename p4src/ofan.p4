// Ofan: every (destination edge or pod, class) walks its schedule with a pointer of its own, from a random start.
#include "include/fabric.p4"
#include "include/pointer.p4"

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

#include "include/switch.p4"
