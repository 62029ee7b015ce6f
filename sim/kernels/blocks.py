"""Where the bytes of packets lie: a block for each, which it keeps from host to host.

A packet has a block of bytes beside its record: the beginning of the frame, and, where egress runs
as it leaves, when and behind how many it was queued and what the program remembers of it since
ingress. It keeps its block from host to host: where its record goes to another slot, the two slots
exchange theirs.

    block = [beginning of the frame ..., queued at, queued behind, state ...]

A cache line is enough for most frames, which is why their lengths are elsewhere. What a program
remembers for a departure that needs no frame (`Program.leaves`) lies apart from it, in the order of
slots, in which packets leave.
"""

import numpy as np

from sim.kernels.jit import at, inlined, prefetch_at

# Words of 8 bytes in a block, behind those of the frame.
QUEUED_AT, QUEUED_BEHIND = range(2)
QUEUED_BYTES = 16
# What is held of a slot: the number of its block, below a bit for one in which something stands
# behind what hosts write, below the length of its frame.
DIRTY = 1 << 31
PLACE_MASK = DIRTY - 1
PLACE_BITS = 32
# The slots of a line, by what is held of each.
HELD_A_LINE = 8


@inlined
def block(frames, slot):
    """Return the first byte of a slot's block."""
    return (frames.held[at(slot)] & PLACE_MASK) * frames.stride


@inlined
def length_of(frames, slot):
    """Return how long a slot's frame is."""
    return frames.held[at(slot)] >> PLACE_BITS


@inlined
def set_length(frames, slot, length, dirty):
    """Note how long a slot's frame is now, and whether its block is DIRTY."""
    held = frames.held
    held[at(slot)] = (held[at(slot)] & PLACE_MASK) | dirty | (length << PLACE_BITS)


@inlined
def exchange(frames, slot, other):
    """Let two slots exchange their blocks."""
    held = frames.held
    here = held[at(slot)]
    held[at(slot)] = held[at(other)]
    held[at(other)] = here


@inlined
def foresee_held(frames, slot):
    """Ask for what the slots of a chunk hold, from a slot on."""
    if frames is not None:
        prefetch_at(frames.held_address + 8 * np.int64(slot))
        prefetch_at(frames.held_address + 8 * (np.int64(slot) + HELD_A_LINE))


@inlined
def foresee_block(frames, slot):
    """Ask for the beginning of a slot's block."""
    if frames is not None:
        prefetch_at(frames.address + block(frames, slot))
