"""Where the bytes of packets lie: a block for each, which it keeps from host to host.

A packet has a block of bytes beside its record: the beginning of the frame, and, where egress runs
as it leaves, when and behind how many it was queued and what the program remembers of it since
ingress. Its record says where the block is, and takes it along from host to host: where the record
goes to another slot, the two slots exchange theirs (`sim.kernels.lists.take_in`). Hosts give blocks
back, and take the last ones that they have given back, which are still in a cache.

    block = [beginning of the frame ..., queued at, queued behind, state ...]

A cache line is enough for most frames, which is why their lengths are elsewhere. What a program
remembers for a departure that needs no frame (`Program.leaves`) lies apart from it, in the order of
slots, in which packets leave.
"""

import numpy as np

from sim.kernels.jit import at, fetch_add, inlined, prefetch_at

# Words of 8 bytes in a block, behind those of the frame.
QUEUED_AT, QUEUED_BEHIND = range(2)
QUEUED_BYTES = 16
# What is held of a slot: the number of its block (0: none yet), below a bit for one in which
# something stands behind what hosts write, below the length of its frame.
DIRTY = 1 << 31
PLACE_MASK = DIRTY - 1
PLACE_BITS = 32
# So many blocks that hosts have given back are kept by a thread.
MOST_FREE = 4096


@inlined
def block(frames, slot):
    """Return the first byte of a slot's block."""
    return (frames.packets[at(slot)].held & PLACE_MASK) * frames.stride


@inlined
def length_of(frames, slot):
    """Return how long a slot's frame is."""
    return frames.packets[at(slot)].held >> PLACE_BITS


@inlined
def set_length(frames, slot, length, dirty):
    """Note how long a slot's frame is now, and whether its block is DIRTY."""
    packet = frames.packets[at(slot)]
    packet.held = (packet.held & PLACE_MASK) | dirty | (length << PLACE_BITS)


@inlined
def is_dirty(frames, free, slot):
    """Return whether something stands behind what hosts write in a slot's block.

    A slot without a block gets the one that was given back last, or a new one.
    """
    packet = frames.packets[at(slot)]
    if packet.held == 0:
        if free[0] > 0:
            packet.held = free[at(free[0])]
            free[0] -= 1
        else:
            # Threads take from one count: which block a packet has changes nothing.
            packet.held = (fetch_add(frames.given, np.int64(0), np.int64(1)) + 1) | DIRTY

    return packet.held & DIRTY != 0


@inlined
def give_back(frames, free, slot):
    """Keep the block of a packet that has arrived for the next one that is sent: it is near."""
    # The first number says how many there are. What finds no room stays in its slot.
    if free[0] + 1 < len(free):
        packet = frames.packets[at(slot)]
        free[0] += 1
        free[at(free[0])] = packet.held & (PLACE_MASK | DIRTY)
        packet.held = 0


@inlined
def foresee_block(frames, slot):
    """Ask for the beginning of a slot's block."""
    if frames is not None:
        prefetch_at(frames.address + block(frames, slot))
