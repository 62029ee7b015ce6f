"""What a program makes of one packet: ingress and the queue as it arrives, egress as it leaves."""

import numpy as np

from fattree.units import PS_PER_US
from sim.kernels.desk import FRAME_TO, LEAVE_KIND, STATE_TO, note, note_arrival
from sim.kernels.frames import CE, FRAME, FRAME_AT, LENGTH, QUEUED_AT, QUEUED_BEHIND, block, shown
from sim.kernels.jit import at, call, inlined
from sim.kernels.queues import append, following, give_way, is_gone, leave, occupy
from sim.kernels.state import (
    ACK,
    CHUNK,
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
# Later than any departure.
FAR = 1 << 62
LOW_32 = (1 << 32) - 1
DROPPED = -1


@inlined
def level(node, port):
    """Return the level of the link behind a port (from 0) of a switch."""
    return np.int64(node.tier) + (1 if port >= node.south else 0)


@inlined
def latency_ps(world, node, port):
    """Return the latency of the link behind a port (from 0) of a switch."""
    return world.constants.latency_ps[at(level(node, port))]


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
    """Queue a packet that ingress has sent to a port, or drop it where it does not fit.

    Return its departure where nothing is before it, else FAR.
    """
    pool = world.pool
    constants = world.constants
    counters = world.counters
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    packet = pool.packets[at(slot)]
    is_ack = int(packet.status) & ACK
    is_urgent = int(packet.status) & TRIMMED > 0
    size = constants.ack_bytes if is_ack or is_urgent else constants.data_bytes
    occupancy = link.occupancy + size

    if is_urgent or (constants.capacity > 0 and occupancy > constants.capacity):
        if program.forget != 0:
            call(program.forget, program.queues[at(switch)], port + 1, size)

        # As `sim.kernels.queues.offer`, but that programs mark.
        if constants.lanes > 0 and (is_urgent or not is_ack):
            hurry(world, frames, desk, number, level(node, port), now_ps, slot)
        else:
            ledger.dropped += 1
            counters[LIVE] -= 1

        return FAR

    is_first = link.cursor == link.tail
    start_ps, departure_ps = occupy(world, number, level(node, port), is_ack, now_ps)
    gone = is_gone(world, number, number, start_ps)
    queued_at = append(pool, link, 2, counters)
    pool.packets[at(queued_at)] = packet
    queued = pool.packets[at(queued_at)]
    queued.time_ps = departure_ps + latency_ps(world, node, port)
    if gone:
        queued.status |= LOST

    move_frame(frames, desk, slot, queued_at, cut=0, now_ps=now_ps, behind=link.depth)
    link.depth += 1
    link.occupancy = occupancy
    link.max_bytes = max(link.max_bytes, occupancy)
    link.byte_ps += size * (departure_ps - now_ps)

    return departure_ps if is_first else FAR


@inlined
def hurry(world, frames, desk, number, level, now_ps, slot):
    """Put a packet into a port's lane, cut to its headers, or drop it where that is full."""
    pool = world.pool
    constants = world.constants
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    lane = world.links[at(constants.lanes + number)]
    packet = pool.packets[at(slot)]
    if lane.occupancy + constants.ack_bytes > constants.capacity:
        ledger.dropped += 1
        world.counters[LIVE] -= 1
        return

    is_cut = not packet.status & TRIMMED
    if is_cut:
        ledger.trimmed += 1

    start_ps = give_way(pool, link, constants, level, now_ps)
    gone = is_gone(world, number, constants.lanes + number, start_ps)
    queued_at = append(pool, lane, 2, world.counters)
    pool.packets[at(queued_at)] = packet
    queued = pool.packets[at(queued_at)]
    queued.time_ps = start_ps + constants.ack_ps[at(level)] + constants.latency_ps[at(level)]
    queued.status |= TRIMMED
    if gone:
        queued.status |= LOST

    # What ingress has seen in the queue stands above its depth, for egress to take it out again.
    charged = constants.data_bytes if is_cut else constants.ack_bytes
    behind = (charged << 32) | np.int64(link.depth)
    cut = frames.cut if is_cut else 0
    move_frame(frames, desk, slot, queued_at, cut=cut, now_ps=now_ps, behind=behind)
    lane.occupancy += constants.ack_bytes


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
def next_departure(world, node, port):
    """Return when the next packet leaves a port, FAR if none waits."""
    link = world.links[at(next_list(world, np.int64(node.first_port) + port))]
    if link.cursor == link.tail:
        return FAR

    return world.pool.packets[at(link.cursor)].time_ps - latency_ps(world, node, port)


@inlined
def next_list(world, number):
    """Return which of a link and its lane has the packet that leaves first."""
    if world.constants.lanes == 0:
        return number

    link = world.links[at(number)]
    lane = world.links[at(world.constants.lanes + number)]
    if lane.cursor == lane.tail:
        return number

    packets = world.pool.packets
    is_first = (
        link.cursor != link.tail
        and packets[at(link.cursor)].time_ps < packets[at(lane.cursor)].time_ps
    )
    return number if is_first else world.constants.lanes + number


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
    leaving = world.links[at(next_list(world, number))]
    slot = np.int64(leaving.cursor)
    packet = pool.packets[at(slot)]
    is_urgent = packet.status & TRIMMED > 0
    size = constants.ack_bytes if packet.status & SMALL else constants.data_bytes
    leaving.occupancy -= size
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

    leaving.cursor = following(pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(pool, slot, world.counters)

    return next_departure(world, node, port)


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
