"""A port that the far end of its link may pause (IEEE 802.1Qbb), and that sends pauses itself.

With pauses nothing is foreseen: a packet's arrival is known when its transmission begins, and what
leaves is an event at its switch (`sim.kernels.pausing`), as it gives room back to the buffer of the
link by which it came. Until it begins, a packet is in its link's list all the same, later than any
time (`waiting_since`), so that the far end does not see it yet. The rules are those of
`docs/lossless.md`.

    come_in      a packet comes: it waits, or finds no room in its buffer
    begin        a port that is free takes what is next: control frames, then packets
    let_leave    the last bit is out
    tell, heed   pauses and resumes, at who sends them and at who gets them
"""

import numpy as np

from sim.kernels.heaps import sift_up
from sim.kernels.jit import at, inlined
from sim.kernels.lists import append, following, foresee_chunk, leave
from sim.kernels.ports import FAR, class_of, count_packet, drop, passage, size_of
from sim.kernels.state import ACK, CHUNK, HELD, LIVE, MARKED
from sim.kernels.switches import (
    PORT_BITS,
    PORT_MASK,
    is_marked,
    level_at,
    most_held,
    port_of,
)

# What a port has beside its link, a cache line. What is being sent leaves at `leaves_ps` (FAR:
# nothing is): `bytes` that have come in by `came_by`, NOBODY for a control frame. It is paused
# where it `is_closed`, and was last until `opened_ps`. `frames` control frames wait here, the last
# of which `is_told`: 1 for a pause, 0 for its end. The buffer of what comes in beside the port
# holds `held` bytes, of which `over` are in its headroom where memory is shared (0 elsewhere), and
# `is_pausing` its link, whose far end is paused since `since_ps`.
GATE = np.dtype(
    [(name, np.int64) for name in ("leaves_ps", "opened_ps", "held", "since_ps")]
    + [
        (name, np.int32)
        for name in ("bytes", "came_by", "is_closed", "is_pausing", "frames", "is_told")
    ]
    + [("over", np.int64)],
    align=True,
)
# A level's buffers (`fattree.experiment.pauses.Room`), and how long a control frame is being sent
# there and holds the link.
ROOM = np.dtype(
    [(name, np.int64) for name in ("most", "pause_above", "resume_at", "sending_ps", "slot_ps")],
    align=True,
)
NOBODY = -1
# What ports do by themselves at an instant, in this order; then others arrive, and last pauses are
# heeded. In a heap: the time within the window, above what it is, above the port.
LEAVES, BEGINS, TELLS = range(3)
MOMENT_BITS = PORT_BITS + 2


@inlined
def come_in(world, routes, heap, waiting, switch, came_by, slot, now_ps, start_ps, end_ps):
    """Let a packet come in by a port (from 0); return how many events wait in the heap."""
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    packet = world.pool.packets[at(slot)]
    port = port_of(world, routes, switch, packet, now_ps)
    if port < 0:
        return waiting

    level = level_at(node, port)
    number = first + port
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    status = int(packet.status)
    kind = size_of(world, packet, status)
    size = passage(world, level, kind).bytes

    # Who draws for a mark has drawn, whatever becomes of the packet.
    is_long = is_marked(world, switch, link.occupancy, status | class_of(world, packet, status))
    buffer = world.gates[at(first + came_by)]
    room = world.rooms[at(level_at(node, came_by))]
    is_above = is_above_room(world, node, buffer, room, size)
    if not has_room(world, buffer, room, size, is_above):
        drop(world, number)
        return waiting

    ledger = world.ledgers[at(number)]
    if is_long:
        status |= MARKED
        ledger.marked += 1

    # It was held for what others have waiting, not here.
    if status & HELD:
        status ^= HELD
        if link.occupancy == 0 and gate.is_closed == 0:
            ledger.victims += 1

    count_packet(world, number, kind, 1)
    queue(world, link, packet, status, size, waiting_since(now_ps, came_by), now_ps)
    waiting = begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)

    buffer.held += size
    if world.constants.alpha > 0:
        buffer.over += size if is_above else 0
        # The packet itself leaves less free.
        is_above |= buffer.held - buffer.over > most_shared(world, node, buffer)

    if is_above and buffer.is_pausing == 0:
        buffer.is_pausing = 1
        waiting = tell(world, heap, waiting, node, came_by, 1, now_ps, start_ps, end_ps)

    return waiting


@inlined
def is_above_room(world, node, buffer, room, size):
    """Return whether a packet is more than a link may fill before it is paused."""
    if world.constants.alpha == 0:
        return buffer.held + size > room.pause_above

    return buffer.held - buffer.over + size > most_shared(world, node, buffer)


@inlined
def has_room(world, buffer, room, size, is_above):
    """Return whether a packet fits into the buffer of the link by which it comes."""
    if world.constants.alpha == 0:
        return buffer.held + size <= room.most

    # Headroom is apart: it is as much as when nothing is shared.
    return not is_above or buffer.over + size <= room.most - room.pause_above


@inlined
def may_go_on(world, node, buffer, room):
    """Return whether the link that fills a buffer may go on."""
    if world.constants.alpha == 0:
        return buffer.held <= room.resume_at

    # What is free may be so little that two packets below alpha times it are below zero.
    hysteresis = room.pause_above - room.resume_at
    return buffer.over == 0 and (
        buffer.held == 0 or buffer.held + hysteresis <= most_shared(world, node, buffer)
    )


@inlined
def most_shared(world, node, buffer):
    """Return what a buffer may hold of the memory that all of a switch share, headroom apart."""
    first = np.int64(node.first_port)
    free = np.int64(0)
    for port in range(np.int64(node.ports)):
        beside = world.gates[at(first + port)]
        room = world.rooms[at(level_at(node, port))]
        free += room.pause_above - beside.held + beside.over

    return most_held(world, buffer.held - buffer.over, free)


@inlined
def waiting_since(now_ps, came_by):
    """Return the time of a packet that waits: when it has come, and by which port, beyond FAR."""
    return FAR | (now_ps << PORT_BITS) | came_by


@inlined
def queue(world, link, packet, status, size, time_ps, now_ps):
    """Put a copy of a packet at the end of a port's queue."""
    slot = append(world.pool, link, 2, world.counters)
    world.pool.packets[at(slot)] = packet
    queued = world.pool.packets[at(slot)]
    queued.time_ps = time_ps
    queued.status = status
    link.occupancy += size
    link.max_bytes = max(link.max_bytes, link.occupancy)
    # The queue's integral over time: what has left, and of each that waits all but the end.
    link.byte_ps -= size * now_ps


@inlined
def begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps):
    """Let a port take what is next, if it is free; return how many events wait in the heap."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    if gate.leaves_ps != FAR or link.free_ps > now_ps:
        return waiting

    level = level_at(node, port)
    if gate.frames > 0:
        send_frame(world, number, level, now_ps)
    elif gate.is_closed == 0 and link.cursor != link.tail:
        send_packet(world, number, level, now_ps)
    else:
        return waiting

    return put(heap, waiting, LEAVES, port, gate.leaves_ps, start_ps, end_ps)


@inlined
def send_frame(world, number, level, now_ps):
    """Begin to send the control frame that has waited longest."""
    gate = world.gates[at(number)]
    room = world.rooms[at(level)]
    # A pause and its end take turns, so that the last one says what the first one is.
    is_pause = gate.is_told ^ ((gate.frames - 1) & 1)
    gate.frames -= 1
    gate.came_by = NOBODY
    gate.bytes = 0
    gate.leaves_ps = now_ps + room.sending_ps
    world.links[at(number)].free_ps = now_ps + room.slot_ps

    lane = world.links[at(world.constants.lanes + number)]
    slot = append(world.pool, lane, 2, world.counters)
    frame = world.pool.packets[at(slot)]
    frame.time_ps = gate.leaves_ps + passage(world, level, ACK).latency_ps
    frame.status = is_pause


@inlined
def send_packet(world, number, level, now_ps):
    """Begin to send the packet that has waited longest."""
    pool = world.pool
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    slot = link.cursor
    packet = pool.packets[at(slot)]
    own = passage(world, level, size_of(world, packet, int(packet.status)))
    since_ps = (packet.time_ps ^ FAR) >> PORT_BITS
    gate.came_by = packet.time_ps & PORT_MASK
    gate.bytes = own.bytes
    gate.leaves_ps = now_ps + own.sending_ps
    link.free_ps = now_ps + own.slot_ps

    # A pause that came later has ended later, too.
    if gate.opened_ps >= since_ps:
        packet.status |= HELD

    packet.time_ps = gate.leaves_ps + own.latency_ps
    link.cursor = following(pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(pool, slot, world.counters)
        foresee_chunk(pool, link.cursor)


@inlined
def let_leave(world, heap, waiting, node, port, now_ps, start_ps, end_ps):
    """Let a port's last bit be out; return how many events wait in the heap."""
    first = np.int64(node.first_port)
    gate = world.gates[at(first + port)]
    link = world.links[at(first + port)]
    came_by = np.int64(gate.came_by)
    gate.leaves_ps = FAR
    waiting = put(heap, waiting, BEGINS, port, link.free_ps, start_ps, end_ps)
    if came_by == NOBODY:
        return waiting

    size = np.int64(gate.bytes)
    link.occupancy -= size
    link.byte_ps += size * now_ps
    buffer = world.gates[at(first + came_by)]
    buffer.held -= size
    # What is in the headroom leaves first.
    buffer.over = max(buffer.over - size, 0)
    room = world.rooms[at(level_at(node, came_by))]
    if buffer.is_pausing != 0 and may_go_on(world, node, buffer, room):
        buffer.is_pausing = 0
        waiting = put(heap, waiting, TELLS, came_by, now_ps, start_ps, end_ps)

    return waiting


@inlined
def tell(world, heap, waiting, node, port, is_pause, now_ps, start_ps, end_ps):
    """Send a pause or its end back by a port; return how many events wait in the heap."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    gate.frames += 1
    gate.is_told = is_pause
    world.ledgers[at(number)].pauses += is_pause
    world.counters[LIVE] += 1
    return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


@inlined
def heed(world, heap, waiting, node, port, is_pause, now_ps, start_ps, end_ps):
    """Pause a port or let it go on; return how many events wait in the heap."""
    gate = world.gates[at(np.int64(node.first_port) + port)]
    gate.is_closed = is_pause
    world.counters[LIVE] -= 1
    if is_pause:
        return waiting

    gate.opened_ps = now_ps
    return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


@inlined
def put(heap, waiting, moment, port, time_ps, start_ps, end_ps):
    """Put what a port does by itself before `end_ps` on the heap; return how many wait there."""
    if time_ps >= end_ps:
        return waiting

    heap[at(waiting)] = ((time_ps - start_ps) << MOMENT_BITS) | (moment << PORT_BITS) | port
    sift_up(heap, waiting)
    return waiting + 1


@inlined
def next_of_gate(world, number):
    """Return when a port next does something by itself, FAR if it waits for others."""
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    is_ready = gate.frames > 0 or (gate.is_closed == 0 and link.cursor != link.tail)
    return link.free_ps if gate.leaves_ps == FAR and is_ready else gate.leaves_ps
