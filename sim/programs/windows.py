"""Runs in which a P4 program forwards: all hosts, then all switches, window by window.

What one switch does in a window is in `sim.programs.switches`, what one of its ports does with a
packet in `sim.programs.ports`. A packet that leaves at t reaches the next node at t + latency, and
so no window may be longer than that.
"""

from functools import partial

import numpy as np

from hostagent.transports.state import NEVER
from sim.kernels.desk import RECEIPTS, WINDOW
from sim.kernels.hosts import serve_machine
from sim.kernels.jit import at, inlined, kernel
from sim.kernels.lists import following
from sim.kernels.plain import known
from sim.kernels.ports import FAR, HOST_LEVEL, host_sending_ps, passage, size_of
from sim.kernels.state import CLOCK, DATA, LOST, SPARE
from sim.kernels.switches import PORT_BITS, PORT_MASK
from sim.kernels.windows import chunks_needed, next_event, through_windows
from sim.programs.ports import depart, next_of_port, put_frame
from sim.programs.switches import TOP, departures, entry, put, serve_switch


@partial(kernel, long_name="the kernels around programs")
def advance_program(world, routes, until_ps, frames, program, desk):
    """Run from the clock to `until_ps` in one thread; return how that ended."""
    return through_windows(
        (known(world), routes, frames, program, desk),
        until_ps,
        has_room=has_room,
        serve_all_hosts=serve_all_hosts,
        serve_all_switches=serve_all_switches,
        next_of_all=next_of_all,
    )


@inlined
def has_room(work):
    """Return whether the next window has enough chunks, and room for its samples."""
    world, _, frames, _, desk = work
    return world.counters[SPARE] >= chunks_needed(world) and has_samples(world, frames, desk)


@inlined
def has_samples(world, frames, desk):
    """Return whether there is room for the next window's samples."""
    if frames.sample_ps == 0:
        return True

    end_ps = world.counters[CLOCK] + world.constants.window_ps
    return end_ps // frames.sample_ps + 1 < len(desk.longest)


@inlined
def serve_all_hosts(work, end_ps):
    """Serve all hosts until before `end_ps`; return how many packets they handled."""
    world, routes, frames, _, desk = work
    return serve_programmed_hosts(
        world,
        routes,
        frames,
        desk,
        first=np.int64(0),
        last=world.constants.machines,
        end_ps=end_ps,
    )


@inlined
def serve_all_switches(work, end_ps):
    """Serve all switches until before `end_ps`; return how many packets they handled."""
    world, _, frames, program, desk = work
    return serve_programmed_switches(
        world,
        frames,
        program,
        desk,
        first=np.int64(0),
        last=world.constants.switches,
        end_ps=end_ps,
    )


@inlined
def next_of_all(work):
    """Return when the next thing happens anywhere, or NEVER."""
    return next_to_serve(work[0], work[2])


@kernel
def next_to_serve(world, frames):
    """Return the time of the next event, or of the next sample of queues that are not empty."""
    departure_ps = next_of_ports(world)
    next_ps = min(next_event(world), departure_ps)
    # What waits until its departure is seen by all samples before it.
    if frames.sample_ps > 0 and departure_ps < FAR:
        now_ps = world.counters[CLOCK]
        sample_ps = (now_ps + frames.sample_ps - 1) // frames.sample_ps * frames.sample_ps
        next_ps = min(next_ps, sample_ps)

    return next_ps


@kernel
def next_programmed_event(world):
    """Return when the next packet arrives or leaves, a computation ends or a host may send."""
    # Egress is an event of its own, a latency before what it does to a packet is seen.
    return min(next_event(world), next_of_ports(world))


@kernel
def next_of_ports(world):
    """Return when the next packet leaves a switch, or NEVER."""
    next_ps = NEVER
    for switch in range(world.constants.switches):
        node = world.switches[at(switch)]
        for port in range(np.int64(node.ports)):
            next_ps = min(next_ps, next_of_port(world, node, port))

    return next_ps


@kernel
def serve_programmed_hosts(world, routes, frames, desk, first, last, end_ps):
    """Serve machines `first` to `last` - 1 from the clock until before `end_ps`.

    Return how many packets they received or sent.
    """
    world = known(world)
    served = 0
    start_ps = world.counters[CLOCK]
    desk.marks[RECEIPTS] = 0
    desk.marks[WINDOW] = start_ps
    for machine in range(first, last):
        served += serve_machine(
            world, routes, frames, desk, number=machine, start_ps=start_ps, end_ps=end_ps
        )

    return served


@kernel
def serve_programmed_switches(world, frames, program, desk, first, last, end_ps):
    """Serve switches `first` to `last` - 1 from the clock until before `end_ps`.

    Return how many packets arrived or left.
    """
    world = known(world)
    served = 0
    start_ps = world.counters[CLOCK]
    for switch in range(first, last):
        served += serve_switch(
            world, frames, program, desk, switch, start_ps=start_ps, end_ps=end_ps
        )

    return served


@kernel
def in_flight(world, end_ps):
    """Return how many packets are under way at the end; later receipts of hosts are left out."""
    constants = world.constants
    packets = world.pool.packets
    ports = constants.ports
    count = 0
    for number in range(len(world.links)):
        link = world.links[at(number)]
        slot = np.int64(link.taken)
        while slot != link.tail:
            packet = packets[at(slot)]
            # Only of hosts' links does it matter when: what a host has sent after the end has not
            # been sent.
            sent_ps = end_ps
            if ports <= number < ports + constants.hosts:
                kind = size_of(world, packet, int(packet.status))
                sending_ps = host_sending_ps(world, number, kind)
                latency_ps = passage(world, HOST_LEVEL, DATA).latency_ps
                sent_ps = packet.time_ps - latency_ps - sending_ps

            if not packet.status & LOST and sent_ps <= end_ps:
                count += 1

            slot = following(world.pool, slot)

    return count


@kernel
def depart_now(world, frames, program, desk, now_ps):
    """Let all packets leave whose last bit has left by `now_ps`, which the clock has reached."""
    constants = world.constants
    for switch in range(constants.switches):
        node = world.switches[at(switch)]
        for port in range(np.int64(node.ports)):
            departure_ps = next_of_port(world, node, port)
            if departure_ps <= now_ps:
                depart(world, frames, program, desk, switch, port, departure_ps, now_ps)

    put_frame(frames, desk)


@kernel
def drain(world, frames, program, desk, now_ps):
    """Let all waiting packets leave after the end, in order, so that egress runs for them.

    Programs see the time of the end. Packets and ports cannot be used afterwards.
    """
    for switch in range(world.constants.switches):
        departures(world, frames, program, desk, switch, now_ps, FAR)
        while desk.soonest[TOP] < FAR:
            port = desk.soonest[TOP] & PORT_MASK
            leaves_ps = now_ps + (desk.soonest[TOP] >> PORT_BITS)
            next_ps = depart(world, frames, program, desk, switch, port, leaves_ps, now_ps)
            put(desk.soonest, port, entry(port, next_ps, now_ps, FAR))

    put_frame(frames, desk)
