"""A compiled program's addresses; the memory of a thread that serves switches with events.

Events are for digests (`emulation.virtual.event_log`), receipts for runs that have ended meanwhile.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.shape.topology import Tier
from sim.kernels.blocks import block, length_of
from sim.kernels.bundles import by_address
from sim.kernels.jit import at, inlined
from sim.kernels.state import Bytes, Int32, Int64

EDGE = int(Tier.EDGE)
AGG = int(Tier.AGG)

# The columns of `Desk.log`; the kept bytes follow.
LOG_TIME, LOG_PLACE, LOG_PACKET, LOG_ACK, LOG_LENGTH = range(5)
LOG_FRAME = 5
LEAVE_KIND = 0
# A packet of a switch's own, which arrives at no port.
OWN_KIND = 5
ARRIVE_KIND = 6
HEED_KIND = 8
KIND_SHIFT = 40
NODE_SHIFT = 8

# The fields of `Desk.marks`: the numbers of receipts and events, the window's begin, and the words
# to which the state and the frame on the desk go, -1 if they are there already.
RECEIPTS, EVENTS, WINDOW, STATE_TO, FRAME_TO = range(5)


@by_address
class Program(NamedTuple):
    """A compiled program: C functions, and for each switch their first arguments.

    A program that makes a packet's frame at its arrival `passes` it (0: none does), and `leaves`
    the rest (0: there is none) for its departure, described by `late_words`. `forget` (0: none)
    takes a switch's `queues` and (port, bytes) when a queue drops a packet from ingress.
    """

    ingress: int
    egress: int
    passes: int
    leaves: int
    late_words: int
    forget: int
    contexts: Int64
    queues: Int64

    def by_parts(self) -> "Program":
        """Return the program as its two functions alone."""
        return self._replace(passes=0, leaves=0, late_words=0)


@by_address
class Desk(NamedTuple):
    """A thread's room for a switch that has events, and its notes of the run.

    As `sim.kernels.state.Buffers`, and keys of control frames; then the ports' next events (a
    tree), a state and a frame under way (and their addresses), blocks that are `free`
    (`blocks.give_back`), `longest` queue by (sample, layer), when hosts received something within
    the window, and events for a digest. `marks` has the progress in each.
    """

    keys: Int64
    sorted_keys: Int64
    buckets: Int32
    ends: Int64
    control: Int64
    sorted_control: Int64
    soonest: Int64
    state: Int64
    state_address: int
    out: Int64
    out_octets: Bytes
    out_address: int
    free: Int64
    longest: Int64
    receipts: Int64
    log: NDArray[Any]
    marks: Int64


@inlined
def note_receipt(desk, moment_ps):
    """Note when a host received a packet: the run may have ended before."""
    if desk is not None:
        desk.receipts[at(desk.marks[RECEIPTS])] = moment_ps
        desk.marks[RECEIPTS] += 1


@inlined
def note_arrival(world, frames, desk, node, port, slot):
    """Log that a packet arrives, with all its bytes."""
    if frames is not None:
        packet = world.pool.packets[at(slot)]
        note(frames, desk, packet.time_ps, ARRIVE_KIND, node, port, slot, packet)


@inlined
def note_control(desk, time_ps, node, port, is_pause):
    """Write into the log, if any, that a pause or its end is heeded."""
    if desk is not None and len(desk.log) > 0:
        row = desk.log[desk.marks[EVENTS]]
        desk.marks[EVENTS] += 1
        row[LOG_TIME] = time_ps
        row[LOG_PLACE] = (HEED_KIND << KIND_SHIFT) | (node << NODE_SHIFT) | port
        row[LOG_PACKET] = is_pause


@inlined
def note(frames, desk, time_ps, kind, node, port, slot, packet):
    """Write an event into the log, if any."""
    if len(desk.log) > 0:
        row = desk.log[desk.marks[EVENTS]]
        desk.marks[EVENTS] += 1
        word = block(frames, slot) >> 3
        row[LOG_TIME] = time_ps
        row[LOG_PLACE] = (kind << KIND_SHIFT) | (node << NODE_SHIFT) | port
        row[LOG_PACKET] = (np.int64(packet.flow) << 32) | np.int64(packet.psn)
        row[LOG_ACK] = (np.int64(packet.log) << 32) | np.int64(packet.hash)
        row[LOG_LENGTH] = (
            (length_of(frames, slot) << 32)
            | (np.int64(packet.status) << 16)
            | np.int64(packet.label)
        )
        for index in range(frames.kept >> 3):
            row[LOG_FRAME + index] = frames.words[word + index]


@inlined
def layer_of(tier, is_up):
    """Return a queue's place in SWITCH_LAYERS."""
    if tier == EDGE:
        return 0 if is_up else 4
    if tier == AGG:
        return 1 if is_up else 3

    return 2
