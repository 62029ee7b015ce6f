// A number that falls with its age: in proportion to the time, to 0 after 2^shift microseconds.
#ifndef AGING_P4
#define AGING_P4

control Age(in bit<32> fresh, in bit<48> age_us, in bit<8> shift, out bit<32> aged) {
    apply {
        aged = 0;
        if (age_us >> shift == 0) {
            aged = fresh - (bit<32>) (((bit<64>) fresh * (bit<64>) age_us) >> shift);
        }
    }
}

#endif
