"""What a machine does in one window: it merges arrivals with its links' opportunities to send.

Flows are paced and pull: a host has no queue of data but takes the next packet from the flow that
has been ready longest when the link is free (simulator model, "Hosts"; decision 3).
"""

import numpy as np

from fattree.policies import LabelRule
from fattree.topology import Level
from hostagent import labels, transport
from hostagent.state import NEVER
from sim import host_rule
from sim.frames import is_own, note_arrival, note_holes, note_number, note_receipt, write_frame
from sim.jit import at, inlined
from sim.lb.hashing import label_hash
from sim.lb.schedules import start_or_next
from sim.queues import append, following, is_gone, leave, occupy
from sim.state import (
    ACK,
    ASKS,
    CHUNK,
    DATA,
    LAST_DONE,
    LIVE,
    LOST,
    MARKED,
    MISDELIVERED,
    NOWHERE,
    RECEIVED,
    TRIMMED,
    UNFINISHED,
)

# Nobody measures the queue of a host's link, so its lists have no cursor, only the far end.
ONE_READER = 1
OWN = int(LabelRule.OWN)
# What a host does next, in the order of one instant.
ARRIVES, ENDS, SENDS = range(3)
HOST_LEVEL = int(Level.HOST)


@inlined
def serve_machine(world, routes, frames, desk, number, start_ps, end_ps):
    """Receive and send at a machine's hosts from `start_ps` until before `end_ps`.

    A machine's hosts are its NICs, one a plane: what ends at one lets another begin. `frames` and
    `desk` are None where packets have no bytes (`sim.frames`). Return how many packets it received
    or sent.
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
    send_ps = max(host.free_ps, now_ps if host.acks > 0 else max(now_ps, host.ready_ps))
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


@inlined
def receive(world, frames, number, packet, now_ps):
    """Take in one packet: an ACK changes its sender, a data packet becomes an ACK that waits."""
    status = int(packet.status)
    if status & LOST:
        world.counters[LIVE] -= 1
    elif status & ACK:
        world.counters[LIVE] -= 1
        receive_ack(world, number, packet, now_ps)
    else:
        receive_data(world, frames, number, packet, now_ps)


@inlined
def receive_data(world, frames, number, packet, now_ps):
    """Count a data packet and queue its ACK, which echoes label, number and mark (decision 1).

    The ACK may wait for more packets. Of one that a switch has cut there is nothing to count: the
    ACK is a NACK.
    """
    flow = int(packet.flow)
    psn = int(packet.psn)
    flows = world.flows
    constant = flows.table[at(flow)]
    trimmed = int(packet.status) & TRIMMED
    is_new = trimmed == 0

    # With erasure codes every packet is a new symbol; SACK may send one twice.
    if is_new and world.constants.is_sack:
        is_new = not flows.is_received[constant.log + psn]
        if is_new:
            flows.is_received[constant.log + psn] = 1
            flows.arrivals[constant.log + flows.received[at(flow)]] = psn

    if is_new:
        flows.received[at(flow)] += 1

    if trimmed:
        queue_ack(world, frames, number, packet)
    else:
        note_number(frames, flow, psn)
        flows.waiting[at(flow)] += 1
        if transport.is_acknowledged(
            world.rules,
            waiting=int(flows.waiting[at(flow)]),
            asked=int(packet.status) & ASKS > 0,
            marked=int(packet.status) & MARKED > 0,
            is_new=is_new,
            is_complete=flows.received[at(flow)] >= constant.packets,
        ):
            flows.waiting[at(flow)] = 0
            queue_ack(world, frames, number, packet)
        else:
            world.counters[LIVE] -= 1

    # Complete at this end: flows from here may follow, while the sender hears of it later.
    if is_new and flows.received[at(flow)] == constant.packets:
        unblock(world, number, flow, now_ps)


@inlined
def queue_ack(world, frames, number, packet):
    """Queue the ACK of a data packet, or the NACK of one that a switch has cut."""
    flow = int(packet.flow)
    psn = int(packet.psn)
    trimmed = int(packet.status) & TRIMMED
    flows = world.flows
    host = world.hosts[at(number)]
    constant = flows.table[at(flow)]
    slot = append(world.pool, host, ONE_READER, world.counters)
    ack = world.pool.packets[at(slot)]
    ack.flow = flow
    ack.psn = psn
    ack.pod = constant.source_pod
    ack.edge = constant.source_edge
    ack.index = constant.source_index
    ack.status = ACK | trimmed | (int(packet.status) & MARKED)
    ack.label = packet.label
    ack.hash = constant.hash_ack ^ label_hash(world.hash_low, world.hash_high, int(packet.label))
    # In place of SACK's bitmap: the log up to here says what has arrived by now.
    ack.log = flows.received[at(flow)]
    note_holes(world, frames, ack)
    host.acks += 1


@inlined
def receive_ack(world, number, packet, now_ps):
    """Let a sender learn from an ACK; note when the flow is done."""
    flow = int(packet.flow)
    flows = world.flows
    rules = world.rules
    sender = flows.senders[at(flow)]
    constant = flows.table[at(flow)]
    ring = flows.outstanding[constant.ring : constant.ring + constant.ring_length]

    # Labels learn before the transport does (`hostagent.labels`).
    label = int(packet.label)
    is_marked = int(packet.status) & MARKED > 0
    is_nack = int(packet.status) & TRIMMED > 0
    if rules.label_rule == OWN:
        # A rule of the user's knows marks only: a queue that was full was long, too.
        is_bad = is_marked or is_nack
        host_rule.on_ack(world, flow, label=label, marked=is_bad, now_ps=now_ps)
    elif is_nack:
        labels.on_nack(sender, rules, label, now_ps)
    else:
        labels.on_ack(sender, rules, label=label, marked=is_marked, now_ps=now_ps)

    # What this ACK reports beyond the ones before it. The receiver may write further entries at the
    # same time, in another thread, but these are at least a window old.
    if world.constants.is_sack:
        reported = int(packet.log)
        for entry in range(int(flows.reported[flow]), reported):
            transport.acknowledge(sender, ring, int(flows.arrivals[constant.log + entry]))

        flows.reported[flow] = max(reported, int(flows.reported[flow]))

    psn = int(packet.psn)
    total = int(packet.log)
    if is_nack:
        is_done = transport.on_nack(sender, rules, ring, psn=psn, total=total, now_ps=now_ps)
    else:
        is_done = transport.on_ack(
            sender, rules, ring, psn=psn, total=total, marked=is_marked, now_ps=now_ps
        )

    if is_done:
        world.counters[UNFINISHED] -= 1
        world.counters[LAST_DONE] = max(world.counters[LAST_DONE], now_ps)
        if rules.awaits_acks:
            unblock(world, number, flow, now_ps)

    requeue(world, number, flow, transport.ready_ps(sender, rules, ring))


@inlined
def unblock(world, number, flow, now_ps):
    """Start the flows of this host's machine that waited for `flow` alone."""
    flows = world.flows
    machines = world.constants.machines
    # Both ends of a flow come here, each for its own: no machine knows what only the other one does
    # (decision 9), nor changes another machine's flows.
    for entry in range(flows.follower_offset[flow], flows.follower_offset[flow + 1]):
        follower = flows.followers[entry]
        host = flows.table[follower].source
        if host % machines != number % machines:
            continue

        flows.blocked[follower] -= 1
        if flows.blocked[follower] == 0:
            start_flow(world, host, follower, now_ps)


@inlined
def start_flow(world, number, flow, now_ps):
    """Make a flow a sender, first due a phase later, with a place among its host's flows.

    Or let a computation begin.
    """
    flows = world.flows
    rules = world.rules
    host = world.hosts[number]
    sender = flows.senders[at(flow)]
    constant = flows.table[at(flow)]
    due_ps = now_ps + constant.phase_ps
    transport.start(
        sender,
        rules,
        flow,
        packets=int(constant.packets),
        gap_ps=constant.gap_ps,
        due_ps=due_ps,
        hops=int(constant.hops),
    )

    flows.started_ps[flow] = now_ps
    if constant.packets == 0:
        sender.first_ps = now_ps
        start_computation(world, number, flow, now_ps + constant.compute_ps)
        return

    labels.start(sender, rules)

    # At the end of the heap with the latest time there is, which keeps the heap in order; `requeue`
    # then moves it up to where it belongs.
    flows.ready_ps[flow] = NEVER
    flows.place[flow] = host.heap_size
    world.heap[host.heap_first + host.heap_size] = flow
    host.heap_size += 1
    ring = flows.outstanding[constant.ring : constant.ring + constant.ring_length]
    requeue(world, number, flow, transport.ready_ps(sender, rules, ring))


@inlined
def start_computation(world, number, flow, end_ps):
    """Put a computation among those of its host, to be ended at its time."""
    flows = world.flows
    host = world.hosts[number]
    flows.ready_ps[flow] = end_ps
    flows.place[flow] = host.timer_size
    world.timers[host.timer_first + host.timer_size] = flow
    host.timer_size += 1
    timers = world.timers[host.timer_first : host.timer_first + host.timer_size]
    sift_up(timers, flows.place, flows.ready_ps, flow)
    host.timer_ps = flows.ready_ps[timers[0]]


@inlined
def end_computation(world, number, now_ps):
    """End the computation of a host that ends first, and start what has waited for it."""
    flows = world.flows
    host = world.hosts[at(number)]
    timers = world.timers[host.timer_first : host.timer_first + host.timer_size]
    flow = int(timers[0])
    last = int(timers[-1])
    host.timer_size -= 1
    host.timer_ps = NEVER
    if host.timer_size > 0:
        timers[0] = last
        flows.place[last] = 0
        sift_down(timers[:-1], flows.place, flows.ready_ps, last)
        host.timer_ps = flows.ready_ps[timers[0]]

    flows.senders[flow].done_ps = now_ps
    world.counters[UNFINISHED] -= 1
    world.counters[LAST_DONE] = max(world.counters[LAST_DONE], now_ps)
    unblock(world, number, flow, now_ps)


@inlined
def send(world, routes, frames, number, now_ps):
    """Let the host's link take the next packet: data and ACKs alternate while both wait.

    Appendix B's mode 2. Data come first.
    """
    host = world.hosts[at(number)]
    if host.acks > 0 and not (host.ready_ps <= now_ps and host.last_was_ack):
        host.last_was_ack = 1
        send_ack(world, routes, frames, number, now_ps)
    else:
        host.last_was_ack = 0
        send_data(world, routes, frames, number, now_ps)


@inlined
def put(world, number, is_ack, now_ps):
    """Take the host's link for one packet; return its slot, in which only the time is set.

    Return also the status of one that never arrives (LOST, else 0).
    """
    constants = world.constants
    link = world.links[at(constants.ports + number)]
    own = constants.ports + number
    start_ps, departure_ps = occupy(world, own, HOST_LEVEL, is_ack, now_ps)
    fate = LOST if is_gone(world, own, own, start_ps) else 0
    slot = append(world.pool, link, ONE_READER, world.counters)
    world.pool.packets[at(slot)].time_ps = departure_ps + constants.latency_ps[HOST_LEVEL]
    world.hosts[at(number)].free_ps = link.free_ps

    return slot, fate


@inlined
def send_ack(world, routes, frames, number, now_ps):
    """Send the ACK that has waited longest."""
    # From the host's list to its link's: only the time is known later.
    host = world.hosts[at(number)]
    pool = world.pool
    waiting = host.taken
    host.taken = following(pool, waiting)
    host.acks -= 1
    slot, fate = put(world, number, ACK, now_ps)
    time_ps = pool.packets[at(slot)].time_ps
    pool.packets[at(slot)] = pool.packets[at(waiting)]
    ack = pool.packets[at(slot)]
    ack.time_ps = time_ps
    ack.status |= fate

    if (waiting + 1) % CHUNK == 0:
        leave(pool, waiting, world.counters)

    is_routed = direct(world, routes, ack, ACK)
    write_frame(world, frames, slot, ack, ACK, is_routed)


@inlined
def send_data(world, routes, frames, number, now_ps):
    """Send a packet of the flow that has been ready longest."""
    flow = int(world.heap[at(world.hosts[at(number)].heap_first)])
    flows = world.flows
    rules = world.rules
    sender = flows.senders[at(flow)]
    constant = flows.table[at(flow)]
    ring = flows.outstanding[constant.ring : constant.ring + constant.ring_length]

    # The label first: it looks for packets that have timed out, one of which `next_psn` may renew.
    if rules.label_rule == OWN:
        label = host_rule.next_label(world, flow, now_ps)
    else:
        label = labels.next_label(sender, rules, ring, now_ps)

    before = sender.sent
    psn = transport.next_psn(sender, rules, packets=ring, label=label, now_ps=now_ps)
    asked = ASKS if transport.asks(sender, rules, ring, psn) else 0
    requeue(world, number, flow, transport.ready_ps(sender, rules, ring))
    if not rules.awaits_acks and before < constant.packets == sender.sent:
        unblock(world, number, flow, now_ps)

    world.counters[LIVE] += 1
    slot, fate = put(world, number, DATA, now_ps)
    packet = world.pool.packets[at(slot)]
    packet.flow = flow
    packet.psn = psn
    packet.pod = constant.pod
    packet.edge = constant.edge
    packet.index = constant.index
    packet.status = DATA | asked | fate
    packet.label = label
    packet.hash = constant.hash_data ^ label_hash(world.hash_low, world.hash_high, label)
    is_routed = direct(world, routes, packet, DATA)
    write_frame(world, frames, slot, packet, DATA, is_routed)


@inlined
def direct(world, routes, packet, kind):
    """Host DR: name the waypoint at the pointer of (source, destination, class) and advance it.

    Return whether there is one.
    """
    # Other load balancers have no waypoints, nor have pairs under one edge, with nothing to choose,
    # nor those that are cut off for the time being.
    packet.route_agg = NOWHERE
    if len(routes.waypoints) == 0:
        return False

    # An ACK belongs to its flow's pair too, with a cell of its own.
    pair = world.flows.table[int(packet.flow)].pair
    row = routes.waypoint_row[pair, kind]
    first = routes.waypoint_offset[row]
    length = routes.waypoint_offset[row + 1] - first

    if length == 0:
        return False

    cell = int(world.pointers.host_cells[pair, kind])
    at = start_or_next(cell, int(routes.waypoint_start[pair, kind]), length)
    world.pointers.host_cells[pair, kind] = 1 if at + 1 == length else at + 2
    packet.route_agg = routes.waypoints[first + at, 0]
    packet.route_core = routes.waypoints[first + at, 1]
    return True


@inlined
def is_before(ready_ps, flow, other):
    """Return whether a flow comes first: ready earlier, or as early and with the smaller number."""
    if ready_ps[flow] != ready_ps[other]:
        return ready_ps[flow] < ready_ps[other]

    return flow < other


@inlined
def requeue(world, number, flow, ready_ps):
    """Give a flow its new ready time and its place in the host's heap.

    An all-to-all has as many flows a host as there are hosts: a search among them for every packet
    would cost more than all the rest. Ties go to the lower number (decision 3), so the order of
    flows does not depend on what has happened to the heap.
    """
    flows = world.flows
    host = world.hosts[at(number)]
    if flows.ready_ps[at(flow)] != ready_ps:
        flows.ready_ps[at(flow)] = ready_ps
        if host.heap_size > 1:
            heap = world.heap[host.heap_first : host.heap_first + host.heap_size]
            # Earlier or later: one of the two does nothing.
            sift_up(heap, flows.place, flows.ready_ps, flow)
            sift_down(heap, flows.place, flows.ready_ps, flow)

        host.ready_ps = flows.ready_ps[at(world.heap[at(host.heap_first)])]


@inlined
def sift_up(heap, place, ready_ps, flow):
    """Move a flow towards the top until its parent comes before it."""
    at = int(place[flow])
    while at > 0:
        parent = int(heap[(at - 1) // 2])
        if is_before(ready_ps, parent, flow):
            break

        heap[at] = parent
        place[parent] = at
        at = (at - 1) // 2

    heap[at] = flow
    place[flow] = at


@inlined
def sift_down(heap, place, ready_ps, flow):
    """Move a flow away from the top until it comes before its children."""
    at = int(place[flow])
    size = len(heap)
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and is_before(ready_ps, int(heap[child + 1]), int(heap[child])):
            child += 1

        if is_before(ready_ps, flow, int(heap[child])):
            break

        heap[at] = heap[child]
        place[int(heap[at])] = at
        at = child

    heap[at] = flow
    place[flow] = at
