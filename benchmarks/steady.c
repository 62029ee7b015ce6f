/* Two small programs for benchmarks/steady.py, which builds them: cc -O2 -o steady steady.c

   steady forward IN OUT              the plain forwarder: whatever arrives at IN leaves at OUT
   steady traffic OUT IN RATE WINDOW SECONDS FRAME
                                      sends FRAME (hexadecimal) at RATE a second, at most WINDOW of
                                      them under way, and says how long each took, as JSON

   The forwarder has the rings that the switch has (PACKET_MMAP, version 2), sleeps while nothing
   arrives and looks at nothing. What it needs is what Linux needs. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#define FRAME_BYTES 2048
#define BLOCK_BYTES 4096
#define FRAMES 4096
#define BATCH 256
#define BEHIND_HEADER (TPACKET_ALIGN(sizeof(struct tpacket2_hdr)))
#define MOST_SENT (1 << 24)

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int opened(void) {
    int sock = socket(AF_PACKET, SOCK_RAW, 0), on = 1;
    if (sock < 0) fail("socket");
    if (setsockopt(sock, SOL_PACKET, 23 /* PACKET_IGNORE_OUTGOING */, &on, sizeof on))
        fail("PACKET_IGNORE_OUTGOING");
    return sock;
}

static void bind_to(int sock, const char *name) {
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    address.sll_ifindex = if_nametoindex(name);
    if (bind(sock, (struct sockaddr *)&address, sizeof address)) fail(name);
}

static char *ring(int sock, int kind) {
    int version = TPACKET_V2, on = 1, room = 1 << 18;
    struct tpacket_req wanted = {BLOCK_BYTES, FRAMES * FRAME_BYTES / BLOCK_BYTES, FRAME_BYTES, FRAMES};
    if (setsockopt(sock, SOL_PACKET, PACKET_VERSION, &version, sizeof version)) fail("version");
    /* As the switch has them: a frame that cannot be sent is skipped; so much waits at most. */
    setsockopt(sock, SOL_PACKET, PACKET_LOSS, &on, sizeof on);
    setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (setsockopt(sock, SOL_PACKET, kind, &wanted, sizeof wanted)) fail("ring");
    char *memory = mmap(0, (size_t)FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sock, 0);
    if (memory == MAP_FAILED) fail("mmap");
    return memory;
}

static void forward(const char *from, const char *to) {
    int in = opened(), out = opened();
    char *received = ring(in, PACKET_RX_RING), *sent = ring(out, PACKET_TX_RING);
    bind_to(in, from);
    bind_to(out, to);
    puts("ready");
    fflush(stdout);
    for (unsigned next = 0, place = 0;;) {
        struct pollfd polled = {in, POLLIN, 0};
        poll(&polled, 1, -1);
        for (int moved = 0; moved < BATCH; moved++) {
            struct tpacket2_hdr *arrived = (void *)(received + (size_t)next * FRAME_BYTES);
            struct tpacket2_hdr *leaves = (void *)(sent + (size_t)place * FRAME_BYTES);
            if (!(__atomic_load_n(&arrived->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
            if (__atomic_load_n(&leaves->tp_status, __ATOMIC_ACQUIRE)) break;
            memcpy((char *)leaves + BEHIND_HEADER, (char *)arrived + arrived->tp_mac, arrived->tp_snaplen);
            leaves->tp_len = arrived->tp_snaplen;
            __atomic_store_n(&leaves->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
            __atomic_store_n(&arrived->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
            next = (next + 1) % FRAMES;
            place = (place + 1) % FRAMES;
        }
        send(out, 0, 0, MSG_DONTWAIT);
    }
}

static int by_size(const void *first, const void *second) {
    int64_t one = *(const int64_t *)first, other = *(const int64_t *)second;
    return (one > other) - (one < other);
}

static int traffic(char **words) {
    int out = opened(), in = opened(), room = 16 << 20;
    double rate = atof(words[2]), seconds = atof(words[4]);
    long window = atol(words[3]), sent = 0, came = 0;
    size_t size = strlen(words[5]) / 2;
    uint8_t frame[FRAME_BYTES], answer[FRAME_BYTES];
    for (size_t i = 0; i < size; i++) sscanf(words[5] + 2 * i, "%2hhx", &frame[i]);

    setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    bind_to(out, words[0]);
    bind_to(in, words[1]);
    int64_t *times = calloc(MOST_SENT, sizeof *times), start = now_ns(), last = start;
    int64_t end = start + (int64_t)(seconds * 1e9);
    for (;;) {
        int64_t now = now_ns(), due = start + (int64_t)(sent / rate * 1e9);
        int is_sending = now < end && sent < MOST_SENT;
        if (is_sending && sent - came < window && now >= due) {
            times[sent] = now;
            if (send(out, frame, size, MSG_DONTWAIT) == (ssize_t)size) sent++;
        }
        while (came < sent && recv(in, answer, sizeof answer, MSG_DONTWAIT) > 0) {
            last = now_ns();
            times[came] = last - times[came];
            came++;
        }
        if (is_sending) {
            /* Sleep where there is time for it, with the rest of it awake, to be punctual. */
            int64_t free_ns = sent - came < window ? due - now_ns() : 200000;
            if (came < sent || free_ns > 50000) {
                struct pollfd polled = {in, POLLIN, 0};
                struct timespec rest = {0, free_ns > 50000 ? free_ns - 50000 : 0};
                ppoll(&polled, 1, &rest, 0);
            }
        } else if (came == sent || now > last + 1000000000LL) {
            break;
        }
    }
    /* Frames keep their order, so that the k-th to come is the k-th that was sent, if none is lost. */
    int is_whole = came == sent && came > 0;
    qsort(times, came, sizeof *times, by_size);
    printf("{\"sent\": %ld, \"received\": %ld, \"wall_s\": %.6f, \"p50_us\": %.3f, \"p99_us\": %.3f}\n", sent,
           came, (last - start) / 1e9, is_whole ? times[came / 2] / 1e3 : -1,
           is_whole ? times[came * 99 / 100] / 1e3 : -1);
    return 0;
}

int main(int count, char **words) {
    if (count == 4 && !strcmp(words[1], "forward")) forward(words[2], words[3]);
    if (count == 8 && !strcmp(words[1], "traffic")) return traffic(words + 2);
    fprintf(stderr, "see the comment at the top of steady.c\n");
    return 2;
}
