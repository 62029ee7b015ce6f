"""What a program makes of one packet: ingress and the queue as it arrives, egress as it leaves."""

import numpy as np

from fattree.units import PS_PER_US
from sim.kernels.desk import FRAME_TO, LEAVE_KIND, STATE_TO, note, note_arrival
from sim.kernels.frames import CE, FRAME, FRAME_AT, LENGTH, QUEUED_AT, QUEUED_BEHIND, block, shown
from sim.kernels.jit import at, call, inlined
from sim.kernels.ports import FAR, NO_SLOT, first_way, let_go, next_departure, offer
from sim.kernels.state import (
    HIGHEST_PORT,
    HOPS,
    LIVE,
    LOST,
    MISDIRECTED,
    SMALL,
    TRIMMED,
    UNROUTABLE,
    UNSERVED,
)

# The egress_spec that drops a packet, as BMv2 has it.
DROP_PORT = 511
LOW_32 = (1 << 32) - 1
DROPPED = -1


@inlined
def level(node, port):
    """Return the level of the link behind a port (from 0) of a switch."""
    return np.int64(node.tier) + (1 if port >= node.south else 0)


@inlined
def arrive(world, frames, program, desk, switch, came_by, now_ps, slot):
    """Run ingress for a packet and queue it.

    Return its port and, where it is the first there, its departure, else FAR.
    """
    constants = world.constants
    counters = world.counters
    packet = world.pool.packets[at(slot)]
    counters[HOPS] += 1
    note_arrival(world, frames, desk, switch, came_by + 1, slot)

    put_state(frames, desk)
    first = block(frames, slot)
    length = frames.words[at((first >> 3) + LENGTH)]
    size = constants.ack_bytes if packet.status & SMALL else constants.data_bytes
    asked = call(
        program.ingress,
        program.contexts[at(switch)],
        frames.address + first + FRAME_AT,
        shown(frames, length),
        length,
        came_by + 1,
        size,
        now_ps,
        desk.state_address,
    )
    if asked != 0:
        counters[UNSERVED] |= asked

    # The first words of a state: (egress_spec, multicast group), (priority, growth).
    port = (desk.state[0] & LOW_32) - 1
    if desk.state[0] >> 32 != 0 or port < 0 or port >= world.switches[at(switch)].ports:
        counters[UNROUTABLE] += 1
        counters[LIVE] -= 1
        if desk.state[0] >> 32 == 0 and port + 1 != DROP_PORT:
            counters[MISDIRECTED] += 1
            counters[HIGHEST_PORT] = max(counters[HIGHEST_PORT], port + 1)

        return port, FAR

    return port, enqueue(world, frames, program, desk, switch, port, now_ps, slot)


@inlined
def enqueue(world, frames, program, desk, switch, port, now_ps, slot):
    """Offer a packet that ingress has sent to a port to it, and its frame with it.

    Return its departure where nothing is before it, else FAR.
    """
    constants = world.constants
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    link = world.links[at(number)]
    packet = world.pool.packets[at(slot)]
    status = int(packet.status)
    is_first = link.cursor == link.tail
    queued_at = offer(world, number, level(node, port), packet, status, now_ps)
    is_urgent = queued_at != NO_SLOT and is_cut(world, queued_at)

    # What is dropped, or overtakes the queue, is not in it.
    size = constants.ack_bytes if status & SMALL else constants.data_bytes
    if program.forget != 0 and (queued_at == NO_SLOT or is_urgent):
        call(program.forget, program.queues[at(switch)], port + 1, size)

    if queued_at == NO_SLOT:
        return FAR

    if is_urgent:
        # What ingress has put into the queue stands above its depth, for egress to take out again.
        behind = (size << 32) | np.int64(link.depth)
        cut = np.int64(0) if status & SMALL else frames.cut
        move_frame(frames, desk, slot, queued_at, cut=cut, now_ps=now_ps, behind=behind)
        return FAR

    behind = np.int64(link.depth)
    move_frame(frames, desk, slot, queued_at, cut=np.int64(0), now_ps=now_ps, behind=behind)
    link.depth += 1
    return next_departure(world, number, level(node, port)) if is_first else FAR


@inlined
def is_cut(world, slot):
    """Return whether a packet that waits has been cut to its headers, or tells of one."""
    return world.pool.packets[at(slot)].status & TRIMMED > 0


@inlined
def move_frame(frames, desk, slot, queued_at, cut, now_ps, behind):
    """Copy a frame without its last `cut` bytes to where it waits, and what egress has to know."""
    words = frames.words
    here = block(frames, slot) >> 3
    there = block(frames, queued_at) >> 3
    words[at(there + LENGTH)] = words[at(here + LENGTH)] - cut
    words[at(there + QUEUED_AT)] = now_ps
    words[at(there + QUEUED_BEHIND)] = behind
    for word in range(FRAME, FRAME + (frames.kept >> 3)):
        words[at(there + word)] = words[at(here + word)]

    desk.marks[STATE_TO] = there + (frames.state_at >> 3)


@inlined
def next_of_port(world, node, port):
    """Return when the next packet leaves a port (from 0) of a switch, FAR if none waits."""
    return next_departure(world, np.int64(node.first_port) + port, level(node, port))


@inlined
def put_state(frames, desk):
    """Put the state that ingress has last written where it belongs, if it is not there yet."""
    # Not at once: a processor that reads words which have just been written byte by byte waits for
    # them. Until somebody needs the state, or its place, something else has been done.
    there = desk.marks[STATE_TO]
    if there >= 0:
        for word in range(len(desk.state)):
            frames.words[at(there + word)] = desk.state[at(word)]

        desk.marks[STATE_TO] = -1


@inlined
def put_frame(frames, desk):
    """Put the frame that egress has last written into its block, as late as possible, too."""
    there = desk.marks[FRAME_TO]
    if there >= 0:
        for word in range(frames.kept >> 3):
            frames.words[at(there + word)] = desk.out[at(word)]

        desk.marks[FRAME_TO] = -1


@inlined
def depart(world, frames, program, desk, switch, port, now_ps, clock_ps):
    """Run egress for the packet that leaves a port at `now_ps`; programs see the time `clock_ps`.

    Return when the next one will leave, FAR if there is none.
    """
    pool = world.pool
    constants = world.constants
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    link = world.links[at(number)]
    leaving = world.links[at(first_way(world, number))]
    slot = np.int64(leaving.cursor)
    packet = pool.packets[at(slot)]
    is_urgent = packet.status & TRIMMED > 0
    size = constants.ack_bytes if packet.status & SMALL else constants.data_bytes
    link.depth -= 0 if is_urgent else 1

    first = block(frames, slot)
    words = frames.words
    here = first >> 3
    if desk.marks[STATE_TO] == here + (frames.state_at >> 3):
        put_state(frames, desk)

    put_frame(frames, desk)
    length = words[at(here + LENGTH)]
    urgency = words[at(here + (frames.state_at >> 3) + 1)]
    queued_ps = words[at(here + QUEUED_AT)]
    behind = words[at(here + QUEUED_BEHIND)]
    if is_urgent and program.forget != 0:
        call(program.forget, program.queues[at(switch)], port + 1, -(behind >> 32))

    grown = call(
        program.egress,
        program.contexts[at(switch)],
        frames.address + first + FRAME_AT,
        shown(frames, length),
        length,
        frames.address + first + frames.state_at,
        port + 1,
        urgency & LOW_32,
        size + (urgency >> 32),
        0,
        0,
        clock_ps,
        queued_ps // PS_PER_US,
        behind & LOW_32,
        (now_ps - queued_ps) // PS_PER_US,
        link.depth,
        desk.out_address,
    )

    if grown < 0:
        # It leaves the link empty for its time, and vanishes where it would have arrived.
        if grown < DROPPED:
            world.counters[UNSERVED] |= DROPPED - 1 - grown
        if not packet.status & LOST:
            world.counters[UNROUTABLE] += 1
            packet.status |= LOST
    else:
        was_marked = frames.octets[at(first + FRAME_AT + frames.ip_at + 1)] & CE == CE
        if not was_marked and desk.out_octets[at(frames.ip_at + 1)] & CE == CE:
            world.ledgers[at(number)].marked += 1

        take_over(frames, desk, first, length, grown)
        note(frames, desk, now_ps, LEAVE_KIND, switch, port + 1, slot, packet)

    let_go(world, leaving, level(node, port))
    return next_departure(world, number, level(node, port))


@inlined
def take_over(frames, desk, first, length, grown):
    """Put a frame that egress has written into its block; zeros follow where it has shrunk."""
    desk.marks[FRAME_TO] = (first >> 3) + FRAME
    if grown != length or len(desk.log) > 0:
        put_frame(frames, desk)

    if grown != length:
        frames.words[at((first >> 3) + LENGTH)] = grown
        written = min(shown(frames, length) + grown - length, frames.kept)
        for byte in range(written, frames.kept):
            frames.octets[at(first + FRAME_AT + byte)] = 0
