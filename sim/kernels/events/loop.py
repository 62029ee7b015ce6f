"""A switch in one window, in the order of time: packets, control frames, and its ports' events.

Packets that come in within a window were sent before it, and packets sent in it arrive after it. So
all acts of other nodes are known when the window opens, and a switch has only the events of its own
ports to sort (`sim.kernels.events.upcoming`). At equal times ports are first, by kind and number,
then packets arrive by port (design, decision 8), and last control frames are heeded.

A built-in rule forwards, or a program (`None` without a program), which has frames. `gates` is None
if departures are foreseen (`sim.kernels.ports`), else `World.gates`.
"""

import numpy as np

from hostagent.transports.state import NEVER
from sim.kernels.blocks import block
from sim.kernels.desk import layer_of
from sim.kernels.events.gates import begin, come_in, heed, let_leave, tell
from sim.kernels.events.pause_times import renew, trip, turn
from sim.kernels.events.programs import arrive, depart, put_frame, put_state
from sim.kernels.events.upcoming import (
    BEGINS,
    EVENT_BITS,
    KIND_MASK,
    LEAVES,
    NOTHING,
    RENEWS,
    SAMPLES,
    TELLS,
    TOP,
    TURNS,
    fill,
    next_of_switch,
    own_events,
    update,
)
from sim.kernels.foresight import foresee, foresee_groups
from sim.kernels.jit import at, inlined, prefetch, prefetch_at
from sim.kernels.lists import following, leave
from sim.kernels.ports import FAR
from sim.kernels.records import CHUNK
from sim.kernels.state import LOST
from sim.kernels.switches import (
    PORT_BITS,
    PORT_MASK,
    SLOT_BITS,
    SLOT_MASK,
    TIME_BITS,
    gather,
    gather_lists,
    in_order,
    release,
)

# How many arrivals ahead memory is asked for, and how long a line of it is.
FORESIGHT = 6
LINE_BYTES = 64
# Lists of a link: its packets, and its control frames.
PACKETS, CONTROL = range(2)


@inlined
def serve_switch(world, routes, frames, program, desk, gates, switch, start_ps, end_ps):
    """Serve a switch from `start_ps` until before `end_ps`; return the number of events."""
    window = (start_ps, end_ps)
    node = world.switches[at(switch)]
    count, keys = packets_in(world, desk, gates, switch, window)
    told, frame_keys = frames_in(world, desk, gates, switch, window)
    fill(world, gates, desk.soonest, node, window)
    sample_at = first_sample(frames, window)
    for ahead in range(FORESIGHT):
        foresee_arrival(frames, keys, ahead, count)

    served = count + told
    packet = 0
    frame = 0
    while True:
        event = desk.soonest[TOP]
        arrives_at = keys[at(packet)] >> TIME_BITS if packet < count else NOTHING
        heeded_at = frame_keys[at(frame)] >> TIME_BITS if frame < told else NOTHING
        comes_at = min(arrives_at, heeded_at)

        if event < (sample_at << EVENT_BITS | SAMPLES) and event >> EVENT_BITS <= comes_at:
            if event == FAR:
                break

            happen(world, frames, program, desk, gates, window, switch)
            served += 1
        elif sample_at <= comes_at and sample_at < NOTHING:
            sample_at = sample(world, frames, desk, switch, sample_at, window)
        elif arrives_at <= heeded_at:
            key = keys[at(packet)]
            foresee_arrival(frames, keys, packet + FORESIGHT, count)
            packet += 1
            let_arrive(world, routes, frames, program, desk, gates, window, switch, key)
        else:
            let_heed(world, desk, gates, window, switch, frame_keys[at(frame)])
            frame += 1

    end_window(world, frames, program, desk, gates, switch, end_ps)
    rest(world, gates, switch, served, end_ps)
    return served


@inlined
def rest(world, gates, switch, served, end_ps):
    """Let a switch at which nothing has happened sleep until its next event or arrival."""
    # After a busy window the next is rarely empty: to look at all ports costs more than to serve.
    until_ps = end_ps
    if served == 0:
        until_ps = next_of_switch(world, gates, switch)
        if gates is not None:
            until_ps = min(until_ps, next_heeded(world, world.switches[at(switch)]))

    world.wakes_ps[own_events(world, switch)] = until_ps


@inlined
def end_window(world, frames, program, desk, gates, switch, end_ps):
    """Put the desk's state and frame into their places; give back slots that were taken in."""
    if program is not None:
        put_state(frames, desk)
        put_frame(frames, desk)

    if gates is not None:
        note_heeded(world, world.switches[at(switch)], end_ps)

    release(world, switch, desk.ends)


@inlined
def foresee_next(world, routes, frames, program, gates, switch, end_ps):
    """Prefetch the memory of the next switch."""
    foresee(world, switch, end_ps)
    if program is None:
        foresee_groups(routes, switch)
    else:
        foresee_late(world, frames, program, switch)

    if gates is not None:
        foresee_gates(world, switch)


@inlined
def foresee_gates(world, switch):
    """Prefetch the gates of a switch's ports."""
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    for number in range(first, first + node.ports):
        prefetch(world.gates[at(number)])
        prefetch(world.gates[at(number)], LINE_BYTES)


@inlined
def foresee_late(world, frames, program, switch):
    """Prefetch a program's variables of a switch's packets that leave next, or their frames."""
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    for number in range(first, first + np.int64(node.ports)):
        link = world.links[at(number)]
        cursor = np.int64(link.cursor)
        if program.leaves != 0:
            prefetch_at(frames.late_address + 8 * frames.late_words * cursor)
        elif program.passes == 0 and cursor != link.tail:
            prefetch_at(frames.address + block(frames, cursor))
            prefetch_at(frames.address + block(frames, cursor) + frames.state_at)


@inlined
def foresee_arrival(frames, keys, position, count):
    """Prefetch the beginning of the block of a packet that will arrive soon, if any."""
    if frames is not None and position < count:
        address = frames.address + block(frames, keys[at(position)] & SLOT_MASK)
        prefetch_at(address)
        if 8 * frames.host_words > LINE_BYTES:
            prefetch_at(address + LINE_BYTES)


@inlined
def packets_in(world, desk, gates, switch, window):
    """Return how many packets arrive in a window, and their keys in order."""
    start_ps, end_ps = window
    keys = desk.keys
    if gates is None:
        count = gather(world, switch, start_ps, end_ps=end_ps, keys=keys, ends=desk.ends)
    else:
        node = world.switches[at(switch)]
        count = gather_lists(
            world, node, PACKETS, 0, start_ps, end_ps=end_ps, keys=keys, ends=desk.ends
        )

    return in_order(world, keys, count, desk.sorted_keys, desk.buckets)


@inlined
def frames_in(world, desk, gates, switch, window):
    """Return how many control frames arrive in a window, and their keys in order."""
    keys = desk.control
    if gates is None:
        return np.int64(0), keys

    start_ps, end_ps = window
    node = world.switches[at(switch)]
    count = gather_lists(
        world, node, CONTROL, 0, start_ps, end_ps=end_ps, keys=keys, ends=desk.ends
    )
    return in_order(world, keys, count, desk.sorted_control, desk.buckets)


@inlined
def happen(world, frames, program, desk, gates, window, switch):
    """Let the first event of a switch's ports happen."""
    event = desk.soonest[TOP]
    port = event & PORT_MASK
    kind = (event >> PORT_BITS) & KIND_MASK
    now_ps = window[0] + (event >> EVENT_BITS)
    node = world.switches[at(switch)]
    if gates is None:
        if program is not None:
            depart(world, frames, program, desk, switch, port, now_ps, now_ps)
    elif kind == LEAVES:
        let_leave(world, frames, program, desk, window, switch, port, now_ps, now_ps)
    elif kind == BEGINS:
        begin(world, node, port, now_ps)
    elif kind == TELLS:
        tell(world, node, port, 0, now_ps)
    elif kind == RENEWS:
        renew(world, node, port, now_ps)
    elif kind == TURNS:
        turn(world, node, port, now_ps)
    else:
        trip(world, frames, program, desk, window, switch, port, now_ps)

    update(world, gates, desk.soonest, node, port, window)


@inlined
def let_arrive(world, routes, frames, program, desk, gates, window, switch, key):
    """Let a packet arrive."""
    now_ps = window[0] + (key >> TIME_BITS)
    came_by = (key >> SLOT_BITS) & PORT_MASK
    slot = key & SLOT_MASK
    if gates is None:
        if program is not None:
            port = arrive(world, frames, program, desk, switch, came_by, now_ps, slot)
            if port >= 0:
                update(world, gates, desk.soonest, world.switches[at(switch)], port, window)
    else:
        come_in(world, routes, frames, program, desk, window, switch, came_by, slot, now_ps)


@inlined
def let_heed(world, desk, gates, window, switch, key):
    """Let a port heed a control frame."""
    if gates is not None:
        port = (key >> SLOT_BITS) & PORT_MASK
        is_pause = np.int64(world.pool.packets[at(key & SLOT_MASK)].status)
        heed(world, desk, switch, port, is_pause, now_ps=window[0] + (key >> TIME_BITS))
        update(world, gates, desk.soonest, world.switches[at(switch)], port, window)


@inlined
def first_sample(frames, window):
    """Return when queues are first sampled within a window, NOTHING if they are not."""
    if frames is None:
        return np.int64(NOTHING)

    if frames.sample_ps == 0:
        return np.int64(NOTHING)

    start_ps, end_ps = window
    after_ps = (start_ps + frames.sample_ps - 1) // frames.sample_ps * frames.sample_ps - start_ps
    return after_ps if start_ps + after_ps < end_ps else np.int64(NOTHING)


@inlined
def sample(world, frames, desk, switch, sample_at, window):
    """Note the longest queue of each of a switch's layers; return when the next sample is due."""
    if frames is None:
        return np.int64(NOTHING)

    start_ps, end_ps = window
    index = (start_ps + sample_at) // frames.sample_ps
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    for port in range(np.int64(node.ports)):
        layer = layer_of(node.tier, port >= node.south)
        occupancy = world.links[at(first + port)].occupancy
        if occupancy > desk.longest[index, layer]:
            desk.longest[index, layer] = occupancy

    sample_at += frames.sample_ps
    return sample_at if start_ps + sample_at < end_ps else np.int64(NOTHING)


@inlined
def note_heeded(world, node, end_ps):
    """Count how long the hosts below a switch have been paused by pauses that are over.

    The sender of a pause counts, a latency later: a host is served beyond the end of the run, and
    would count pauses that come after it.
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
def next_heeded(world, node):
    """Return when a host or a neighbour gets the first control frame that is to be counted."""
    next_ps = np.int64(FAR)
    first = np.int64(node.first_port)
    for number in range(first, first + node.ports):
        lane = world.links[at(world.constants.lanes + number)]
        if lane.cursor != lane.tail:
            next_ps = min(next_ps, world.pool.packets[at(lane.cursor)].time_ps)

    return next_ps


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
