// How large a fabric the programs are built for. Give MAX_UPLINKS with -D (2, 4, 8, 16, 32 or 64 uplinks a switch: k / 2
// in a fat-tree), and MAX_ROUTES where a switch has more routes than in a fat-tree with so many uplinks.
#ifndef SIZES_P4
#define SIZES_P4

#ifndef MAX_UPLINKS
#define MAX_UPLINKS 8
#endif

#if MAX_UPLINKS != 2 && MAX_UPLINKS != 4 && MAX_UPLINKS != 8 && MAX_UPLINKS != 16 && MAX_UPLINKS != 32 && MAX_UPLINKS != 64
#error "MAX_UPLINKS must be 2, 4, 8, 16, 32 or 64"
#endif

// A fat-tree with that many uplinks a switch has 2 * MAX_UPLINKS^2 edges. Schedules: 16 orders each, old and new ones.
#ifndef MAX_ROUTES
#define MAX_ROUTES (4 * MAX_UPLINKS * MAX_UPLINKS)
#endif
#define MAX_PORTS 512
#define MAX_POINTERS MAX_ROUTES
#define MAX_SCHEDULES (16 * MAX_ROUTES)
#define MAX_SLOTS (32768 * MAX_UPLINKS)

// The priorities of packet-outs and of ACKs. More than 0 only for switches with more queues than one: others would drop them.
#ifndef CONTROL_PRIORITY
#define CONTROL_PRIORITY 0
#endif
#ifndef ACK_PRIORITY
#define ACK_PRIORITY 0
#endif

const bit<9> CPU_PORT = 510;
const bit<9> DROP_PORT = 511;

// EACH_UPLINK(STEP) writes STEP(0) STEP(1) ... STEP(MAX_UPLINKS - 1): the target has no loops.
#define EACH_UPLINK(STEP) EACH_UP_TO(MAX_UPLINKS, STEP)
#define EACH_UP_TO(N, STEP) EACH_OF(N, STEP)
#define EACH_OF(N, STEP) EACH_##N(STEP)
#define EACH_2(STEP) STEP(0) STEP(1)
#define EACH_4(STEP) EACH_2(STEP) STEP(2) STEP(3)
#define EACH_8(STEP) EACH_4(STEP) STEP(4) STEP(5) STEP(6) STEP(7)
#define EACH_16(STEP) EACH_8(STEP) STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
#define EACH_32(STEP) EACH_16(STEP) \
    STEP(16) STEP(17) STEP(18) STEP(19) STEP(20) STEP(21) STEP(22) STEP(23) \
    STEP(24) STEP(25) STEP(26) STEP(27) STEP(28) STEP(29) STEP(30) STEP(31)
#define EACH_64(STEP) EACH_32(STEP) \
    STEP(32) STEP(33) STEP(34) STEP(35) STEP(36) STEP(37) STEP(38) STEP(39) \
    STEP(40) STEP(41) STEP(42) STEP(43) STEP(44) STEP(45) STEP(46) STEP(47) \
    STEP(48) STEP(49) STEP(50) STEP(51) STEP(52) STEP(53) STEP(54) STEP(55) \
    STEP(56) STEP(57) STEP(58) STEP(59) STEP(60) STEP(61) STEP(62) STEP(63)

#endif
