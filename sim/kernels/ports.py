"""The port's body for kernels' records: a queue, its lane, a rate, and when packets leave.

It exists for frames, too (`softswitch.ports.queue`), for a reason: the switch imports nothing of
ours and lets each packet leave in its time, with any size; a port here is a record inside compiled
kernels, knows the sizes that a run has, and computes a packet's departure as soon as it comes. The
rules are the same (`docs/decisions/two-ports.md`), and a test feeds all bodies the same offers.

    offer            a packet comes: it waits, or is cut and hurried, or is dropped
    hurry            it goes into the lane, ahead of waiting packets (`give_way`)
    occupy, holding  the rate: when a packet starts and has left; the rate at its start holds
    settle, let_go   depths: packets leave when their last bit is out
    next_departure   readings, beside a link's `occupancy`, `max_bytes`, `byte_ps` and its ledger

Kernels that forward by themselves add to it in `sim.kernels.switches` (they settle late, and mark),
those around P4 programs in `sim.kernels.events.programs` (frames, and egress at the departure).
"""

import numpy as np

from fattree.draws import Stream, component, mix
from fattree.shape.topology import Level
from sim.kernels.jit import at, inlined
from sim.kernels.lists import append, following, foresee_chunk, leave, take_in
from sim.kernels.records import CHUNK
from sim.kernels.state import ACK, DATA, FIRST_ACK, LIVE, LOST, SHORT, SMALL, TRIMMED

LOSS = int(Stream.LOSS)
HOST_LEVEL = int(Level.HOST)
LEVELS = len(Level)
# In place of the slot of a packet that is dropped.
NO_SLOT = -1
# Later than any departure.
FAR = 1 << 62


@inlined
def offer(world, number, level, packet, status, now_ps, limit_bytes):
    """Take in a copy of `packet`, with a status of its own, at a switch's port; return its slot.

    At most `limit_bytes` may wait there. A packet that exceeds them is cut and hurried if ports
    have lanes; a dropped packet has NO_SLOT. The port is settled, `level` is that of its link.
    """
    constants = world.constants
    link = world.links[at(number)]
    if constants.lanes == 0 or not is_urgent(status):
        size = passage(world, level, size_of(world, packet, status)).bytes
        if constants.capacity == 0 or link.occupancy + size <= limit_bytes:
            return queue(world, number, level, packet, status, now_ps)

        # A packet that is no longer than the cut size cannot be cut.
        if constants.lanes == 0 or size <= passage(world, level, ACK).bytes:
            return drop(world, number)

    return hurry(world, number, level, packet, status, now_ps)


@inlined
def is_urgent(status):
    """Return whether a packet takes a port's lane from the start: it was cut, or goes first."""
    return status & TRIMMED > 0 or status & FIRST_ACK == FIRST_ACK


@inlined
def queue(world, number, level, packet, status, now_ps):
    """Put a copy of a packet at the end of a port's queue; return its slot."""
    # A FIFO with foreseen rates: a packet's departure is known as soon as it is queued.
    link = world.links[at(number)]
    kind = size_of(world, packet, status)
    size = passage(world, level, kind).bytes
    occupancy = link.occupancy + size
    start_ps, departure_ps = occupy(world, number, level, kind, now_ps)
    if is_gone(world, number, start_ps, now_ps):
        status |= LOST

    slot = append(world.pool, link, 2, world.counters)
    arrival_ps = departure_ps + passage(world, level, DATA).latency_ps
    write(world, slot, packet, status, start_ps=start_ps, arrival_ps=arrival_ps)
    if slot == link.taken:
        announce(world, number, arrival_ps)

    link.occupancy = occupancy
    link.max_bytes = max(link.max_bytes, occupancy)
    # The queue's integral over time is the sum of each packet's size times stay.
    link.byte_ps += size * (departure_ps - now_ps)
    return slot


@inlined
def hurry(world, number, level, packet, status, now_ps):
    """Put a copy of a packet into a port's lane, cut to its headers, or drop it where that is full.

    Return its slot, or NO_SLOT.
    """
    pool = world.pool
    constants = world.constants
    lane = world.links[at(constants.lanes + number)]
    settle(world, lane, level, now_ps)

    # As long as the queue itself, and apart from it: neither ECN nor load balancers see it.
    size = passage(world, level, ACK).bytes
    if lane.occupancy + size > constants.capacity:
        return drop(world, number)

    if not is_urgent(status):
        world.ledgers[at(number)].trimmed += 1
        status |= TRIMMED

    start_ps, departure_ps = give_way(world, number, level, now_ps)
    if is_gone(world, number, start_ps, now_ps):
        status |= LOST

    slot = append(pool, lane, 2, world.counters)
    arrival_ps = departure_ps + passage(world, level, DATA).latency_ps
    write(world, slot, packet, status, start_ps=start_ps, arrival_ps=arrival_ps)
    announce(world, number, arrival_ps)
    lane.occupancy += size
    return slot


@inlined
def drop(world, number):
    """Count a packet that a port has no room for."""
    world.ledgers[at(number)].dropped += 1
    world.counters[LIVE] -= 1
    return NO_SLOT


@inlined
def write(world, slot, packet, status, start_ps, arrival_ps):
    """Write a copy of a packet to the slot where it waits."""
    constants = world.constants
    packets = world.pool.packets
    take_in(packets, slot, packet)
    queued = packets[at(slot)]
    queued.time_ps = arrival_ps
    queued.status = status
    if constants.is_slowed and constants.lanes > 0:
        world.pool.starts[at(slot)] = start_ps


@inlined
def announce(world, number, time_ps):
    """Let the node at the far end of a port's link know that a packet arrives at a time.

    It need not know of packets behind those that it knows of.
    """
    far = at(world.inputs[at(number)])
    world.wakes_ps[far] = min(world.wakes_ps[far], time_ps)


@inlined
def give_way(world, number, level, now_ps):
    """Let a packet of the lane go before all that a link has not begun to send.

    Return when it starts and when its last bit leaves. The link is settled. Waiting packets start
    later by the packet's slot, at the rate of their new start. The far end has not looked at their
    arrival yet: it is further away than a window, before and afterwards. Whether it goes into a
    dead link stays decided.
    """
    pool = world.pool
    link = world.links[at(number)]
    slot = np.int64(link.cursor)
    while slot != link.tail and begins(world, slot, level) <= now_ps:
        slot = following(pool, slot)

    # The link never idles while a packet waits, so packets that have not begun leave in sequence.
    start_ps = max(link.free_ps, now_ps)
    if slot != link.tail:
        start_ps = begins(world, slot, level)

    sending_ps, slot_ps = holding(world, number, level, ACK, now_ps=now_ps, start_ps=start_ps)
    free_ps = start_ps + slot_ps
    while slot != link.tail:
        waiting = pool.packets[at(slot)]
        kind = size_of(world, waiting, int(waiting.status))
        own_ps, own_slot_ps = holding(world, number, level, kind, now_ps=now_ps, start_ps=free_ps)
        waiting_passage = passage(world, level, kind)
        time_ps = free_ps + own_ps + waiting_passage.latency_ps
        link.byte_ps += waiting_passage.bytes * (time_ps - waiting.time_ps)
        waiting.time_ps = time_ps
        if world.constants.is_slowed:
            pool.starts[at(slot)] = free_ps

        free_ps += own_slot_ps
        slot = following(pool, slot)

    link.ack_packets += 1
    link.free_ps = free_ps
    return start_ps, start_ps + sending_ps


@inlined
def begins(world, slot, level):
    """Return when the transmission of a packet that waits at a port with a lane begins."""
    # A departure alone does not say where links change their rate: a packet that starts early and
    # slowly may leave when one would that starts late and fast.
    constants = world.constants
    if constants.is_slowed:
        return world.pool.starts[at(slot)]

    packet = world.pool.packets[at(slot)]
    packet_passage = passage(world, level, size_of(world, packet, int(packet.status)))
    return packet.time_ps - packet_passage.latency_ps - packet_passage.sending_ps


@inlined
def passage(world, level, kind):
    """Return how packets of a size (DATA, ACK or that of last packets) pass a link of a level."""
    return world.passages[at(LEVELS * kind + level)]


@inlined
def size_of(world, packet, status):
    """Return the number of a packet's size: DATA, ACK or that of its message's last packet."""
    if status & (SHORT | SMALL) == SHORT:
        return np.int64(world.flows.table[at(packet.flow)].last_size)

    return np.int64(ACK if status & SMALL else DATA)


@inlined
def class_of(world, packet, status):
    """Return the class (DATA or ACK) that a switch takes a packet for, by its length alone."""
    if status & SHORT:
        return np.int64(world.flows.table[at(packet.flow)].last_class)

    return np.int64(status & ACK)


@inlined
def count_packet(world, number, kind, more):
    """Count a packet of a size that a link carries, or take it back with -1."""
    link = world.links[at(number)]
    is_ack = 1 if kind == ACK else 0
    link.ack_packets += more * is_ack
    link.data_packets += more * (1 - is_ack)
    # Short packets are rare, and the ledger is another line of memory.
    if kind > ACK:
        less = world.constants.data_bytes - passage(world, HOST_LEVEL, kind).bytes
        world.ledgers[at(number)].short_bytes += more * less


@inlined
def occupy(world, number, level, kind, now_ps):
    """Take a link of a level as soon as it is free.

    Return when a packet of this size starts and when its last bit leaves: the gap that follows
    keeps the link busy, but the packet is out.
    """
    link = world.links[at(number)]
    start_ps = max(link.free_ps, now_ps)
    count_packet(world, number, kind, 1)
    sending_ps, slot_ps = holding(world, number, level, kind, now_ps=now_ps, start_ps=start_ps)
    link.free_ps = start_ps + slot_ps
    return start_ps, start_ps + sending_ps


@inlined
def holding(world, number, level, kind, now_ps, start_ps):
    """Return how long a packet that starts then holds a link: to its last bit, and with the gap.

    It has the size `kind`.
    """
    # As with losses, a ledger is another line of memory, and hardly any run has slow links.
    if world.constants.is_slowed:
        row = pace(world, number, now_ps, start_ps)
        return world.paces[row, at(3 + 2 * kind)], world.paces[row, at(4 + 2 * kind)]

    packet_passage = passage(world, level, kind)
    return packet_passage.sending_ps, packet_passage.slot_ps


@inlined
def pace(world, number, now_ps, start_ps):
    """Return the row of `world.paces` for a transmission on a link that starts at a time ahead."""
    # A link's last row lasts for ever. Past rows are not looked at again, but starts may run
    # backwards: a packet of the lane is ahead of all that waits.
    paces = world.paces
    ledger = world.ledgers[at(number)]
    while now_ps >= paces[at(ledger.pace), 0]:
        ledger.pace += 1

    row = np.int64(ledger.pace)
    while start_ps >= paces[at(row), 0]:
        row += 1

    return at(row)


@inlined
def host_sending_ps(world, number, kind):
    """Return how long a packet of a size holds a host's link at its constant rate."""
    if world.constants.is_slowed:
        return world.paces[at(world.ledgers[at(number)].pace), at(3 + 2 * kind)]

    return passage(world, HOST_LEVEL, kind).sending_ps


@inlined
def is_gone(world, number, start_ps, now_ps):
    """Return whether the transmission that starts then, of the link's last packet, never arrives.

    It does not where it starts while the link is dead (decision 8), or by chance.
    """
    link = world.links[at(number)]
    ledger = world.ledgers[at(number)]
    gone = start_ps >= link.down_ps and is_dead(world, link, ledger, start_ps, now_ps)

    # The ledger is another line of memory, and hardly any run has links that lose packets.
    if world.constants.is_lossy and not gone:
        count = np.int64(link.data_packets) + np.int64(link.ack_packets) - 1
        gone = mix(world.constants.seed, component(LOSS, number), count) < ledger.unlucky

    if gone:
        ledger.lost_to_failure += 1

    return gone


@inlined
def is_dead(world, link, ledger, start_ps, now_ps):
    """Return whether a link is down at a time ahead."""
    # Each link's row of outages ends with NEVER, where both stop. As with rates, past rows are not
    # looked at again.
    outages = world.outages
    while now_ps >= ledger.up_ps:
        ledger.outage += 1
        link.down_ps = outages[ledger.outage, 0]
        ledger.up_ps = outages[ledger.outage, 1]

    row = np.int64(ledger.outage)
    while start_ps >= outages[at(row), 1]:
        row += 1

    return start_ps >= outages[at(row), 0]


@inlined
def settle(world, way, level, now_ps):
    """Let packets go that have left a port's queue or lane, to the last bit, by `now_ps`."""
    # Departures need no events: a packet left one latency before its arrival.
    packets = world.pool.packets
    seen_ps = now_ps + passage(world, level, DATA).latency_ps
    while way.cursor != way.tail and packets[at(way.cursor)].time_ps <= seen_ps:
        let_go(world, way, level)


@inlined
def let_go(world, way, level):
    """Let the first packet of a port's queue, or of its lane, go: it has left."""
    pool = world.pool
    slot = way.cursor
    packet = pool.packets[at(slot)]
    kind = size_of(world, packet, int(packet.status))
    way.occupancy -= passage(world, level, kind).bytes
    way.cursor = following(pool, slot)

    if (slot + 1) % CHUNK == 0:
        leave(pool, slot, world.counters)
        foresee_chunk(pool, way.cursor)


@inlined
def next_departure(world, number, level):
    """Return when the next packet leaves a port, FAR if none waits."""
    way = world.links[at(first_way(world, number))]
    if way.cursor == way.tail:
        return FAR

    latency_ps = passage(world, level, DATA).latency_ps
    return world.pool.packets[at(way.cursor)].time_ps - latency_ps


@inlined
def first_way(world, number):
    """Return which has the packet that leaves a port first: the link's number, or its lane's."""
    if world.constants.lanes == 0:
        return number

    link = world.links[at(number)]
    lane = world.links[at(world.constants.lanes + number)]
    if lane.cursor == lane.tail:
        return number

    packets = world.pool.packets
    is_first = (
        link.cursor != link.tail
        and packets[at(link.cursor)].time_ps < packets[at(lane.cursor)].time_ps
    )
    return number if is_first else world.constants.lanes + number


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
