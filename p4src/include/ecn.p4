// Marks Congestion Experienced on data packets that find more than a threshold waiting at their output port.
#ifndef ECN_P4
#define ECN_P4

control Ecn(inout headers_t headers, inout metadata_t meta) {
    bit<32> threshold;

    @id(MARK_ABOVE_ACTION)
    action mark_above(bit<32> bytes) {
        threshold = bytes;
    }

    // A threshold of 0 switches marking off.
    @id(ECN_TABLE)
    table ecn {
        actions = { mark_above; }
        size = 1;
        default_action = mark_above(0);
    }

    apply {
        ecn.apply();
        if (threshold != 0 && meta.queue_bytes > threshold) {
            if (meta.packet_class == DATA && headers.ipv4.isValid() && headers.ipv4.ecn != NOT_ECT) {
                headers.ipv4.ecn = CE;
            }
        }
    }
}

#endif
