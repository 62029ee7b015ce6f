"""A switch's window: its links' packets in order of arrival, each to a port.

Everything that arrives within a window is on the links when the window opens, so a node needs no
event queue: it gathers, sorts by (time, port) and serves (simulator model). A key is (time within
the window, port, slot) in one integer.
"""

import numpy as np

from fattree.policies import Chooser
from fattree.shape.topology import Tier
from fattree.units import ALPHA_BITS
from hostagent.transports.state import NEVER
from sim.kernels import lb
from sim.kernels.jit import at, inlined
from sim.kernels.lb.schedules import draw
from sim.kernels.lists import following, foresee_behind, leave
from sim.kernels.ports import NO_SLOT, class_of, is_urgent, offer, passage, settle, size_of
from sim.kernels.records import CHUNK
from sim.kernels.state import ACK, LIVE, LOST, MARKED, UNROUTABLE

EDGE = int(Tier.EDGE)
CORE = int(Tier.CORE)
WAYPOINT = int(Chooser.WAYPOINT)
SEGMENTS = int(Chooser.SEGMENTS)
# 63 bits: a slot below 2**32 (they are 32-bit numbers), a port below 2**11 (topologies have no
# more) and 20 bits of time, which is why `sim.arrays.network` cuts windows at 2**20 ps. Integers of
# one word sort without a comparison function, and ties go to the lower port (decision 8).
SLOT_BITS = 32
PORT_BITS = 11
TIME_BITS = SLOT_BITS + PORT_BITS
SLOT_MASK = (1 << SLOT_BITS) - 1
PORT_MASK = (1 << PORT_BITS) - 1
# More buckets cost less than keys that share a bucket.
BUCKETS_A_KEY = 2
# So few keys are sorted by insertion alone.
FEW = 16


@inlined
def serve_switch(world, routes, switch, start_ps, end_ps, buffers):
    """Forward the packets that arrive at a switch from `start_ps` until before `end_ps`.

    Return how many packets that were.
    """
    count, keys = arrivals(world, switch, start_ps, end_ps=end_ps, buffers=buffers)

    # Nothing that is forwarded comes back here within the window, so the keys stay complete.
    for position in range(count):
        key = keys[at(position)]
        forward(world, routes, switch, now_ps=start_ps + (key >> TIME_BITS), slot=key & SLOT_MASK)

    # Only now: a chunk that is handed back may be overwritten by the next packet.
    release(world, switch, buffers.ends)
    return count


@inlined
def arrivals(world, switch, start_ps, end_ps, buffers):
    """Return how many packets arrive before `end_ps`, and their keys in order."""
    keys = buffers.keys
    count = gather(world, switch, start_ps, end_ps=end_ps, keys=keys, ends=buffers.ends)
    return in_order(world, keys, count, buffers.sorted_keys, buffers.buckets)


@inlined
def in_order(world, keys, count, sorted_keys, buckets):
    """Return the number of keys, and the sorted keys: in place, or in `sorted_keys`."""
    if count > FEW:
        scatter(
            keys,
            count,
            sorted_keys=sorted_keys,
            buckets=buckets,
            window_ps=world.constants.window_ps,
        )

        keys = sorted_keys

    insertion_sort(keys, count)
    return count, keys


@inlined
def gather(world, switch, start_ps, end_ps, keys, ends):
    """Collect the keys of arrivals before `end_ps`, port by port; lost packets end here."""
    node = world.switches[at(switch)]
    count = gather_lists(world, node, 0, 0, start_ps, end_ps=end_ps, keys=keys, ends=ends)
    if world.constants.lanes > 0:
        count = gather_lists(world, node, 1, count, start_ps, end_ps=end_ps, keys=keys, ends=ends)

    return count


@inlined
def gather_lists(world, node, kind, count, start_ps, end_ps, keys, ends):
    """Collect the arrivals on a switch's links (kind 0) or lanes (1), after `count` keys."""
    pool = world.pool
    first = np.int64(node.first_port)
    lanes = kind * world.constants.lanes
    ports = np.int64(node.ports)

    # A list is in order of arrival, so the first packet that is too late ends its port.
    for port in range(ports):
        # A window takes more than a chunk of a busy link, and `foresee` has asked for the first.
        if port + 1 < ports and world.wakes_ps[at(first + port + 1)] < end_ps:
            behind = world.links[at(world.inputs[at(first + port + 1)] + lanes)]
            foresee_behind(pool, behind.taken, behind.tail)

        if world.wakes_ps[at(first + port)] >= end_ps:
            ends[at(kind * node.ports + port)] = NO_SLOT
            continue

        link = world.links[at(world.inputs[at(first + port)] + lanes)]
        slot = link.taken
        tail = link.tail

        while slot != tail:
            packet = pool.packets[at(slot)]
            if packet.time_ps >= end_ps:
                break

            # A lost packet held its link like any other (decision 8), and vanishes where it would
            # have arrived.
            if packet.status & LOST:
                world.counters[LIVE] -= 1
            else:
                keys[at(count)] = (
                    ((packet.time_ps - start_ps) << TIME_BITS) | (port << SLOT_BITS) | slot
                )
                count += 1

            slot = following(pool, slot)
            if slot % CHUNK == 1:
                foresee_behind(pool, slot, tail)

        ends[at(kind * node.ports + port)] = slot

    return count


@inlined
def release(world, switch, ends):
    """Remove served packets from the links, and return their chunks to the pool."""
    release_lists(world, world.switches[at(switch)], 0, ends)
    if world.constants.lanes > 0:
        release_lists(world, world.switches[at(switch)], 1, ends)


@inlined
def release_lists(world, node, kind, ends):
    """Release the served packets of a switch's links (kind 0) or lanes (1)."""
    first = np.int64(node.first_port)
    for port in range(np.int64(node.ports)):
        end = ends[at(kind * node.ports + port)]
        if end == NO_SLOT:
            continue

        link = world.links[at(world.inputs[at(first + port)] + kind * world.constants.lanes)]
        slot = link.taken
        while slot // CHUNK != end // CHUNK:
            last = slot | (CHUNK - 1)
            slot = following(world.pool, last)
            leave(world.pool, last, world.counters)

        link.taken = end
        wakes_ps = world.pool.packets[at(end)].time_ps if end != link.tail else NEVER
        if kind > 0:
            wakes_ps = min(wakes_ps, world.wakes_ps[at(first + port)])

        world.wakes_ps[at(first + port)] = wakes_ps


@inlined
def scatter(keys, count, sorted_keys, buckets, window_ps):
    """Sort keys coarsely by time into `count` buckets or more, keeping their order within each.

    Arrivals are spread over the window, so a bucket has about one key and insertion sort little to
    do: both together are linear in practice, and quadratic at worst, for equal times.
    """
    coarse = 0
    while window_ps >> coarse >= min(BUCKETS_A_KEY * count, len(buckets)):
        coarse += 1

    shift = TIME_BITS + coarse
    used = (window_ps >> coarse) + 1
    for bucket in range(used):
        buckets[at(bucket)] = 0

    for position in range(count):
        buckets[at(keys[at(position)] >> shift)] += 1

    # From how many there are in each bucket to where each begins.
    first = 0
    for bucket in range(used):
        size = buckets[at(bucket)]
        buckets[at(bucket)] = first
        first += size

    for position in range(count):
        key = keys[at(position)]
        bucket = at(key >> shift)
        sorted_keys[at(buckets[bucket])] = key
        buckets[bucket] += 1


@inlined
def insertion_sort(keys, count):
    """Sort keys that are almost in order."""
    for position in range(1, count):
        key = keys[at(position)]
        hole = position
        while hole > 0 and keys[at(hole - 1)] > key:
            keys[at(hole)] = keys[at(hole - 1)]
            hole -= 1

        keys[at(hole)] = key


@inlined
def forward(world, routes, switch, now_ps, slot):
    """Send one packet down to its destination, or up by the load balancer's choice."""
    node = world.switches[at(switch)]
    packet = world.pool.packets[at(slot)]
    port = port_of(world, routes, switch, packet, now_ps)
    if port >= 0:
        number = np.int64(node.first_port) + port
        enqueue(world, switch, number, level_at(node, port), packet, now_ps)


@inlined
def port_of(world, routes, switch, packet, now_ps):
    """Return the port (from 0) by which a packet leaves a switch, -1 where there is none."""
    port = southbound(world, routes, switch, packet)
    if port >= 0:
        return port

    uplink = northbound(world, routes, switch, packet=packet, now_ps=now_ps)
    # No path that the switch knows of: like a router, it drops.
    if uplink < 0:
        world.counters[UNROUTABLE] += 1
        world.counters[LIVE] -= 1
        return -1

    return np.int64(world.switches[at(switch)].south) + uplink


@inlined
def level_at(node, port):
    """Return the level of the link at a switch's port (from 0)."""
    # Edges, aggs and cores are 0, 1 and 2, as levels are.
    return np.int64(node.tier) + (1 if port >= node.south else 0)


@inlined
def enqueue(world, switch, number, level, packet, now_ps):
    """Offer a packet to a switch's port on a link of a level.

    It is marked if the queue is long.
    """
    constants = world.constants
    link = world.links[at(number)]
    status = int(packet.status)
    size = passage(world, level, size_of(world, packet, status)).bytes

    # An occupancy that is out of date is too high. It is exact whenever it matters: if even the
    # occupancy that is too high reaches neither the maximum so far nor the ECN threshold, the true
    # occupancy does not either; and the maximum never exceeds the capacity. (Load balancers that
    # compare queues settle them first.) Many at once are cheaper than each alone; with every new
    # chunk at the latest, so that chunks without packets go back to the pool.
    if (
        (constants.lanes > 0 and is_urgent(status))
        or link.tail % CHUNK == 1
        or link.occupancy + size > min(link.max_bytes, constants.ecn_bytes)
    ):
        settle(world, link, level, now_ps)

    limit_bytes = constants.capacity
    if constants.alpha > 0:
        limit_bytes = shared_room(world, switch, number, now_ps)

    is_long = is_marked(world, switch, link.occupancy, status | class_of(world, packet, status))
    if is_long:
        status |= MARKED

    slot = offer(world, number, level, packet, status, now_ps, limit_bytes)
    if is_long and slot != NO_SLOT:
        world.ledgers[at(number)].marked += 1


@inlined
def shared_room(world, switch, number, now_ps):
    """Return how many bytes may wait at a port of a switch with shared memory.

    All its ports are settled.
    """
    node = world.switches[at(switch)]
    first = np.int64(node.first_port)
    free = world.constants.capacity * np.int64(node.ports)
    for port in range(np.int64(node.ports)):
        link = world.links[at(first + port)]
        settle(world, link, level_at(node, port), now_ps)
        free -= link.occupancy

    return most_held(world, world.links[at(number)].occupancy, free)


@inlined
def most_held(world, occupancy, free):
    """Return the limit of a queue of `occupancy` bytes: alpha times the free memory, if it fits."""
    return min(world.constants.alpha * free >> ALPHA_BITS, occupancy + free)


@inlined
def is_marked(world, switch, waiting, status):
    """Return whether a packet is marked if so many bytes wait at its port.

    `status` has its class, as the switch sees it.
    """
    # Before enqueue, and never ACKs (decision 1).
    constants = world.constants
    is_long = waiting > constants.ecn_bytes and not status & (ACK | MARKED)
    if is_long and constants.ecn_slope > 0:
        is_long = is_drawn(world, switch, waiting)

    return is_long


@inlined
def is_drawn(world, switch, waiting):
    """Draw whether a packet is marked if more bytes wait than ECN's lower bound."""
    constants = world.constants
    if waiting > constants.ecn_full_bytes:
        return True

    chance = (waiting - constants.ecn_bytes) * constants.ecn_slope >> 16
    return draw(world, switch) >> 16 < chance


@inlined
def southbound(world, routes, switch, packet):
    """Return the port (from 0) below which the destination is, -1 if it is not below the switch."""
    # Addresses are 10.pod.edge.host, so each tier looks at the one field that it decides.
    node = world.switches[at(switch)]
    constants = world.constants
    if node.tier == CORE:
        # Pods are numbered through all planes, a core's ports from the first of its own.
        pod = int(packet.pod) - node.pod
        if constants.agg_core_links == 1:
            return pod

        row = at((switch - constants.first_core) * constants.pods_per_plane + pod)
        number = int(packet.edge) * constants.hosts_per_edge + int(packet.index)
        member = int(routes.core_members[row, at(number % routes.core_counts[row])])
        return pod * constants.agg_core_links + member

    if packet.pod != node.pod:
        return -1
    if node.tier == EDGE:
        return int(packet.index) if packet.edge == node.position else -1

    edge = int(packet.edge)
    if constants.edge_agg_links == 1:
        return edge

    row = at((switch - constants.first_agg) * constants.edges_per_pod + edge)
    member = int(routes.agg_members[row, at(int(packet.index) % routes.agg_counts[row])])
    return edge * constants.edge_agg_links + member


@inlined
def northbound(world, routes, switch, packet, now_ps):
    """Return the uplink of a packet that must go up, -1 where its destination has no path."""
    node = world.switches[at(switch)]
    constants = world.constants
    if constants.chooser == WAYPOINT or constants.chooser == SEGMENTS:
        return lb.waypoint.uplink(node, packet)

    # The columns of this switch's groups are pods, edges or hosts (`SWITCH.level`).
    destination = int(packet.pod)
    if node.level > 0:
        destination = destination * constants.edges_per_pod + int(packet.edge)

    if node.level > 1:
        destination = destination * constants.hosts_per_edge + int(packet.index)

    group = int(routes.groups[at(node.row + destination)])
    if group < 0:
        return -1

    return lb.uplink(
        world,
        routes,
        switch,
        group=group,
        packet=packet,
        kind=class_of(world, packet, int(packet.status)),
        now_ps=now_ps,
    )
