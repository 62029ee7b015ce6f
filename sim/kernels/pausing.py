"""What a switch that pauses links does in one window: what arrives, leaves and is told, in order.

What comes in within a window was sent before it, and what is told in it is heeded after it. So all
that others do is known when the window opens, and a switch has only its own events to sort: what
its ports do by themselves is in a heap (`sim.kernels.gates`).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from hostagent.transports.state import NEVER
from sim.kernels.gates import (
    BEGINS,
    LEAVES,
    MOMENT_BITS,
    OPEN,
    RENEWS,
    TELLS,
    TRIPS,
    TURNS,
    begin,
    come_in,
    heed,
    let_leave,
    put,
    tell,
)
from sim.kernels.heaps import sift_down
from sim.kernels.jit import at, inlined, kernel, prefetch
from sim.kernels.lists import following, leave
from sim.kernels.pause_times import next_of_gate, renew, trip, trips_ps, turn, turns_ps
from sim.kernels.ports import FAR
from sim.kernels.state import CHUNK, CLOCK, LOST, Int32, Int64
from sim.kernels.switches import (
    PORT_BITS,
    PORT_MASK,
    SLOT_BITS,
    SLOT_MASK,
    TIME_BITS,
    foresee,
    foresee_groups,
    gather_lists,
    in_order,
    release,
)
from sim.kernels.windows import (
    has_room,
    next_event,
    serve_all_hosts,
    through_windows,
)

LINE_BYTES = 64


class Places(NamedTuple):
    """A thread's room for a switch that pauses, as `sim.kernels.state.Buffers`.

    Packets and control frames have keys of their own; `heap` is for what ports do by themselves.
    """

    keys: Int64
    sorted_keys: Int64
    buckets: Int32
    ends: Int64
    frames: Int64
    sorted_frames: Int64
    heap: Int64


@partial(kernel, long_name="the kernels of switches that pause")
def advance_pausing(world, routes, until_ps, places):
    """Run from the clock to `until_ps` in one thread; return how that ended."""
    return through_windows(
        (world, routes, places),
        until_ps,
        has_room=has_room,
        serve_all_hosts=serve_all_hosts,
        serve_all_switches=serve_all_switches,
        next_of_all=next_of_all,
    )


@inlined
def serve_all_switches(work, end_ps):
    """Serve all switches until before `end_ps`; return how much happened at them."""
    world, routes, places = work
    return serve_pausing_switches(
        world,
        routes,
        first=np.int64(0),
        last=world.constants.switches,
        end_ps=end_ps,
        places=places,
    )


@inlined
def next_of_all(work):
    """Return when the next thing happens anywhere, or NEVER."""
    return next_pausing_event(work[0])


@kernel
def next_pausing_event(world):
    """Return when the next thing happens at a host, on a link or at a port, or NEVER."""
    # FAR is NEVER, and what waits is beyond.
    next_ps = next_event(world)
    for number in range(len(world.gates)):
        next_ps = min(next_ps, next_of_gate(world, number))

    return next_ps


@kernel
def serve_pausing_switches(world, routes, first, last, end_ps, places):
    """Serve switches `first` to `last` - 1 from the clock until before `end_ps`.

    Return how much happened at them.
    """
    served = 0
    start_ps = world.counters[CLOCK]
    for switch in range(first, last):
        served += serve_switch(world, routes, switch, start_ps, end_ps, places)

    return served


@inlined
def serve_switch(world, routes, switch, start_ps, end_ps, places):
    """Serve a switch from `start_ps` until before `end_ps`; return how much happened."""
    if switch + 1 < world.constants.switches:
        foresee(world, switch + 1)
        foresee_groups(routes, switch + 1)
        foresee_gates(world, switch + 1)

    node = world.switches[at(switch)]
    heap = places.heap
    count, keys = packets_in(world, node, start_ps, end_ps, places)
    frames_count, frames = frames_in(world, node, start_ps, end_ps, places)
    waiting = own_events(world, node, heap, start_ps, end_ps)
    served = count + frames_count + waiting
    position = 0
    frame = 0

    while True:
        own_at = heap[0] >> MOMENT_BITS if waiting > 0 else FAR
        comes_at = keys[at(position)] >> TIME_BITS if position < count else FAR
        told_at = frames[at(frame)] >> TIME_BITS if frame < frames_count else FAR

        if waiting > 0 and own_at <= min(comes_at, told_at):
            waiting = happen(world, heap, waiting, node, start_ps, end_ps)
        elif position < count and comes_at <= told_at:
            key = keys[at(position)]
            position += 1
            waiting = come_in(
                world,
                routes,
                heap,
                waiting,
                switch,
                came_by=(key >> SLOT_BITS) & PORT_MASK,
                slot=key & SLOT_MASK,
                now_ps=start_ps + comes_at,
                start_ps=start_ps,
                end_ps=end_ps,
            )
        elif frame < frames_count:
            key = frames[at(frame)]
            frame += 1
            waiting = heed(
                world,
                heap,
                waiting,
                node,
                port=(key >> SLOT_BITS) & PORT_MASK,
                is_pause=np.int64(world.pool.packets[at(key & SLOT_MASK)].status),
                now_ps=start_ps + told_at,
                start_ps=start_ps,
                end_ps=end_ps,
            )
        else:
            break

    note_heeded(world, node, end_ps)
    release(world, switch, places.ends)
    return served


@inlined
def foresee_gates(world, switch):
    """Ask for what a switch's ports have beside their links."""
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    for number in range(first, first + node.ports):
        prefetch(world.gates[at(number)])
        prefetch(world.gates[at(number)], LINE_BYTES)


@inlined
def packets_in(world, node, start_ps, end_ps, places):
    """Return how many packets arrive before `end_ps`, and their keys in order."""
    keys = places.keys
    count = gather_lists(world, node, 0, 0, start_ps, end_ps=end_ps, keys=keys, ends=places.ends)
    return in_order(world, keys, count, places.sorted_keys, places.buckets)


@inlined
def frames_in(world, node, start_ps, end_ps, places):
    """Return how many control frames arrive before `end_ps`, and their keys in order."""
    keys = places.frames
    count = gather_lists(world, node, 1, 0, start_ps, end_ps=end_ps, keys=keys, ends=places.ends)
    return in_order(world, keys, count, places.sorted_frames, places.buckets)


@inlined
def own_events(world, node, heap, start_ps, end_ps):
    """Put on the heap what ports do next by themselves before `end_ps`; return how many do."""
    first = np.int64(node.first_port)
    waiting = np.int64(0)
    for port in range(np.int64(node.ports)):
        gate = world.gates[at(first + port)]
        leaves_ps = gate.leaves_ps
        free_ps = world.links[at(first + port)].free_ps
        # A port that is free since the last window has looked at what it has.
        if leaves_ps != FAR:
            waiting = put(heap, waiting, LEAVES, port, leaves_ps, start_ps, end_ps)
        elif free_ps >= start_ps:
            waiting = put(heap, waiting, BEGINS, port, free_ps, start_ps, end_ps)

        # A pause, its half and a watchdog's patience are longer than a window: none of these begins
        # and ends within one.
        waiting = put(heap, waiting, RENEWS, port, gate.renew_ps, start_ps, end_ps)
        waiting = put(heap, waiting, TURNS, port, turns_ps(gate), start_ps, end_ps)
        waiting = put(heap, waiting, TRIPS, port, trips_ps(world, first + port), start_ps, end_ps)

    return waiting


@inlined
def happen(world, heap, waiting, node, start_ps, end_ps):
    """Let happen what is on top of the heap; return how many events then wait there."""
    event = heap[0]
    now_ps = start_ps + (event >> MOMENT_BITS)
    moment = (event >> PORT_BITS) & 7
    port = event & PORT_MASK
    waiting -= 1
    heap[0] = heap[at(waiting)]
    sift_down(heap, waiting)

    if moment == LEAVES:
        return let_leave(world, heap, waiting, node, port, now_ps, start_ps, end_ps)
    if moment == BEGINS:
        return begin(world, heap, waiting, node, port, now_ps, start_ps, end_ps)
    if moment == TELLS:
        return tell(world, heap, waiting, node, port, 0, now_ps, start_ps, end_ps)
    if moment == RENEWS:
        return renew(world, heap, waiting, node, port, now_ps, start_ps, end_ps)
    if moment == TURNS:
        return turn(world, heap, waiting, node, port, now_ps, start_ps, end_ps)

    return trip(world, heap, waiting, node, port, now_ps, start_ps, end_ps)


@inlined
def note_heeded(world, node, end_ps):
    """Count how long the hosts below a switch have been paused by pauses that are over.

    Who sends them counts, a latency later: a host is served beyond the end of the run, and would
    count what comes after it.
    """
    pool = world.pool
    first = np.int64(node.first_port)
    for number in range(first, first + node.ports):
        lane = world.links[at(world.constants.lanes + number)]
        while lane.cursor != lane.tail and pool.packets[at(lane.cursor)].time_ps < end_ps:
            slot = lane.cursor
            frame = pool.packets[at(slot)]
            if world.inputs[at(number)] >= world.constants.ports and not frame.status & LOST:
                note_frame(world, number, np.int64(frame.status), frame.time_ps)

            lane.cursor = following(pool, slot)
            if (slot + 1) % CHUNK == 0:
                leave(pool, slot, world.counters)


@inlined
def note_frame(world, number, is_pause, time_ps):
    """Count the pause of a host that a control frame ends, or that had ended before it."""
    gate = world.gates[at(number)]
    is_over = not is_pause or time_ps >= gate.far_until_ps
    if is_over and gate.since_ps != NEVER:
        ends_ps = min(time_ps, gate.far_until_ps)
        world.ledgers[at(world.inputs[at(number)])].paused_ps += ends_ps - gate.since_ps
        gate.since_ps = NEVER

    if is_pause:
        gate.since_ps = min(gate.since_ps, time_ps)
        gate.far_until_ps = time_ps + world.rooms[at(number)].lasts_ps


@kernel
def end_pauses(world, end_ps):
    """Bring queues' integrals and pauses that last to the end of the run."""
    for number in range(len(world.gates)):
        link = world.links[number]
        gate = world.gates[number]
        link.byte_ps += link.occupancy * end_ps
        if gate.state != OPEN:
            world.ledgers[number].paused_ps += end_ps - gate.closed_ps
        if gate.since_ps != NEVER:
            ends_ps = min(end_ps, gate.far_until_ps)
            world.ledgers[world.inputs[number]].paused_ps += ends_ps - gate.since_ps
