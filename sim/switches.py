"""What a switch does in one window: its links' packets in the order of their arrival, each to a
port (simulator model).

Everything that arrives within a window is on the links when the window opens, so a node needs no
event queue: it gathers, sorts by (time, port) and serves. A key is (time within the window, port,
slot) in one integer.
"""

from fattree.policies import Chooser
from fattree.topology import Tier
from sim import lb
from sim.jit import at, inlined, prefetch
from sim.queues import following, leave, offer
from sim.state import ACK, CHUNK, CHUNK_BITS, LIVE, LOST, UNROUTABLE

EDGE = int(Tier.EDGE)
CORE = int(Tier.CORE)
WAYPOINT = int(Chooser.WAYPOINT)
SLOT_BITS = 36
TIME_BITS = SLOT_BITS + 7
SLOT_MASK = (1 << SLOT_BITS) - 1
FEW = 16


@inlined
def serve_switch(world, routes, switch, start_ps, end_ps, buffers):
    """Forward what arrives at a switch from `start_ps` until before `end_ps`.

    Return how many packets that were.
    """
    keys, spare_keys, buckets, ends = buffers
    if switch + 1 < world.constants.switches:
        foresee(world, switch + 1)

    count = gather(world, switch, start_ps, end_ps=end_ps, keys=keys, ends=ends)
    if count > FEW:
        scatter(
            keys,
            count,
            sorted_keys=spare_keys,
            buckets=buckets,
            window_ps=world.constants.window_ps,
        )

        keys = spare_keys

    insertion_sort(keys, count)
    for position in range(count):
        key = keys[at(position)]
        forward(world, routes, switch, now_ps=start_ps + (key >> TIME_BITS), slot=key & SLOT_MASK)

    release(world, switch, ends)
    return count


@inlined
def foresee(world, switch):
    """Ask for the memory that a switch will need: both sides' links, then what has arrived, what
    waits, and what comes next.
    """
    links = world.links
    pool = world.pool
    k = world.constants.k

    for number in range(switch * k, (switch + 1) * k):
        prefetch(links[at(world.inputs[at(number)])])
        prefetch(links[at(number)])

    for number in range(switch * k, (switch + 1) * k):
        incoming = links[at(world.inputs[at(number)])]
        outgoing = links[at(number)]
        foresee_chunk(pool, incoming.taken)
        foresee_chunk(pool, outgoing.cursor)

        if outgoing.cursor >> CHUNK_BITS != outgoing.tail >> CHUNK_BITS:
            foresee_chunk(pool, outgoing.tail)


@inlined
def foresee_chunk(pool, slot):
    """Ask for a chunk's header and for its packets from a slot on."""
    prefetch(pool.headers[at(slot >> CHUNK_BITS)])
    for line in range(slot, slot | (CHUNK - 1), 2):
        prefetch(pool.packets[at(line)])


@inlined
def gather(world, switch, start_ps, end_ps, keys, ends):
    """Collect the keys of what arrives before `end_ps`, port by port; lost packets end here."""
    k = world.constants.k
    count = 0
    for port in range(k):
        link = world.links[at(world.inputs[at(switch * k + port)])]
        slot = link.taken
        tail = link.tail

        while slot != tail:
            packet = world.pool.packets[at(slot)]
            if packet.time_ps >= end_ps:
                break

            if packet.status & LOST:
                world.counters[LIVE] -= 1
            else:
                keys[at(count)] = (
                    ((packet.time_ps - start_ps) << TIME_BITS) | (port << SLOT_BITS) | slot
                )
                count += 1

            slot = following(world.pool, slot)

        ends[at(port)] = slot

    return count


@inlined
def release(world, switch, ends):
    """Hand back the chunks of what has been served."""
    k = world.constants.k
    for port in range(k):
        link = world.links[at(world.inputs[at(switch * k + port)])]
        slot = link.taken
        end = ends[at(port)]

        while slot // CHUNK != end // CHUNK:
            last = slot | (CHUNK - 1)
            slot = following(world.pool, last)
            leave(world.pool, last, world.counters)

        link.taken = end


@inlined
def scatter(keys, count, sorted_keys, buckets, window_ps):
    """Sort keys coarsely by time into about `count` buckets, keeping their order within each."""
    coarse = 0
    while window_ps >> coarse >= min(count, len(buckets)):
        coarse += 1

    shift = TIME_BITS + coarse
    used = (window_ps >> coarse) + 1
    for bucket in range(used):
        buckets[at(bucket)] = 0

    for position in range(count):
        buckets[at(keys[at(position)] >> shift)] += 1

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
    """Send one packet to the port that leads down to its destination, or up by the load balancer's
    choice.
    """
    constants = world.constants
    packet = world.pool.packets[at(slot)]
    port = southbound(world.switches[at(switch)], packet)

    if port < 0:
        uplink = northbound(world, routes, switch, packet=packet, now_ps=now_ps)
        if uplink < 0:
            world.counters[UNROUTABLE] += 1
            world.counters[LIVE] -= 1
            return

        port = constants.half + uplink

    offer(world, switch * constants.k + port, packet, now_ps)


@inlined
def southbound(node, packet):
    """Return the port (from 0) below which the destination is, -1 if it is not below this switch."""
    if node.tier == CORE:
        return int(packet.pod)
    if packet.pod != node.pod:
        return -1
    if node.tier == EDGE:
        return int(packet.index) if packet.edge == node.position else -1

    return int(packet.edge)


@inlined
def northbound(world, routes, switch, packet, now_ps):
    """Return the uplink of a packet that must go up, -1 where its destination has no path."""
    node = world.switches[at(switch)]
    constants = world.constants
    if constants.chooser == WAYPOINT:
        return lb.waypoint.uplink(node, packet)

    destination = int(packet.pod)
    if node.level > 0:
        destination = destination * constants.half + int(packet.edge)

    if node.level > 1:
        destination = destination * constants.half + int(packet.index)

    group = int(routes.groups[at(node.row + destination)])
    if group < 0:
        return -1

    return lb.uplink(
        world,
        routes,
        switch,
        group=group,
        packet=packet,
        kind=int(packet.status) & ACK,
        now_ps=now_ps,
    )
