"""What a machine does in one window: it merges arrivals with its links' opportunities to send.

Flows are paced and pull: a host has no queue of data but takes the next packet from the flow that
has been ready longest when the link is free (simulator model, "Hosts"; decision 3). What arrives
is in `sim.kernels.receiving`, what is sent in `sim.kernels.sending`, who is next in
`sim.kernels.ready`.
"""

import numpy as np

from hostagent.transports.state import NEVER
from sim.kernels.desk import note_arrival, note_receipt
from sim.kernels.frames import is_own
from sim.kernels.jit import at, inlined
from sim.kernels.lists import following, leave
from sim.kernels.ready import end_computation
from sim.kernels.receiving import receive
from sim.kernels.sending import send
from sim.kernels.state import CHUNK, LIVE, LOST, MISDELIVERED, RECEIVED

# What a host does next, in the order of one instant.
ARRIVES, ENDS, SENDS = range(3)


@inlined
def serve_machine(world, routes, frames, desk, number, start_ps, end_ps):
    """Receive and send at a machine's hosts from `start_ps` until before `end_ps`.

    A machine's hosts are its NICs, one a plane: what ends at one lets another begin. `frames` and
    `desk` are None where packets have no bytes (`sim.kernels.frames`). Return how many packets it
    received or sent.
    """
    constants = world.constants
    now_ps = start_ps
    count = 0

    while True:
        host = number
        first_ps, first = next_of_host(world, number, now_ps)
        for nic in range(number + constants.machines, constants.hosts, constants.machines):
            next_ps, what = next_of_host(world, nic, now_ps)
            if next_ps < first_ps or (next_ps == first_ps and what < first):
                first_ps, first, host = next_ps, what, nic

        if first_ps >= end_ps:
            return count

        count += 1
        now_ps = first_ps
        if first == SENDS:
            send(world, routes, frames, host, now_ps)
        elif first == ENDS:
            end_computation(world, host, now_ps)
        else:
            take_arrival(world, frames, desk, host, start_ps)


@inlined
def next_of_host(world, number, now_ps):
    """Return when a host has something to do, from `now_ps` on, and what."""
    # What arrives at an instant comes before what is sent then (decision 8): an ACK may change what
    # is sent, or whether anything is. So may a computation that ends.
    host = world.hosts[at(number)]
    port = towards(world.constants, number)
    arrival_ps = next_arrival(world.pool, world.links[at(first_list(world, port))])
    data_ps = max(host.ready_ps, host.data_free_ps)
    send_ps = max(host.free_ps, now_ps if host.acks > 0 else max(now_ps, data_ps))
    if arrival_ps <= min(send_ps, host.timer_ps):
        return arrival_ps, ARRIVES

    return (host.timer_ps, ENDS) if host.timer_ps <= send_ps else (send_ps, SENDS)


@inlined
def towards(constants, number):
    """Return the link towards a host: hosts are numbered edge by edge, as lower ports of edges."""
    edge = number // constants.hosts_per_edge
    return edge * constants.edge_ports + number % constants.hosts_per_edge


@inlined
def take_arrival(world, frames, desk, number, start_ps):
    """Receive the next packet on the link towards a host."""
    pool = world.pool
    link = world.links[at(first_list(world, towards(world.constants, number)))]
    slot = link.taken
    if is_accepted(world, frames, desk, number, slot, start_ps):
        packet = pool.packets[at(slot)]
        receive(world, frames, number, packet, packet.time_ps)

    link.taken = following(pool, slot)
    if (slot + 1) % CHUNK == 0:
        leave(pool, slot, world.counters)


@inlined
def first_list(world, number):
    """Return which of a link and its lane has the packet that arrives first."""
    lane = world.constants.lanes + number
    if world.constants.lanes > 0:
        arrival_ps = next_arrival(world.pool, world.links[at(lane)])
        if arrival_ps < next_arrival(world.pool, world.links[at(number)]):
            return lane

    return np.int64(number)


@inlined
def next_arrival(pool, link):
    """Return when the first packet that nobody has taken arrives, NEVER if there is none."""
    return pool.packets[at(link.taken)].time_ps if link.taken != link.tail else NEVER


@inlined
def is_accepted(world, frames, desk, number, slot, start_ps):
    """Return whether a packet is the host's own; its record then says what its bytes do."""
    packet = world.pool.packets[at(slot)]
    if frames is None or packet.status & LOST:
        return True

    note_receipt(desk, packet.time_ps - start_ps)
    note_arrival(world, frames, desk, world.constants.switches + number, 0, slot)
    world.counters[RECEIVED] += 1
    if is_own(world, frames, number, slot):
        return True

    world.counters[MISDELIVERED] += 1
    world.counters[LIVE] -= 1
    return False
