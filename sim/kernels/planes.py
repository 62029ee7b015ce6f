"""Planes that are not ready: a machine's other NICs send a flow's packets (`plane_use = "draw"`).

A flow is the part of a message in a plane. While its sender knows that a NIC at either end is down,
the flow waits in a heap of its machine, and each NIC of the machine takes packets from that heap in
turn with those from its own. The record with the heap stands behind all hosts in `World.hosts`. The
flow's state stays with it. A packet travels like those of the message's part in the plane of the
NIC that sends it. If no plane is ready for both ends, the flow stays at its own NIC.
"""

from hostagent.transports import labels
from hostagent.transports.state import NEVER
from sim.kernels.jit import at, inlined
from sim.kernels.ready import join, sender_of, take_out_first

# A machine's next event, in the order of an instant. A flow's move has no rank: it decides which
# NIC a packet waits for, and nothing else.
ARRIVES, ENDS, SENDS, HEEDS, MOVES = range(5)


@inlined
def is_up(world, nic, time_ps):
    """Return whether a NIC's port is up."""
    # Outages are fixed before the run, so reading them reads no state of another machine.
    first = world.outages_of[at(nic), 0]
    end = world.outages_of[at(nic), 1]
    while first < end:
        middle = (first + end) // 2
        if world.outages[at(middle), 1] > time_ps:
            end = middle
        else:
            first = middle + 1

    return time_ps < world.outages[at(first), 0]


@inlined
def is_ready(world, nic, peer, now_ps):
    """Return whether a machine may send from its NIC to a peer's NIC in the same plane.

    It knows its own ports at once, and others' by port status updates, which take half of the
    longest path's zero-load round trip.
    """
    if not is_up(world, nic, now_ps):
        return False

    return is_up(world, peer, now_ps - world.rules.zero_load_rtt_ps // 2)


@inlined
def note_event(world, number, now_ps):
    """Note when a machine, of which this is a host, has last had an event."""
    constants = world.constants
    if constants.is_drawing:
        world.hosts[at(constants.hosts + number % constants.machines)].free_ps = now_ps


@inlined
def way_of(world, flow, nic):
    """Return the flow of the message's part in the plane of a NIC: packets there take its way."""
    constants = world.constants
    if not constants.is_drawing:
        return flow

    plane = int(world.flows.table[at(flow)].source) // constants.machines
    return flow + (nic // constants.machines - plane) * constants.subflows


@inlined
def heap_of(world, flow, nic):
    """Return the record of `World.hosts` that has a flow of this NIC in its heap."""
    return int(world.flows.heap_of[at(flow)]) if world.constants.is_drawing else nic


@inlined
def answering(world, flow, nic, now_ps):
    """Return the NIC that acknowledges a packet which has arrived at a NIC: this one if it can."""
    constants = world.constants
    if not constants.is_drawing:
        return nic

    sender = int(world.flows.table[at(flow)].source) % constants.machines
    for _ in range(constants.planes):
        if is_ready(world, nic, sender + nic // constants.machines * constants.machines, now_ps):
            return nic

        nic = (nic + constants.machines) % constants.hosts

    # After a round it is the first again.
    return nic


@inlined
def relief(world, flow, due_ps):
    """Return when, and from which NIC but its own, a flow's packet that is due can leave first.

    NEVER if from none. Of several the next in turn.
    """
    constants = world.constants
    constant = world.flows.table[at(flow)]
    home = int(constant.source)
    machine = home % constants.machines
    last = int(world.hosts[at(constants.hosts + machine)].towards)
    best_ps = NEVER
    best = home
    for step in range(1, constants.planes + 1):
        nic = machine + (last + step) % constants.planes * constants.machines
        host = world.hosts[at(nic)]
        send_ps = max(due_ps, host.free_ps, host.data_free_ps, host.until_ps)
        peer = int(constant.destination) + nic - home
        if send_ps < best_ps and nic != home and is_ready(world, nic, peer, send_ps):
            best_ps = send_ps
            best = nic

    return best_ps, best


@inlined
def is_moved(world, flow, now_ps):
    """Return whether a flow's packets are to leave by other NICs than its own."""
    constant = world.flows.table[at(flow)]
    if is_ready(world, int(constant.source), int(constant.destination), now_ps):
        return False

    return relief(world, flow, now_ps)[0] != NEVER


@inlined
def with_moved(world, number, first_ps, first, host):
    """Return a machine's next event: when, its kind, its NIC and the heap of its data.

    The arguments are the next event of its NICs, each with the flows in its own heap.
    """
    next_ps, event, nic = next_of_moved(world, number)
    shared = world.constants.hosts + number
    if next_ps < first_ps:
        return next_ps, event, nic, shared

    sender = world.hosts[at(host)]
    is_due = first == SENDS and max(sender.ready_ps, sender.data_free_ps) <= first_ps
    if is_due and is_moved(world, int(world.heap[at(sender.heap_first)]), first_ps):
        return first_ps, MOVES, host, host

    # As among a NIC's own flows, the packet goes first that has been ready longest.
    sender = world.hosts[at(nic)]
    is_own_later = sender.ready_ps >= world.hosts[at(shared)].ready_ps
    is_own_later |= max(sender.ready_ps, sender.data_free_ps) > next_ps
    if next_ps == first_ps and first >= SENDS and (event == MOVES or is_own_later):
        return next_ps, event, nic, shared

    return first_ps, first, host, host


@inlined
def next_of_moved(world, number):
    """Return when the first of a machine's moved flows sends or moves back, and its NIC."""
    shared = world.hosts[at(world.constants.hosts + number)]
    if shared.ready_ps == NEVER:
        return NEVER, SENDS, number

    # Not from the window's start on: ports change their state at any time, and a machine's packets
    # must not depend on windows.
    due_ps = max(shared.free_ps, shared.ready_ps)
    flow = int(world.heap[at(shared.heap_first)])
    if not is_moved(world, flow, due_ps):
        return due_ps, MOVES, number

    send_ps, nic = relief(world, flow, due_ps)
    return send_ps, SENDS, nic


@inlined
def move(world, number):
    """Move the first flow of a heap from its NIC's to its machine's, or back."""
    constants = world.constants
    flows = world.flows
    host = world.hosts[at(number)]
    heap = world.heap[host.heap_first : host.heap_first + host.heap_size]
    flow = int(heap[0])
    ready_ps = flows.ready_ps[flow]
    take_out_first(heap, flows.place, flows.ready_ps)
    host.heap_size -= 1
    host.ready_ps = flows.ready_ps[heap[0]] if host.heap_size > 0 else NEVER

    constant = flows.table[at(flow)]
    target = int(constant.source)
    if number < constants.hosts:
        target = constants.hosts + number % constants.machines
        ring = flows.outstanding[constant.ring : constant.ring + constant.ring_length]
        labels.excuse(sender_of(flows, flow), world.rules, ring)

    flows.heap_of[at(flow)] = target
    join(world, target, flow, ready_ps)
