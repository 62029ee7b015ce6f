// Marks Congestion Experienced on data packets that find more than a threshold waiting at their output port, or, between
// two bounds, with a chance that grows with what waits.
#ifndef ECN_P4
#define ECN_P4

control Ecn(inout headers_t headers, inout metadata_t meta) {
    bit<32> threshold;
    bit<32> full;
    bit<32> chance_per_byte;
    bit<64> chance;
    bit<16> draw;

    // A threshold of 0 switches marking off.
    @id(MARK_ABOVE_ACTION)
    action mark_above(bit<32> bytes) {
        threshold = bytes;
        full = bytes;
        chance_per_byte = 0;
    }

    // All above `most` bytes are marked, and from `least` on so many in 2 to the 32 for each byte more.
    @id(MARK_BETWEEN_ACTION)
    action mark_between(bit<32> least, bit<32> most, bit<32> slope) {
        threshold = least;
        full = most;
        chance_per_byte = slope;
    }

    @id(ECN_TABLE)
    table ecn {
        actions = { mark_above; mark_between; }
        size = 1;
        default_action = mark_above(0);
    }

    apply {
        ecn.apply();
        if (threshold != 0 && meta.queue_bytes > threshold) {
            if (meta.packet_class == DATA && headers.ipv4.isValid() && headers.ipv4.ecn != NOT_ECT &&
                headers.ipv4.ecn != CE) {
                if (meta.queue_bytes > full) {
                    headers.ipv4.ecn = CE;
                } else {
                    random(draw, 16w0, 16w0xFFFF);
                    chance = ((bit<64>) (meta.queue_bytes - threshold) * (bit<64>) chance_per_byte) >> 16;
                    if ((bit<64>) draw < chance) {
                        headers.ipv4.ecn = CE;
                    }
                }
            }
        }
    }
}

#endif
