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

What happens to pauses by themselves is in `sim.kernels.pause_times`.
"""

import numpy as np

from fattree.draws import Stream, component, mix
from sim.kernels.heaps import sift_up
from sim.kernels.jit import at, inlined
from sim.kernels.lists import append, following, foresee_chunk, leave
from sim.kernels.ports import (
    FAR,
    class_of,
    count_packet,
    drop,
    holding,
    is_dead,
    pace,
    passage,
    size_of,
)
from sim.kernels.state import CHUNK, DATA, HELD, LIVE, LOST, MARKED
from sim.kernels.switches import (
    PORT_BITS,
    PORT_MASK,
    is_marked,
    level_at,
    most_held,
    port_of,
)

# What a port has beside its link, two cache lines. What is being sent leaves at `leaves_ps` (FAR:
# nothing is): `bytes` that have come in by `came_by`, NOBODY for a control frame; it will not
# arrive where the port `is_losing` it. `state` says whether the port is paused: since `closed_ps`,
# until `until_ps` at most; it was last until `opened_ps`. Its host's storm begins at `storm_ps`.
# A control frame waits here where one `is_owed`, and `is_told`: 1 for a pause, 0 for its end. So
# many packets and control frames have `begun` and been `framed`. The buffer of what comes in beside
# the port holds `held` bytes, of which `over` are in its headroom where memory is shared (0
# elsewhere), and `is_pausing` its link, which is told again at `renew_ps`. A host at the far end is
# paused from `since_ps` until `far_until_ps` at most.
GATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("leaves_ps", "opened_ps", "held", "over", "renew_ps", "closed_ps", "until_ps"),
            *("storm_ps", "since_ps", "far_until_ps", "begun", "framed"),
        )
    ]
    + [
        (name, np.int32)
        for name in ("bytes", "came_by", "state", "is_pausing", "is_owed", "is_told", "is_losing")
    ],
    align=True,
)
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
NOBODY = -1
LOSS = int(Stream.LOSS)
# Whether a port is paused; TRIPPED: it is told to be, for so long that the watchdog has acted.
OPEN, CLOSED, TRIPPED = range(3)
# Columns of `World.paces` that are of control frames.
FRAME_SENDING, FRAME_SLOT = 1, 2
# What ports do by themselves at an instant, in this order; then others arrive, and last pauses are
# heeded. In a heap: the time within the window, above what it is, above the port.
LEAVES, BEGINS, TELLS, RENEWS, TURNS, TRIPS = range(6)
MOMENTS_A_PORT = 5
MOMENT_BITS = PORT_BITS + 3


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
    room = world.rooms[at(first + came_by)]
    is_above = is_above_room(world, node, buffer, room, size)
    is_dropping = gate.state == TRIPPED and world.rooms[at(number)].drops != 0
    if is_dropping or not has_room(world, buffer, room, size, is_above):
        drop(world, number)
        return waiting

    ledger = world.ledgers[at(number)]
    if is_long:
        status |= MARKED
        ledger.marked += 1

    # It was held for what others have waiting, not here.
    if status & HELD:
        status ^= HELD
        if link.occupancy == 0 and gate.state != CLOSED:
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
        buffer.renew_ps = now_ps + room.again_ps
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
        room = world.rooms[at(first + port)]
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
    if gate.is_owed:
        send_frame(world, number, level, now_ps)
    elif gate.state != CLOSED and link.cursor != link.tail:
        send_packet(world, number, level, now_ps)
    else:
        return waiting

    return put(heap, waiting, LEAVES, port, gate.leaves_ps, start_ps, end_ps)


@inlined
def send_frame(world, number, level, now_ps):
    """Begin to send the control frame that waits: it says what was told last."""
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
    frame.status = gate.is_told | (LOST if is_lost else 0)
    world.counters[LIVE] += 1


@inlined
def frame_times(world, number, now_ps):
    """Return how long a control frame that starts now is being sent, and holds the link."""
    if world.constants.is_slowed:
        row = pace(world, number, now_ps, now_ps)
        return world.paces[row, FRAME_SENDING], world.paces[row, FRAME_SLOT]

    room = world.rooms[at(number)]
    return room.sending_ps, room.slot_ps


@inlined
def is_lost_now(world, number, stream, count, now_ps):
    """Return whether a transmission that starts now never arrives: the link is dead, or by chance.

    It is number `count` of its kind there, whose draws are a stream of their own.
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
    own = passage(world, level, kind)
    sending_ps, slot_ps = holding(world, number, level, kind, now_ps=now_ps, start_ps=now_ps)
    since_ps = (packet.time_ps ^ FAR) >> PORT_BITS
    is_lost = is_lost_now(world, number, component(LOSS, number), gate.begun, now_ps)
    gate.begun += 1
    gate.is_losing = 1 if is_lost else 0
    gate.came_by = packet.time_ps & PORT_MASK
    gate.bytes = own.bytes
    gate.leaves_ps = now_ps + sending_ps
    link.free_ps = now_ps + slot_ps
    packet.status |= LOST if is_lost else 0

    # A pause that came later has ended later, too.
    if gate.opened_ps >= since_ps:
        packet.status |= HELD

    packet.time_ps = gate.leaves_ps + own.latency_ps
    pass_by(world, link)


@inlined
def pass_by(world, link):
    """Let a port be through with the packet that has waited longest."""
    slot = link.cursor
    link.cursor = following(world.pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(world.pool, slot, world.counters)
        foresee_chunk(world.pool, link.cursor)


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

    world.ledgers[at(first + port)].lost_to_failure += gate.is_losing
    gate.is_losing = 0
    size = np.int64(gate.bytes)
    return give_back(world, heap, waiting, node, port, came_by, size, now_ps, start_ps, end_ps)


@inlined
def give_back(world, heap, waiting, node, port, came_by, size, now_ps, start_ps, end_ps):
    """Take a packet that came in by a port off its queue and buffer, which may end a pause.

    Return how many events wait in the heap.
    """
    first = np.int64(node.first_port)
    link = world.links[at(first + port)]
    link.occupancy -= size
    link.byte_ps += size * now_ps
    buffer = world.gates[at(first + came_by)]
    buffer.held -= size
    # What is in the headroom leaves first.
    buffer.over = max(buffer.over - size, 0)
    room = world.rooms[at(first + came_by)]
    if buffer.is_pausing != 0 and may_go_on(world, node, buffer, room):
        buffer.is_pausing = 0
        buffer.renew_ps = FAR
        waiting = put(heap, waiting, TELLS, came_by, now_ps, start_ps, end_ps)

    return waiting


@inlined
def tell(world, heap, waiting, node, port, is_pause, now_ps, start_ps, end_ps):
    """Send a pause or its end back by a port; return how many events wait in the heap.

    A control frame that still waits says this in place of what it was to say.
    """
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    gate.is_owed = 1
    gate.is_told = is_pause
    world.ledgers[at(number)].pauses += is_pause
    return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


@inlined
def heed(world, heap, waiting, node, port, is_pause, now_ps, start_ps, end_ps):
    """Pause a port or let it go on; return how many events wait in the heap."""
    number = np.int64(node.first_port) + port
    gate = world.gates[at(number)]
    world.counters[LIVE] -= 1
    if is_pause:
        close(gate, now_ps, now_ps + world.rooms[at(number)].lasts_ps)
        return waiting

    if gate.state == OPEN:
        return waiting

    reopen(world, number, now_ps, now_ps)
    return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


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


@inlined
def put(heap, waiting, moment, port, time_ps, start_ps, end_ps):
    """Put what a port does by itself before `end_ps` on the heap; return how many wait there."""
    if time_ps >= end_ps:
        return waiting

    heap[at(waiting)] = ((time_ps - start_ps) << MOMENT_BITS) | (moment << PORT_BITS) | port
    sift_up(heap, waiting)
    return waiting + 1
