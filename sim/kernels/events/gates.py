"""A port that the far end of its link may pause (IEEE 802.1Qbb), and that sends pauses itself.

With pauses nothing is foreseen: a packet's arrival is known when its transmission begins, and a
departure is an event at its switch (`sim.kernels.events.loop`), as it gives room back to the buffer
of the link by which it came. Until it begins, a packet is in its link's list all the same, later
than any time (`waiting_since`), so that the far end does not see it yet. The rules are those of
`docs/lossless.md`.

    come_in      a packet comes: it waits, or finds no room in its buffer
    begin        a free port takes the next packet: control frames, then packets
    let_leave    the last bit is out
    tell, heed   pauses and resumes, at their sender and at their receiver

The pauses' own events are in `sim.kernels.events.pause_times`.
"""

import numpy as np

from fattree.draws import Stream, component, mix
from sim.kernels.desk import note_control
from sim.kernels.events.programs import (
    egress_of,
    forget,
    ingress,
    more_bytes,
    move_frame,
    note_leave,
)
from sim.kernels.events.upcoming import CLOSED, NOBODY, OPEN, TRIPPED, update
from sim.kernels.jit import at, inlined
from sim.kernels.lists import append, following, foresee_chunk, leave, take_in
from sim.kernels.ports import (
    FAR,
    announce,
    class_of,
    count_packet,
    drop,
    holding,
    is_dead,
    pace,
    passage,
    size_of,
)
from sim.kernels.records import CHUNK
from sim.kernels.state import DATA, HELD, LIVE, LOST, MARKED
from sim.kernels.switches import PORT_BITS, PORT_MASK, is_marked, level_at, most_held, port_of

# A port's buffer (`fattree.experiment.pauses.Room`); how long a control frame is being sent there
# and holds the link; how long a pause lasts, and after how long it is renewed; after how long a
# pause is a storm (NEVER without a watchdog), and whether the port then `drops` (else it sends).
ROOM = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("most", "pause_above", "resume_at", "sending_ps", "slot_ps"),
            *("lasts_ps", "again_ps", "patience_ps", "drops"),
        )
    ],
    align=True,
)
LOSS = int(Stream.LOSS)
# Columns of `World.paces` that are of control frames.
FRAME_SENDING, FRAME_SLOT = 1, 2


@inlined
def come_in(world, routes, frames, program, desk, window, switch, came_by, slot, now_ps):
    """Let a packet come in by a port (from 0): it waits for the port that it is sent to."""
    port = chosen(world, routes, frames, program, desk, switch, came_by, slot, now_ps)
    if port < 0:
        return

    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    packet = world.pool.packets[at(slot)]
    level = level_at(node, port)
    number = first + port
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    status = int(packet.status)
    kind = size_of(world, packet, status)
    size = passage(world, level, kind).bytes

    # The draw for a mark is drawn even for a packet that is dropped. Programs mark by themselves.
    is_long = program is None and is_marked(
        world, switch, link.occupancy, status | class_of(world, packet, status)
    )
    buffer = world.gates[at(first + came_by)]
    limits = world.rooms[at(first + came_by)]
    held = held_bytes(world, program, node, came_by, port, size)
    is_above = is_above_room(world, node, buffer, limits, held)
    is_dropping = gate.state == TRIPPED and world.rooms[at(number)].drops != 0
    if is_dropping or not has_room(world, buffer, limits, held, is_above):
        drop(world, number)
        forget(program, switch, port, held)
        return

    status = noted(world, number, status, is_long)
    count_packet(world, number, kind, 1)
    queued_at = queue(world, link, packet, status, size, waiting_since(now_ps, came_by), now_ps)
    if program is not None:
        behind = np.int64(link.depth)
        move_frame(frames, desk, queued_at, cut=np.int64(0), now_ps=now_ps, behind=behind)
        link.depth += 1

    begin(world, node, port, now_ps)
    update(world, world.gates, desk.soonest, node, port, window)
    hold(world, desk, window, node, came_by, held, is_above, now_ps)


@inlined
def held_bytes(world, program, node, came_by, port, size):
    """Return the bytes of a packet in the buffer of the link by which it came, as it came.

    It leaves by a port with `size` bytes; either link may carry a program's header.
    """
    if program is None:
        return size

    came = more_bytes(world, level_at(node, came_by))
    return size + came - more_bytes(world, level_at(node, port))


@inlined
def noted(world, number, status, is_long):
    """Return the status of a packet that is queued at a port; count its mark and its last pause."""
    ledger = world.ledgers[at(number)]
    if is_long:
        status |= MARKED
        ledger.marked += 1

    # A pause held it one port before. If this port is free, it was held for other ports' queues.
    if status & HELD:
        status ^= HELD
        is_free = world.links[at(number)].occupancy == 0 and world.gates[at(number)].state != CLOSED
        ledger.victims += 1 if is_free else 0

    return status


@inlined
def hold(world, desk, window, node, came_by, size, is_above, now_ps):
    """Add a packet to the buffer of the port by which it came, which may pause its link."""
    number = np.int64(node.first_port) + came_by
    buffer = world.gates[at(number)]
    buffer.held += size
    if world.constants.alpha > 0:
        buffer.over += size if is_above else 0
        # The packet itself leaves less free.
        is_above |= buffer.held - buffer.over > most_shared(world, node, buffer)

    if is_above and buffer.is_pausing == 0:
        buffer.is_pausing = 1
        buffer.renew_ps = now_ps + world.rooms[at(number)].again_ps
        tell(world, node, came_by, 1, now_ps)
        update(world, world.gates, desk.soonest, node, came_by, window)


@inlined
def chosen(world, routes, frames, program, desk, switch, came_by, slot, now_ps):
    """Return the port (from 0) for a packet, by a rule or a program, -1 where there is none."""
    if program is None:
        return port_of(world, routes, switch, world.pool.packets[at(slot)], now_ps)

    return ingress(world, frames, program, desk, switch, came_by, now_ps, slot)


@inlined
def is_above_room(world, node, buffer, limits, size):
    """Return whether a packet is more than a link may fill before it is paused."""
    if world.constants.alpha == 0:
        return buffer.held + size > limits.pause_above

    return buffer.held - buffer.over + size > most_shared(world, node, buffer)


@inlined
def has_room(world, buffer, limits, size, is_above):
    """Return whether a packet fits into the buffer of the link by which it comes."""
    if world.constants.alpha == 0:
        return buffer.held + size <= limits.most

    # Headroom is apart: it is as much as when nothing is shared.
    return not is_above or buffer.over + size <= limits.most - limits.pause_above


@inlined
def may_go_on(world, node, buffer, limits):
    """Return whether a buffer is empty enough for the link that fills it to continue."""
    if world.constants.alpha == 0:
        return buffer.held <= limits.resume_at

    # Free memory may be so small that alpha times it, less two packets, is below zero.
    hysteresis = limits.pause_above - limits.resume_at
    return buffer.over == 0 and (
        buffer.held == 0 or buffer.held + hysteresis <= most_shared(world, node, buffer)
    )


@inlined
def most_shared(world, node, buffer):
    """Return a buffer's limit in the memory that a switch's buffers share, headroom apart."""
    first = np.int64(node.first_port)
    free = np.int64(0)
    for port in range(np.int64(node.ports)):
        beside = world.gates[at(first + port)]
        limits = world.rooms[at(first + port)]
        free += limits.pause_above - beside.held + beside.over

    return most_held(world, buffer.held - buffer.over, free)


@inlined
def waiting_since(now_ps, came_by):
    """Return the time of a packet that waits: when it has come, and by which port, beyond FAR."""
    return FAR | (now_ps << PORT_BITS) | came_by


@inlined
def queue(world, link, packet, status, size, time_ps, now_ps):
    """Put a copy of a packet at the end of a port's queue; return its slot."""
    slot = append(world.pool, link, 2, world.counters)
    take_in(world.pool.packets, slot, packet)
    queued = world.pool.packets[at(slot)]
    queued.time_ps = time_ps
    queued.status = status
    link.occupancy += size
    link.max_bytes = max(link.max_bytes, link.occupancy)
    # The queue's integral over time: packets that have left, and of each that waits all but the
    # end.
    link.byte_ps -= size * now_ps
    return slot


@inlined
def begin(world, node, port, now_ps):
    """Let a port take the next packet, if it is free."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    if gate.leaves_ps != FAR or link.free_ps > now_ps:
        return

    level = level_at(node, port)
    if gate.is_owed:
        send_frame(world, number, level, now_ps)
    elif gate.state != CLOSED and link.cursor != link.tail:
        send_packet(world, number, level, now_ps)


@inlined
def send_frame(world, number, level, now_ps):
    """Begin to send the control frame that waits: it has the latest order."""
    gate = world.gates[at(number)]
    lane_number = world.constants.lanes + number
    is_lost = is_lost_now(world, number, component(LOSS, lane_number), gate.framed, now_ps)
    sending_ps, slot_ps = frame_times(world, number, now_ps)
    gate.framed += 1
    gate.is_owed = 0
    gate.came_by = NOBODY
    gate.bytes = 0
    gate.leaves_ps = now_ps + sending_ps
    world.links[at(number)].free_ps = now_ps + slot_ps

    slot = append(world.pool, world.links[at(lane_number)], 2, world.counters)
    frame = world.pool.packets[at(slot)]
    frame.time_ps = gate.leaves_ps + passage(world, level, DATA).latency_ps
    announce(world, number, frame.time_ps)
    frame.status = gate.is_told | (LOST if is_lost else 0)
    world.counters[LIVE] += 1


@inlined
def frame_times(world, number, now_ps):
    """Return how long a control frame that starts now is being sent, and holds the link."""
    if world.constants.is_slowed:
        row = pace(world, number, now_ps, now_ps)
        return world.paces[row, FRAME_SENDING], world.paces[row, FRAME_SLOT]

    limits = world.rooms[at(number)]
    return limits.sending_ps, limits.slot_ps


@inlined
def is_lost_now(world, number, stream, count, now_ps):
    """Return whether a transmission that starts now never arrives: the link is dead, or by chance.

    It is number `count` of its kind there; each kind's draws are a stream of their own.
    """
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    if now_ps >= link.down_ps and is_dead(world, link, ledger, now_ps, now_ps):
        return True

    is_lossy = world.constants.is_lossy != 0
    return is_lossy and mix(world.constants.seed, stream, count) < ledger.unlucky


@inlined
def send_packet(world, number, level, now_ps):
    """Begin to send the packet that has waited longest."""
    pool = world.pool
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    slot = link.cursor
    packet = pool.packets[at(slot)]
    kind = size_of(world, packet, int(packet.status))
    crossing = passage(world, level, kind)
    sending_ps, slot_ps = holding(world, number, level, kind, now_ps=now_ps, start_ps=now_ps)
    since_ps = (packet.time_ps ^ FAR) >> PORT_BITS
    is_lost = is_lost_now(world, number, component(LOSS, number), gate.begun, now_ps)
    gate.begun += 1
    gate.is_losing = 1 if is_lost else 0
    gate.came_by = packet.time_ps & PORT_MASK
    gate.bytes = crossing.bytes
    gate.sent = slot
    gate.leaves_ps = now_ps + sending_ps
    link.free_ps = now_ps + slot_ps
    packet.status |= LOST if is_lost else 0

    # A pause that came later has ended later, too.
    if gate.opened_ps >= since_ps:
        packet.status |= HELD

    packet.time_ps = gate.leaves_ps + crossing.latency_ps
    announce(world, number, packet.time_ps)
    pass_by(world, link)


@inlined
def pass_by(world, link):
    """Remove the packet that has waited longest from a port's queue."""
    slot = link.cursor
    link.cursor = following(world.pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(world.pool, slot, world.counters)
        foresee_chunk(world.pool, link.cursor)


@inlined
def let_leave(world, frames, program, desk, window, switch, port, now_ps, clock_ps):
    """End a port's transmission; programs see the time `clock_ps`."""
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    came_by = np.int64(gate.came_by)
    gate.leaves_ps = FAR
    if came_by == NOBODY:
        return

    if program is not None:
        slot = np.int64(gate.sent)
        if egress_of(world, frames, program, desk, switch, port, slot, now_ps, clock_ps):
            note_leave(world, frames, desk, switch, port, slot, now_ps)

    world.ledgers[at(number)].lost_to_failure += gate.is_losing
    gate.is_losing = 0
    size = np.int64(gate.bytes)
    held = held_bytes(world, program, node, came_by, port, size)
    give_back(world, desk, window, node, port, came_by, size, held, now_ps)


@inlined
def give_back(world, desk, window, node, port, came_by, size, held, now_ps):
    """Take a packet that came in by a port off its queue and buffer, which may end a pause."""
    first = np.int64(node.first_port)
    link = world.links[at(first + port)]
    link.occupancy -= size
    link.byte_ps += size * now_ps
    buffer = world.gates[at(first + came_by)]
    buffer.held -= held
    # Bytes in the headroom leave first.
    buffer.over = max(buffer.over - held, 0)
    limits = world.rooms[at(first + came_by)]
    if buffer.is_pausing != 0 and may_go_on(world, node, buffer, limits):
        buffer.is_pausing = 0
        buffer.renew_ps = FAR
        buffer.tells_ps = now_ps
        update(world, world.gates, desk.soonest, node, came_by, window)


@inlined
def tell(world, node, port, is_pause, now_ps):
    """Send a pause or its end back by a port.

    A control frame that still waits carries this in place of its earlier order.
    """
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    gate.tells_ps = FAR
    gate.is_owed = 1
    gate.is_told = is_pause
    world.ledgers[at(number)].pauses += is_pause
    begin(world, node, port, now_ps)


@inlined
def heed(world, desk, switch, port, is_pause, now_ps):
    """Pause a port or let it go on."""
    node = world.switches[at(switch)]
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    world.counters[LIVE] -= 1
    note_control(desk, now_ps, switch, port + 1, is_pause)
    if is_pause:
        close(gate, now_ps, now_ps + world.rooms[at(number)].lasts_ps)
    elif gate.state != OPEN:
        reopen(world, number, now_ps, now_ps)
        begin(world, node, port, now_ps)


@inlined
def close(gate, now_ps, until_ps):
    """Pause a port from now until a time, or renew its pause."""
    gate.until_ps = until_ps
    if gate.state == OPEN:
        gate.state = CLOSED
        gate.closed_ps = now_ps


@inlined
def reopen(world, number, now_ps, opened_ps):
    """End a port's pause; packets that came until `opened_ps` have been held by it."""
    gate = world.gates[at(number)]
    if gate.state == CLOSED:
        gate.opened_ps = opened_ps

    gate.state = OPEN
    world.ledgers[at(number)].paused_ps += now_ps - gate.closed_ps
