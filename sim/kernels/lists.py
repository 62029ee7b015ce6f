"""Lists of packets on links, as they wait for hosts and ports to take them.

All lists share one pool of chunks. A ring a port would need room for the longest queue at each of
k**3 * 5 / 4 ports; chunks need room for the packets there are, and their packets lie side by side
in memory as those of a ring would.
"""

import numpy as np

from sim.kernels.jit import at, inlined
from sim.kernels.state import CHUNK, CHUNK_BITS, SPARE

# Nobody measures the queue of a host's link, so hosts' lists have no cursor, only the far end.
ONE_READER = 1


@inlined
def first_slot(chunk):
    """Return the first slot of a chunk that holds a packet, the one behind the header."""
    return (np.int64(chunk) << CHUNK_BITS) + 1


@inlined
def append(pool, ends, readers, counters):
    """Return the free slot at the end of a list with one or two readers; the next becomes its tail.

    A list always has a free slot to point at, so `taken == tail` says that it is empty.
    """
    slot = ends.tail
    if (slot + 1) % CHUNK:
        ends.tail = slot + 1
    else:
        counters[SPARE] -= 1
        chunk = pool.spare[at(counters[SPARE])]
        # A reader that does not exist is through from the start.
        pool.headers[at(chunk)].passes = 2 - readers
        pool.headers[at(slot >> CHUNK_BITS)].next = chunk
        ends.tail = first_slot(chunk)

    return slot


@inlined
def following(pool, slot):
    """Return the slot behind this one in its list."""
    if (slot + 1) % CHUNK:
        return slot + 1

    return first_slot(pool.headers[at(slot >> CHUNK_BITS)].next)


@inlined
def leave(pool, slot, counters):
    """Note that a reader is through with the chunk of this slot; the last one frees it."""
    header = pool.headers[at(slot >> CHUNK_BITS)]
    header.passes += 1
    if header.passes == 2:
        pool.spare[at(counters[SPARE])] = slot >> CHUNK_BITS
        counters[SPARE] += 1
