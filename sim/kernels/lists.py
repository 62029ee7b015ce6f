"""Lists of packets on links, as they wait for hosts and ports to take them.

All lists share one pool of chunks. A ring a port would need room for the longest queue at each of
k**3 * 5 / 4 ports; chunks need room for the packets there are, and their packets lie side by side
in memory as those of a ring would.
"""

import numpy as np
from numba.extending import overload

from sim.kernels.jit import INLINED, at, fetch_add, inlined, prefetch
from sim.kernels.records import CHUNK, CHUNK_BITS
from sim.kernels.state import BEHIND, FIRST, SPARE

# The queue of a host's link is not measured, so hosts' lists have no cursor, only the far end.
ONE_READER = 1
# So many chunks before it is used, a spare chunk is prefetched.
SOON = 2
LINE_BYTES = 64


@inlined
def first_slot(chunk):
    """Return the first slot of a chunk that holds a packet, the one behind the header."""
    return (np.int64(chunk) << CHUNK_BITS) + 1


@inlined
def append(pool, ends, readers, counters):
    """Return the free slot at the end of a list with a reader or two; the next becomes its tail.

    A list always has a free slot to point at, so the list is empty if `taken == tail`.
    """
    slot = ends.tail
    if (slot + 1) % CHUNK:
        ends.tail = slot + 1
    else:
        chunk = take_spare(pool, pool.ring, counters)
        # A reader that does not exist is through from the start.
        pool.headers[at(chunk)].passes = 2 - readers
        pool.headers[at(slot >> CHUNK_BITS)].next = chunk
        ends.tail = first_slot(chunk)

    return slot


def take_in(packets, slot, packet):
    """Put a copy of a packet into a slot.

    Where packets have bytes, the two slots exchange their blocks.
    """
    if "held" in packets.dtype.names:
        held = packets[slot].held
        packets[slot] = packet
        packet.held = held
    else:
        packets[slot] = packet


@overload(take_in, jit_options=INLINED)
def _compiled_take_in(packets, slot, packet):
    if "held" not in packets.dtype.fields:
        return _copy

    def exchange(packets, slot, packet):
        held = packets[at(slot)].held
        packets[at(slot)] = packet
        packet.held = held

    return exchange


def _copy(packets, slot, packet):
    packets[at(slot)] = packet


def step_of(packets):
    """Return how many packets further on the next line of memory begins, or less."""
    return 1


@overload(step_of, jit_options=INLINED)
def _compiled_step_of(packets):
    step = max(1, LINE_BYTES // packets.dtype.size)
    return lambda packets: step


@inlined
def following(pool, slot):
    """Return the slot behind a slot in its list."""
    if (slot + 1) % CHUNK:
        return slot + 1

    return first_slot(pool.headers[at(slot >> CHUNK_BITS)].next)


@inlined
def leave(pool, slot, counters):
    """Note that a reader is through with the chunk of this slot; the last one frees it."""
    header = pool.headers[at(slot >> CHUNK_BITS)]
    header.passes += 1
    if header.passes == 2:
        give_spare(pool, pool.ring, counters, slot >> CHUNK_BITS)


@inlined
def take_spare(pool, ring, counters):
    """Return an unused chunk: the last that was handed back, or a ring's first."""
    if ring is None:
        counters[SPARE] -= 1
        chunk = pool.spare[at(counters[SPARE])]
        # This memory will be written soon: chunks go round, and come back when no cache has them
        # any more.
        if counters[SPARE] >= SOON:
            foresee_chunk(pool, first_slot(pool.spare[at(counters[SPARE] - SOON)]))

        return chunk

    # Twice as long as there are chunks: a slow reader finds its entry unchanged.
    return pool.spare[at(fetch_add(ring, FIRST, 1) % len(pool.spare))]


@inlined
def give_spare(pool, ring, counters, chunk):
    """Hand a chunk back, onto the stack or behind a ring's last."""
    if ring is None:
        pool.spare[at(counters[SPARE])] = chunk
        counters[SPARE] += 1
    else:
        pool.spare[at(fetch_add(ring, BEHIND, 1) % len(pool.spare))] = chunk


@inlined
def foresee_behind(pool, slot, tail):
    """Ask for the chunk behind that of a slot, in a list that ends at `tail`, if any."""
    if slot >> CHUNK_BITS != tail >> CHUNK_BITS:
        foresee_chunk(pool, first_slot(pool.headers[at(slot >> CHUNK_BITS)].next))


@inlined
def foresee_chunk(pool, slot):
    """Ask for a chunk's header and for its packets from a slot on."""
    prefetch(pool.headers[at(slot >> CHUNK_BITS)])

    for line in range(slot, slot | (CHUNK - 1), step_of(pool.packets)):
        prefetch(pool.packets[at(line)])
