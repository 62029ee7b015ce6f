"""Where the bytes of packets lie: a block for each, which it keeps from host to host.

A packet has a block of bytes beside its record: the beginning of the frame, and, where egress runs
as it leaves, the time and the queue that it met, and the program's variables since ingress. Its
record has the block's number, and takes it along from host to host: if the record goes to another
slot, the two slots exchange theirs (`sim.kernels.lists.take_in`). Hosts give blocks back, and take
the last ones that they have given back, which are still in a cache.

    block = [beginning of the frame ..., queued at, queued behind, state ...]

A cache line is enough for most frames, which is why their lengths are elsewhere. A program's
variables for a departure without a frame (`Program.leaves`) lie apart from it, in the order of
slots, in which packets leave.
"""

import numpy as np

from sim.kernels.jit import at, fetch_add, inlined, prefetch_at

# Words of 8 bytes in a block, behind those of the frame.
QUEUED_AT, QUEUED_BEHIND = range(2)
QUEUED_BYTES = 16
# `held` of a slot: the number of its block (0: none yet), below a bit for a block with bytes behind
# those that hosts write, below the length of its frame.
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
    """Return whether a slot's block has bytes behind those that hosts write.

    A slot without a block gets the block that was given back last, or a new block.
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
    """Keep the block of a packet that has arrived for the next packet that is sent: it is near."""
    # The first number counts the blocks. A block without room stays in its slot.
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
