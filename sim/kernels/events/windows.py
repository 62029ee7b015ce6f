"""Runs of switches with events: all hosts, then all switches, window by window.

A switch's window is in `sim.kernels.events.loop`. A packet that leaves at t reaches the next node
at t + latency, and so no window may be longer than that.
"""

from functools import partial

import numpy as np

from hostagent.transports.state import NEVER
from sim.kernels.desk import RECEIPTS, WINDOW
from sim.kernels.events.loop import first_sample, foresee_next, happen, serve_switch
from sim.kernels.events.programs import depart, egress_of, put_frame
from sim.kernels.events.upcoming import (
    EVENT_BITS,
    NOBODY,
    NOTHING,
    TOP,
    fill,
    next_of_switch,
    own_events,
    update,
)
from sim.kernels.foresight import awaiting
from sim.kernels.jit import at, both, inlined, kernel
from sim.kernels.lists import following
from sim.kernels.plain import known
from sim.kernels.ports import FAR, HOST_LEVEL, host_sending_ps, passage, size_of
from sim.kernels.state import CLOCK, DATA, LOST, SPARE
from sim.kernels.switches import PORT_MASK
from sim.kernels.windows import chunks_needed, hosts, next_event, through_windows


@partial(kernel, long_name="the kernels around programs")
def advance_program(world, routes, until_ps, frames, program, desk, gates):
    """Run switches with a program to `until_ps` in one thread; return how that ended."""
    return through_windows(
        (known(world), routes, frames, program, desk, gates),
        until_ps,
        has_room=has_room,
        serve_all_hosts=serve_all_hosts,
        serve_all_switches=serve_all_switches,
        next_of_all=next_of_all,
    )


@partial(kernel, long_name="the kernels of switches that pause")
def advance_pausing(world, routes, until_ps, desk):
    """Run built-in rules at ports that pause to `until_ps` in one thread; return how that ended."""
    return through_windows(
        (world, routes, None, None, desk, world.gates),
        until_ps,
        has_room=has_room,
        serve_all_hosts=serve_all_plain_hosts,
        serve_all_switches=serve_all_switches,
        next_of_all=next_of_all,
    )


@inlined
def has_room(work):
    """Return whether the next window has enough chunks, and room for its samples."""
    world, _, frames, _, desk, _ = work
    return world.counters[SPARE] >= chunks_needed(world) and has_samples(world, frames, desk)


@inlined
def has_samples(world, frames, desk):
    """Return whether there is room for the next window's samples."""
    if frames is None:
        return True

    if frames.sample_ps == 0:
        return True

    end_ps = world.counters[CLOCK] + world.constants.window_ps
    return end_ps // frames.sample_ps + 1 < len(desk.longest)


@inlined
def serve_all_hosts(work, end_ps):
    """Serve all hosts, with frames, until before `end_ps`; return how many packets they handled."""
    world, routes, frames, _, desk, _ = work
    first, last = np.int64(0), world.constants.machines
    return programmed_hosts(world, routes, frames, desk, first, last, end_ps)


@inlined
def serve_all_plain_hosts(work, end_ps):
    """Serve all hosts until before `end_ps`; return how many packets they handled."""
    world, routes, _, _, _, _ = work
    return hosts(world, routes, None, None, np.int64(0), world.constants.machines, end_ps)


@inlined
def serve_all_switches(work, end_ps):
    """Serve all switches until before `end_ps`; return how much happened at them."""
    world, routes, frames, program, desk, gates = work
    first, last = np.int64(0), world.constants.switches
    return event_switches(
        world, routes, frames, program, desk, gates, first=first, last=last, end_ps=end_ps
    )


@inlined
def next_of_all(work):
    """Return the time of the next event at any node, or NEVER."""
    world, _, frames, _, _, gates = work
    return next_to_serve(world, frames, gates)


@both
def next_to_serve(world, frames, gates):
    """Return the time of the next event, or of the next sample of queues that are not empty."""
    next_ps = min(next_event(world), next_of_ports(world, gates))
    if frames is None:
        return next_ps

    # Whatever waits is seen by all samples until it leaves.
    if frames.sample_ps > 0 and is_waiting(world):
        now_ps = world.counters[CLOCK]
        sample_ps = (now_ps + frames.sample_ps - 1) // frames.sample_ps * frames.sample_ps
        next_ps = min(next_ps, sample_ps)

    return next_ps


@inlined
def is_waiting(world):
    """Return whether any packet waits at a switch."""
    waiting = 0
    for number in range(world.constants.ports):
        waiting += world.links[at(number)].occupancy

    return waiting > 0


@both
def next_programmed_event(world, gates):
    """Return the time of the next event at a host, on a link or at a port, or NEVER."""
    # Egress is an event of its own, a latency before its effect on a packet is seen.
    return min(next_event(world), next_of_ports(world, gates))


@both
def next_of_ports(world, gates):
    """Return when a port of a switch next does something by itself, or NEVER."""
    # FAR is NEVER.
    next_ps = NEVER
    for switch in range(world.constants.switches):
        next_ps = min(next_ps, next_of_switch(world, gates, switch))

    return next_ps


@inlined
def programmed_hosts(world, routes, frames, desk, first, last, end_ps):
    """Serve machines `first` to `last` - 1, with packets of bytes, until before `end_ps`.

    Return how many packets they received or sent.
    """
    desk.marks[RECEIPTS] = 0
    desk.marks[WINDOW] = world.counters[CLOCK]
    return hosts(world, routes, frames, desk, first, last, end_ps)


@inlined
def event_switches(world, routes, frames, program, desk, gates, first, last, end_ps):
    """Serve switches `first` to `last` - 1 from the clock until before `end_ps`.

    Return how much happened at them.
    """
    world = known(world)
    served = 0
    start_ps = world.counters[CLOCK]
    # A sample looks at all switches.
    has_sample = first_sample(frames, (start_ps, end_ps)) != NOTHING
    awake_ps = np.int64(NEVER + 1) if has_sample else end_ps
    following = busy(world, first, last, awake_ps)
    while following < last:
        switch = following
        following = busy(world, switch + 1, last, awake_ps)
        if following < last:
            foresee_next(world, routes, frames, program, gates, following, end_ps)

        served += serve_switch(
            world, routes, frames, program, desk, gates, switch, start_ps=start_ps, end_ps=end_ps
        )

    return served


@inlined
def busy(world, first, last, end_ps):
    """Return the first of switches `first` to `last` - 1 with an event or an arrival, or `last`."""
    for switch in range(first, last):
        is_due = world.wakes_ps[own_events(world, switch)] < end_ps
        if is_due or awaiting(world, switch, switch + 1, end_ps) == switch:
            return switch

    return last


@partial(kernel, long_name="hosts' kernels for threads")
def serve_programmed_hosts(world, routes, frames, desk, first, last, end_ps):
    """Serve a thread's part of the hosts, with packets of bytes."""
    return programmed_hosts(world, routes, frames, desk, first, last, end_ps)


@partial(kernel, long_name="switches' kernels for threads")
def serve_event_switches(world, routes, frames, program, desk, gates, first, last, end_ps):
    """Serve a thread's part of the switches."""
    return event_switches(world, routes, frames, program, desk, gates, first, last, end_ps)


@kernel
def in_flight(world, end_ps):
    """Return how many packets are under way at the end; later receipts of hosts are left out."""
    constants = world.constants
    packets = world.pool.packets
    ports = constants.ports
    count = 0
    # Where links are paused, lanes have control frames.
    lists = ports + constants.hosts if constants.is_pausing else len(world.links)
    for number in range(lists):
        link = world.links[at(number)]
        slot = np.int64(link.taken)
        while slot != link.tail:
            packet = packets[at(slot)]
            # The time matters on hosts' links only: packets that a host has sent after the end have
            # not been sent.
            sent_ps = end_ps
            if ports <= number < ports + constants.hosts:
                kind = size_of(world, packet, int(packet.status))
                sending_ps = host_sending_ps(world, number, kind)
                latency_ps = passage(world, HOST_LEVEL, DATA).latency_ps
                sent_ps = packet.time_ps - latency_ps - sending_ps

            if not packet.status & LOST and sent_ps <= end_ps:
                count += 1

            slot = following(world.pool, slot)

    # A gate counts a loss when the packet has left.
    for number in range(len(world.gates)):
        count += world.gates[at(number)].is_losing

    return count


@kernel
def depart_now(world, frames, program, desk, gates, now_ps):
    """Let all happen that ports do by themselves at this instant, which the clock has reached."""
    window = (now_ps, now_ps + 1)
    for switch in range(world.constants.switches):
        fill(world, gates, desk.soonest, world.switches[at(switch)], window)
        while desk.soonest[TOP] < FAR:
            happen(world, frames, program, desk, gates, window, switch)

    put_frame(frames, desk)


@kernel
def drain(world, frames, program, desk, gates, now_ps):
    """Let all waiting packets leave after the end, in order, so that egress runs for them.

    Programs see the time of the end. Packets and ports cannot be used afterwards.
    """
    window = (now_ps, np.int64(FAR))
    for switch in range(world.constants.switches):
        node = world.switches[at(switch)]
        if gates is None:
            fill(world, gates, desk.soonest, node, window)
            while desk.soonest[TOP] < FAR:
                port = desk.soonest[TOP] & PORT_MASK
                leaves_ps = now_ps + (desk.soonest[TOP] >> EVENT_BITS)
                depart(world, frames, program, desk, switch, port, leaves_ps, now_ps)
                update(world, gates, desk.soonest, node, port, window)
        else:
            for port in range(np.int64(node.ports)):
                drain_port(world, frames, program, desk, switch, port, now_ps)

    put_frame(frames, desk)


@inlined
def drain_port(world, frames, program, desk, switch, port, now_ps):
    """Run egress for packets that are being sent or wait at a port that may be paused."""
    number = np.int64(world.switches[at(switch)].first_port) + port
    gate = world.gates[at(number)]
    link = world.links[at(number)]
    if gate.leaves_ps != FAR and gate.came_by != NOBODY:
        slot = np.int64(gate.sent)
        egress_of(world, frames, program, desk, switch, port, slot, now_ps, now_ps)

    slot = np.int64(link.cursor)
    while slot != link.tail:
        egress_of(world, frames, program, desk, switch, port, slot, now_ps, now_ps)
        slot = following(world.pool, slot)
