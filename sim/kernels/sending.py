"""Hosts send: an ACK, or a packet of the flow that has been ready longest."""

import numpy as np

from fattree.policies import Chooser
from hostagent.transports import labels, transport
from sim.kernels import host_rule
from sim.kernels.frames import write_frame
from sim.kernels.jit import at, inlined
from sim.kernels.lb.hashing import label_hash
from sim.kernels.lb.schedules import start_or_next
from sim.kernels.lists import ONE_READER, append, following, leave, take_in
from sim.kernels.planes import way_of
from sim.kernels.ports import HOST_LEVEL, is_gone, occupy, passage
from sim.kernels.ready import connection_of, requeue, sender_of, unblock
from sim.kernels.records import CHUNK
from sim.kernels.state import ACK, ASKS, DATA, LIVE, LOST, NOWHERE, SHORT

SEGMENTS = int(Chooser.SEGMENTS)


@inlined
def send(world, routes, frames, desk, number, heap, now_ps):
    """Let the host's link take the next packet: data and ACKs alternate while both wait.

    Appendix B's mode 2. Data come first; they are of the flows in the heap of `World.hosts[heap]`.
    """
    host = world.hosts[at(number)]
    is_data_ready = max(world.hosts[at(heap)].ready_ps, host.data_free_ps) <= now_ps
    if host.acks > 0 and not (is_data_ready and host.last_was_ack):
        host.last_was_ack = 1
        send_ack(world, routes, frames, desk, number, now_ps)
    else:
        host.last_was_ack = 0
        send_data(world, routes, frames, desk, number, heap, now_ps)


@inlined
def put(world, number, kind, now_ps):
    """Take the host's link for one packet of a size; return its slot: only the time is set.

    Return also LOST for a packet that will not arrive, else 0.
    """
    constants = world.constants
    link = world.links[at(constants.ports + number)]
    host_link = constants.ports + number
    start_ps, departure_ps = occupy(world, host_link, HOST_LEVEL, kind, now_ps)
    fate = LOST if is_gone(world, host_link, start_ps, now_ps) else 0
    slot = append(world.pool, link, ONE_READER, world.counters)
    time_ps = departure_ps + passage(world, HOST_LEVEL, DATA).latency_ps
    world.pool.packets[at(slot)].time_ps = time_ps
    if slot == link.taken:
        world.wakes_ps[at(world.hosts[at(number)].towards)] = time_ps

    # The NIC keeps its rate where that is below its link's, for whatever leaves (`nics.Nic`).
    world.hosts[at(number)].free_ps = max(link.free_ps, start_ps + world.nics[at(kind)].kept_ps)

    return slot, fate


@inlined
def send_ack(world, routes, frames, desk, number, now_ps):
    """Send the ACK that has waited longest."""
    # From the host's list to its link's: only the time is known later.
    host = world.hosts[at(number)]
    pool = world.pool
    waiting = host.taken
    host.taken = following(pool, waiting)
    host.acks -= 1
    slot, fate = put(world, number, np.int64(ACK), now_ps)
    time_ps = pool.packets[at(slot)].time_ps
    take_in(pool.packets, slot, pool.packets[at(waiting)])
    ack = pool.packets[at(slot)]
    ack.time_ps = time_ps
    ack.status |= fate

    if (waiting + 1) % CHUNK == 0:
        leave(pool, waiting, world.counters)

    way = way_of(world, int(ack.flow), number)
    is_routed = direct(world, routes, ack, way, ACK)
    write_frame(world, frames, desk, slot, ack, way, ACK, is_routed)


@inlined
def send_data(world, routes, frames, desk, number, heap, now_ps):
    """Send a packet of the flow in a heap that has been ready longest."""
    flow = int(world.heap[at(world.hosts[at(heap)].heap_first)])
    flows = world.flows
    rules = world.rules
    sender = sender_of(flows, flow)
    constant = flows.table[at(flow)]
    connection = connection_of(flows, constant)
    ring = flows.outstanding[constant.ring : constant.ring + constant.ring_length]

    # The label first: it looks for packets that have timed out, and `next_psn` may renew such a
    # packet.
    if rules.label_rule == host_rule.OWN:
        label = host_rule.next_label(world, flow, now_ps)
    else:
        label = labels.next_label(sender, connection, rules, ring, now_ps)

    before = sender.sent
    psn = transport.next_psn(sender, connection, rules, packets=ring, label=label, now_ps=now_ps)
    asked = ASKS if transport.asks(sender, rules, ring, psn) else 0
    requeue(world, heap, flow, transport.ready_ps(sender, rules, ring))
    if not rules.awaits_acks and before < constant.packets == sender.sent:
        unblock(world, number, flow, now_ps)

    world.counters[LIVE] += 1
    is_short = psn + 1 == constant.packets and constant.last_size != DATA
    kind = np.int64(constant.last_size if is_short else DATA)
    world.hosts[at(number)].data_free_ps = now_ps + world.nics[at(kind)].between_ps
    slot, fate = put(world, number, kind, now_ps)
    packet = world.pool.packets[at(slot)]
    way = way_of(world, flow, number)
    along = flows.table[at(way)]
    packet.flow = flow
    packet.psn = psn
    packet.pod = along.pod
    packet.edge = along.edge
    packet.index = along.index
    packet.status = DATA | asked | fate | (SHORT if is_short else 0)
    packet.label = label
    packet.hash = along.hash_data ^ label_hash(world.hash_low, world.hash_high, label)
    is_routed = direct(world, routes, packet, way, DATA)
    write_frame(world, frames, desk, slot, packet, way, DATA, is_routed)
    if heap != number:
        world.hosts[at(heap)].towards = number // world.constants.machines


@inlined
def direct(world, routes, packet, way, kind):
    """Host DR: name the waypoint at the pointer of (source, destination, class) and advance it.

    MRC over SRv6: name the path of the label. Return whether such a path exists.
    """
    if world.constants.chooser == SEGMENTS:
        return direct_by_label(world, packet, way)

    # Other load balancers have no waypoints, nor have pairs under one edge, with nothing to choose,
    # nor those that are cut off for the time being.
    packet.route_agg = NOWHERE
    if len(routes.waypoints) == 0:
        return False

    # An ACK belongs to its flow's pair too, with a cell of its own.
    pair = world.flows.table[at(way)].pair
    row = routes.waypoint_row[pair, kind]
    first = routes.waypoint_offset[row]
    length = routes.waypoint_offset[row + 1] - first

    if length == 0:
        return False

    cell = int(world.pointers.host_cells[pair, kind])
    position = start_or_next(cell, int(routes.waypoint_start[pair, kind]), length)
    world.pointers.host_cells[pair, kind] = 1 if position + 1 == length else position + 2
    packet.route_agg = routes.waypoints[first + position, 0]
    packet.route_core = routes.waypoints[first + position, 1]
    return True


@inlined
def direct_by_label(world, packet, way):
    """Name the uplinks of the path that a packet's label names; return whether it needs any."""
    constants = world.constants
    constant = world.flows.table[at(way)]
    packet.route_agg = NOWHERE
    if constant.source_pod == constant.pod and constant.source_edge == constant.edge:
        return False

    label = np.int64(packet.label)
    packet.route_agg = label % constants.edge_uplinks
    packet.route_core = label // constants.edge_uplinks % max(constants.agg_uplinks, 1)
    return True
