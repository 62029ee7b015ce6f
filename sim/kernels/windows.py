"""The loop over windows, each shorter than a packet's way to the next node; nodes in turn.

A packet that a node handles at t reaches the next node no earlier than t + latency + its
serialisation. In a window of that length nodes are independent, so there is no event queue: every
node takes its links' packets, in order (simulator model, "Technique").
"""

from functools import partial

import numpy as np

from hostagent.transports.state import NEVER
from sim.kernels.events.upcoming import OPEN
from sim.kernels.foresight import awaiting, foresee, foresee_groups
from sim.kernels.hosts import awake, foresee_machine, next_arrival, serve_machine
from sim.kernels.jit import both, inlined, kernel
from sim.kernels.lists import following
from sim.kernels.plain import known
from sim.kernels.ports import (
    HOST_LEVEL,
    count_packet,
    host_sending_ps,
    level_of,
    passage,
    settle,
    size_of,
)
from sim.kernels.ready import start_flow
from sim.kernels.records import CHUNK
from sim.kernels.state import (
    CLOCK,
    DATA,
    LAST_DONE,
    LIVE,
    LOST,
    MISDELIVERED,
    SPARE,
    UNFINISHED,
    UNSERVED,
)
from sim.kernels.switches import serve_switch

# How `through_windows` ends.
REACHED, FINISHED, STARVED, STUCK, BROKEN = range(5)


@kernel
def start_flows(world, start_ps):
    """Start the flows that wait for no other, at their own time."""
    # A start in the future is no event of its own: the flow's first packet is due after it, and
    # until then its host has nothing of it to send.
    for flow in range(len(start_ps)):
        if world.flows.blocked[flow] == 0:
            start_flow(world, world.flows.table[flow].source, flow, start_ps[flow])


@partial(kernel, long_name="the simulator's kernels")
def advance(world, routes, until_ps, buffers):
    """Run from the clock to `until_ps` in one thread; return how that ended."""
    return through_windows(
        (known(world), routes, buffers),
        until_ps,
        has_room=has_room,
        serve_all_hosts=serve_all_hosts,
        serve_all_switches=serve_all_switches,
        next_of_all=next_of_all,
    )


@inlined
def through_windows(work, until_ps, has_room, serve_all_hosts, serve_all_switches, next_of_all):
    """Serve window after window until `until_ps`, or until flows are done or nothing can go on.

    `work` begins with the world; its other items are for the four functions, which serve nodes in
    one thread (`advance`, compiled) or in several (`sim.runs.threads`, interpreted). Return
    REACHED, FINISHED, STARVED (the pool may be too small for the next window), STUCK (no more
    events) or BROKEN (a program has broken a rule).
    """
    world = work[0]
    counters = world.counters
    while counters[CLOCK] < until_ps:
        if not has_room(work):
            return STARVED

        end_ps = min(counters[CLOCK] + world.constants.window_ps, until_ps)
        served = serve_all_hosts(work, end_ps)

        # Only hosts finish flows, so they come first. Switches still serve arrivals up to the last
        # completion, so that statistics do not depend on where windows happen to end.
        is_finished = counters[UNFINISHED] == 0
        if is_finished:
            end_ps = counters[LAST_DONE] + 1

        served += serve_all_switches(work, end_ps)
        counters[CLOCK] = end_ps

        if counters[MISDELIVERED] | counters[UNSERVED]:
            return BROKEN

        if is_finished:
            return FINISHED

        if served == 0:
            # Nothing was handled, so nothing can happen before the next event: however long that
            # takes, it costs no window.
            next_ps = next_of_all(work)
            if next_ps == NEVER:
                return STUCK

            counters[CLOCK] = max(end_ps, min(next_ps, until_ps))

    return REACHED


@inlined
def has_room(work):
    """Return whether the pool has the chunks that the next window may take."""
    world = work[0]
    return world.counters[SPARE] >= chunks_needed(world)


@inlined
def serve_all_hosts(work, end_ps):
    """Serve all hosts until before `end_ps`; return how many packets they handled."""
    world, routes, _ = work
    # Typed zeros: a plain 0 has the type of a literal, for which numba would compile once more.
    first, last = np.int64(0), world.constants.machines
    return hosts(world, routes, None, None, first, last, end_ps)


@inlined
def serve_all_switches(work, end_ps):
    """Serve all switches until before `end_ps`; return how many packets they handled."""
    world, routes, buffers = work
    return switches(
        world,
        routes,
        first=np.int64(0),
        last=world.constants.switches,
        end_ps=end_ps,
        buffers=buffers,
    )


@inlined
def next_of_all(work):
    """Return the time of the next event at any node, or NEVER."""
    return next_event(work[0])


@inlined
def hosts(world, routes, frames, desk, first, last, end_ps):
    """Serve machines `first` to `last` - 1 from the clock until before `end_ps`.

    Return how many packets they handled. `frames` and `desk` as in `serve_machine`.
    """
    served = 0
    world = known(world)
    start_ps = world.counters[CLOCK]
    following = awake(world, first, last, end_ps)
    behind = awake(world, following + 1, last, end_ps)
    while following < last:
        machine = following
        following = behind
        behind = awake(world, behind + 1, last, end_ps)
        if following < last:
            foresee_machine(world, following, behind)

        served += serve_machine(
            world, routes, frames, desk, number=machine, start_ps=start_ps, end_ps=end_ps
        )

    return served


@inlined
def switches(world, routes, first, last, end_ps, buffers):
    """Serve switches `first` to `last` - 1 from the clock until before `end_ps`.

    Return how many packets they handled.
    """
    served = 0
    world = known(world)
    start_ps = world.counters[CLOCK]
    following = awaiting(world, first, last, end_ps)
    while following < last:
        switch = following
        following = awaiting(world, switch + 1, last, end_ps)
        if following < last:
            foresee(world, following, end_ps)
            foresee_groups(routes, following)

        served += serve_switch(
            world, routes, switch, start_ps=start_ps, end_ps=end_ps, buffers=buffers
        )

    return served


@partial(kernel, long_name="hosts' kernels for threads")
def serve_hosts(world, routes, first, last, end_ps):
    """Serve a thread's part of the hosts."""
    return hosts(world, routes, None, None, first, last, end_ps)


@partial(kernel, long_name="switches' kernels for threads")
def serve_switches(world, routes, first, last, end_ps, buffers):
    """Serve a thread's part of the switches."""
    return switches(world, routes, first, last, end_ps, buffers)


@both
def chunks_needed(world):
    """Return how many chunks a window can take at most."""
    constants = world.constants

    # A live packet is appended at most twice in a window: as an ACK to its host's list, from there
    # to the link. Packets that switches append arrive after the window. New packets are at most one
    # a slot a host.
    slot_ps = passage(world, HOST_LEVEL, DATA).slot_ps
    slots = constants.window_ps // slot_ps + 1
    sends = constants.hosts * slots
    if constants.least_slot_ps < slot_ps:
        # And short packets, a single packet of each flow; packets of a flow are a slot apart.
        short = constants.hosts * (constants.window_ps // constants.least_slot_ps + 1)
        sends += min(short, len(world.flows.table) * slots)

    moves = 2 * (world.counters[LIVE] + sends)
    # A switch may answer each arrival by a pause, and each departure by a pause's end; a pause is
    # renewed once at most.
    if constants.is_pausing:
        moves += 2 * world.counters[LIVE] + constants.ports

    # A list takes a chunk whenever its last is full, and at most another as its last was partly
    # full.
    return moves // CHUNK + min(moves, len(world.links) + constants.hosts)


@kernel
def next_event(world):
    """Return when the next packet arrives, a computation ends or a host may send, or NEVER."""
    next_ps = NEVER

    # All links and hosts, not a heap: only an empty window asks, and the next window is not empty.
    for number in range(len(world.links)):
        next_ps = min(next_ps, next_arrival(world.pool, world.links[number]))

    for number in range(len(world.hosts)):
        next_ps = min(next_ps, next_act(world.hosts[number]))

    return next_ps


@inlined
def next_act(host):
    """Return when a host may send or its computation ends, NEVER if neither will happen."""
    # A pause ends at its time at the latest; a resume is a packet's arrival.
    data_ps = max(host.ready_ps, host.data_free_ps)
    send_ps = max(host.free_ps, np.int64(0) if host.acks > 0 else data_ps)
    return min(max(send_ps, host.until_ps), host.timer_ps)


@kernel
def settle_all(world, now_ps, refresh):
    """Bring the occupancy of all switch ports to `now_ps`.

    `refresh` lets adaptive load balancers with stale queues see it.
    """
    # Links are numbered ports first: those of hosts, behind them, have no queue.
    for number in range(world.constants.ports):
        link = world.links[number]
        level = level_of(world.constants, number)
        settle(world, link, level, now_ps)
        if refresh:
            world.ledgers[number].stale_bytes = link.occupancy
            # If ports pause, a packet that leaves now is still to leave.
            if world.constants.is_pausing and world.gates[number].leaves_ps == now_ps:
                world.ledgers[number].stale_bytes -= world.gates[number].bytes


@kernel
def truncate(world, end_ps):
    """Remove from the statistics all after the end: waits at ports, and packets of hosts.

    Hosts are served for whole windows, and a packet's whole wait is counted when it is queued.
    """
    settle_all(world, end_ps, False)
    constants = world.constants
    packets = world.pool.packets
    ports = constants.ports

    # Packets in lanes are in no statistic but those of links, which have all packets. If ports
    # pause, no packet is counted before its end.
    for number in range(ports if constants.is_pausing else 0, ports + constants.hosts):
        link = world.links[number]
        level = level_of(constants, number)
        # At a port, packets that had not left by the end; on a host's link, packets that no switch
        # has taken, since all that were sent after the end are under way.
        slot = link.cursor if number < ports else link.taken
        while slot != link.tail:
            kind = size_of(world, packets[slot], int(packets[slot].status))
            packet_passage = passage(world, level, kind)
            departure_ps = packets[slot].time_ps - packet_passage.latency_ps

            if number < ports:
                link.byte_ps -= packet_passage.bytes * (departure_ps - end_ps)
            elif departure_ps - host_sending_ps(world, number, kind) > end_ps:
                count_packet(world, number, kind, -1)
                is_lost = packets[slot].status & LOST
                world.ledgers[number].lost_to_failure -= 1 if is_lost else 0

            slot = following(world.pool, slot)

    end_pauses(world, end_ps)


@inlined
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
