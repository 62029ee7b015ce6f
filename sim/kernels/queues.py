"""Lists of packets and output queues: what a port accepts, when it arrives, what waits.

Output queues exist twice in the project, here and in `emulation.softswitch.queue`, for a reason:
the switch imports nothing of ours and lets each packet leave in its time, with any size; a port
here is a record inside compiled kernels, knows two sizes, and finds departures out only when
somebody asks. The rules are the same (simulator model), and a test feeds both the same offers.

All lists share one pool of chunks. A ring a port would need room for the longest queue at each of
k**3 * 5 / 4 ports; chunks need room for the packets there are, and their packets lie side by side
in memory as those of a ring would.
"""

import numpy as np

from fattree.draws import Stream, component, mix
from sim.kernels.jit import at, inlined
from sim.kernels.state import ACK, CHUNK, CHUNK_BITS, LIVE, LOST, MARKED, SMALL, SPARE, TRIMMED

LOSS = int(Stream.LOSS)
# Nobody measures the queue of a host's link, so hosts' lists have no cursor, only the far end.
ONE_READER = 1


@inlined
def first_slot(chunk):
    """Return the first slot of a chunk that holds a packet, the one behind the header."""
    return (np.int64(chunk) << CHUNK_BITS) + 1


@inlined
def append(pool, ends, readers, counters):
    """Return the free slot at the end of a list with one or two readers; the next becomes its tail.

    A list always has a free slot to point at, so `taken == tail` says that it is empty.
    """
    slot = ends.tail
    if (slot + 1) % CHUNK:
        ends.tail = slot + 1
    else:
        counters[SPARE] -= 1
        chunk = pool.spare[at(counters[SPARE])]
        # A reader that does not exist is through from the start.
        pool.headers[at(chunk)].passes = 2 - readers
        pool.headers[at(slot >> CHUNK_BITS)].next = chunk
        ends.tail = first_slot(chunk)

    return slot


@inlined
def following(pool, slot):
    """Return the slot behind this one in its list."""
    if (slot + 1) % CHUNK:
        return slot + 1

    return first_slot(pool.headers[at(slot >> CHUNK_BITS)].next)


@inlined
def leave(pool, slot, counters):
    """Note that a reader is through with the chunk of this slot; the last one frees it."""
    header = pool.headers[at(slot >> CHUNK_BITS)]
    header.passes += 1
    if header.passes == 2:
        pool.spare[at(counters[SPARE])] = slot >> CHUNK_BITS
        counters[SPARE] += 1


@inlined
def level_of(constants, number):
    """Return the level of a link: where it is not known, as its tier and direction are not."""
    if number >= constants.ports:
        return 0

    edges = constants.first_agg * constants.edge_ports
    if number < edges:
        return 1 if number % constants.edge_ports >= constants.hosts_per_edge else 0

    aggs = (constants.first_core - constants.first_agg) * constants.agg_ports
    if number - edges < aggs:
        down = constants.agg_ports - constants.agg_uplinks
        return 2 if (number - edges) % constants.agg_ports >= down else 1

    return 2


@inlined
def settle(pool, link, constants, level, now_ps, counters):
    """Let the packets go whose last bit has left a port by `now_ps`."""
    # Departures need no events: a packet's arrival says when it left, one latency before.
    while link.cursor != link.tail:
        packet = pool.packets[at(link.cursor)]
        if packet.time_ps - constants.latency_ps[at(level)] > now_ps:
            return

        link.occupancy -= constants.ack_bytes if packet.status & SMALL else constants.data_bytes
        slot = link.cursor
        link.cursor = following(pool, slot)

        if (slot + 1) % CHUNK == 0:
            leave(pool, slot, counters)


@inlined
def is_lost(link, ledger, outages, start_ps):
    """Return whether a transmission that starts now goes into a dead link (decision 8).

    Starts never run backwards on a link, so outages that are over are not looked at again.
    """
    # Each link's row of outages ends with NEVER, where this stops.
    while start_ps >= ledger.up_ps:
        ledger.outage += 1
        link.down_ps = outages[ledger.outage, 0]
        ledger.up_ps = outages[ledger.outage, 1]

    return start_ps >= link.down_ps


@inlined
def is_gone(world, number, lane, start_ps):
    """Return whether the transmission that starts now, the link's last one, never arrives.

    `lane` is the link itself or its lane: starts run forwards on either, not on both together.
    """
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    way = world.links[at(lane)]
    gone = start_ps >= way.down_ps and is_lost(
        way, world.ledgers[at(lane)], world.outages, start_ps
    )

    # The ledger is another line of memory, and hardly any run has links that lose packets.
    if world.constants.is_lossy and not gone:
        count = np.int64(link.data_packets) + np.int64(link.ack_packets) - 1
        gone = mix(world.constants.seed, component(LOSS, number), count) < ledger.unlucky

    if gone:
        ledger.lost += 1

    return gone


@inlined
def offer(world, number, level, packet, now_ps):
    """Queue a copy of `packet` at a switch's port at `now_ps`, or drop it where it does not fit.

    `level` is that of the port's link.
    """
    pool = world.pool
    constants = world.constants
    counters = world.counters
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    status = int(packet.status)
    is_ack = status & ACK
    if status & TRIMMED:
        hurry(world, number, level, packet, status, now_ps)
        return

    size = constants.ack_bytes if is_ack else constants.data_bytes

    # An occupancy that is out of date is too high. It is exact whenever it matters: where even the
    # one that is too high reaches neither the maximum so far nor the ECN threshold, the true one
    # does not either; and the maximum never exceeds the capacity. (Load balancers that compare
    # queues settle them first.) Many at once are cheaper than one by one; with every new chunk
    # at the latest, so that those that are through go back to the pool.
    if link.tail % CHUNK == 1 or link.occupancy + size > min(link.max_bytes, constants.ecn_bytes):
        settle(pool, link, constants, level, now_ps=now_ps, counters=counters)

    occupancy = link.occupancy + size
    if constants.capacity > 0 and occupancy > constants.capacity:
        if constants.lanes > 0 and not is_ack:
            hurry(world, number, level, packet, status | TRIMMED, now_ps)
        else:
            ledger.dropped += 1
            counters[LIVE] -= 1

        return

    # Before enqueue, and never ACKs (decision 1).
    if link.occupancy > constants.ecn_bytes and not status & (ACK | MARKED):
        status |= MARKED
        ledger.marked += 1

    # A FIFO at a constant rate: when a packet leaves is known as soon as it is queued.
    start_ps, departure_ps = occupy(world, number, level, is_ack, now_ps)
    if is_gone(world, number, number, start_ps):
        status |= LOST

    slot = append(pool, link, 2, counters)
    pool.packets[at(slot)] = packet
    queued = pool.packets[at(slot)]
    queued.time_ps = departure_ps + constants.latency_ps[at(level)]
    queued.status = status
    link.occupancy = occupancy
    link.max_bytes = max(link.max_bytes, occupancy)
    # The queue's integral over time is the sum of what each packet adds to it: size times stay.
    link.byte_ps += size * (departure_ps - now_ps)


@inlined
def hurry(world, number, level, packet, status, now_ps):
    """Put a packet with the status TRIMMED into a port's lane, or drop it where that is full."""
    pool = world.pool
    constants = world.constants
    counters = world.counters
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    lane = world.links[at(constants.lanes + number)]
    settle(pool, link, constants, level, now_ps=now_ps, counters=counters)
    settle(pool, lane, constants, level, now_ps=now_ps, counters=counters)

    # As long as the queue itself, and apart from it: neither ECN nor load balancers see it.
    if lane.occupancy + constants.ack_bytes > constants.capacity:
        ledger.dropped += 1
        counters[LIVE] -= 1
        return

    if not packet.status & TRIMMED:
        ledger.trimmed += 1

    if link.occupancy > constants.ecn_bytes and not status & (ACK | MARKED):
        status |= MARKED
        ledger.marked += 1

    start_ps = give_way(pool, link, constants, level, now_ps)
    if is_gone(world, number, constants.lanes + number, start_ps):
        status |= LOST

    slot = append(pool, lane, 2, counters)
    pool.packets[at(slot)] = packet
    queued = pool.packets[at(slot)]
    queued.time_ps = start_ps + constants.ack_ps[at(level)] + constants.latency_ps[at(level)]
    queued.status = status
    lane.occupancy += constants.ack_bytes


@inlined
def give_way(pool, link, constants, level, now_ps):
    """Let a packet of the lane go before all that a link has not begun to send; return when.

    The link is settled. What waits leaves later by the packet's slot, and nobody has looked at its
    arrival yet: it is further away than a window. Whether it goes into a dead link stays decided.
    """
    latency_ps = constants.latency_ps[at(level)]
    slot_ps = constants.ack_slot_ps[at(level)]
    start_ps = max(link.free_ps, now_ps)
    is_first = True
    slot = link.cursor
    while slot != link.tail:
        waiting = pool.packets[at(slot)]
        is_small = waiting.status & SMALL
        sending_ps = (constants.ack_ps if is_small else constants.data_ps)[at(level)]
        begins_ps = waiting.time_ps - latency_ps - sending_ps
        if begins_ps > now_ps:
            start_ps = begins_ps if is_first else start_ps
            is_first = False
            waiting.time_ps += slot_ps
            link.byte_ps += slot_ps * (constants.ack_bytes if is_small else constants.data_bytes)

        slot = following(pool, slot)

    link.ack_packets += 1
    link.free_ps = max(link.free_ps, now_ps) + slot_ps
    return start_ps


@inlined
def occupy(world, number, level, is_ack, now_ps):
    """Take a link of a level as soon as it is free.

    Return when a packet of this class starts and when its last bit leaves: the gap that follows
    keeps the link busy, but the packet is out.
    """
    link = world.links[at(number)]
    constants = world.constants
    start_ps = max(link.free_ps, now_ps)
    if is_ack:
        link.ack_packets += 1
        slot_ps = constants.ack_slot_ps[at(level)]
        sending_ps = constants.ack_ps[at(level)]
    else:
        link.data_packets += 1
        slot_ps = constants.data_slot_ps[at(level)]
        sending_ps = constants.data_ps[at(level)]

    # As with losses, a ledger is another line of memory, and hardly any run has slow links.
    if constants.is_slowed:
        row = pace(world, number, start_ps)
        slot_ps = world.paces[row, at(4 if is_ack else 2)]
        sending_ps = world.paces[row, at(3 if is_ack else 1)]

    link.free_ps = start_ps + slot_ps
    return start_ps, start_ps + sending_ps


@inlined
def pace(world, number, start_ps):
    """Return the row of `world.paces` for a transmission on a link that starts now."""
    # Starts never run backwards on a link, and a link's last row lasts for ever.
    ledger = world.ledgers[at(number)]
    while start_ps >= world.paces[at(ledger.pace), 0]:
        ledger.pace += 1

    return at(ledger.pace)


@inlined
def host_sending_ps(world, number, is_ack):
    """Return how long a packet of a class holds a host's link, whose rate never changes."""
    constants = world.constants
    if constants.is_slowed:
        return world.paces[at(world.ledgers[at(number)].pace), at(3 if is_ack else 1)]

    return constants.ack_ps[0] if is_ack else constants.data_ps[0]
