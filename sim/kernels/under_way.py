"""What is under way, apart from where it is kept and what the clock says: for runs that repeat.

Packets are told relative to the clock and to what their sender has sent, so that two moments of a
run look the same where all that follows is the same, later by the time between them
(`sim.runs.periods`).
"""

import numpy as np

from sim.kernels.jit import at, inlined, kernel
from sim.kernels.lists import following
from sim.kernels.state import ACK, NOWHERE

# Odd, without a pattern in their bits: of the golden ratio and the square root of three.
FIRST = np.uint64(0x9E3779B97F4A7C15)
SECOND = np.uint64(0xBB67AE8584CAA73B)
SHIFT = np.uint64(29)


@kernel
def hash_under_way(world, now_ps, found):
    """Write two hashes, of 64 bits each, of all packets on links and in hosts' lists of ACKs."""
    hashes = (FIRST, SECOND)
    for number in range(len(world.links)):
        link = world.links[number]
        slot = np.int64(link.taken)
        hashes = mixed(hashes, np.int64(number))
        while slot != link.tail:
            packet = world.pool.packets[at(slot)]
            hashes = mixed(hashes, packet.time_ps - now_ps)
            hashes = mixed(hashes, np.int64(packet.route_agg))
            if packet.route_agg != NOWHERE:
                hashes = mixed(hashes, np.int64(packet.route_core))

            hashes = mixed_packet(world, hashes, packet, now_ps)
            slot = following(world.pool, slot)

    for number in range(len(world.hosts)):
        host = world.hosts[number]
        slot = np.int64(host.taken)
        hashes = mixed(hashes, np.int64(number))
        while slot != host.tail:
            # What waits in a host has no arrival and no way yet.
            hashes = mixed_packet(world, hashes, world.pool.packets[at(slot)], now_ps)
            slot = following(world.pool, slot)

    found[0], found[1] = hashes


@inlined
def mixed_packet(world, hashes, packet, now_ps):
    """Mix in what a packet carries, and what its sender remembers of it."""
    flow = int(packet.flow)
    sent = world.flows.senders[at(flow)].sent
    constant = world.flows.table[at(flow)]
    # Its entry is read once more, when its ACK arrives; those of other numbers never.
    ring = world.flows.outstanding[constant.ring : constant.ring + constant.ring_length]
    entry = ring[at(np.int64(packet.psn) & (len(ring) - 1))]
    hashes = mixed(hashes, np.int64(flow))
    hashes = mixed(hashes, np.int64(packet.psn) - sent)
    hashes = mixed(hashes, np.int64(packet.status))
    hashes = mixed(hashes, np.int64(packet.label))
    hashes = mixed(hashes, np.int64(packet.hash))
    hashes = mixed(hashes, np.int64(packet.pod))
    hashes = mixed(hashes, np.int64(packet.edge))
    hashes = mixed(hashes, np.int64(packet.index))
    # In data packets the field is whatever was there before.
    if packet.status & ACK:
        hashes = mixed(hashes, np.int64(packet.log) - sent)

    hashes = mixed(hashes, entry.sent_ps - now_ps)
    hashes = mixed(hashes, np.int64(entry.label))
    return mixed(hashes, np.int64(entry.state))


@inlined
def mixed(hashes, word):
    """Return both hashes with a word mixed in."""
    first = (hashes[0] ^ np.uint64(word)) * FIRST
    second = (hashes[1] + np.uint64(word)) * SECOND
    return first ^ (first >> SHIFT), second ^ (second >> SHIFT)


@kernel
def move(world, shift_ps, further, room):
    """Let all packets be later, and the numbers of each flow `further[flow]` higher.

    So too the rings of what senders remember: an entry goes where its number leads. `room` is for
    the longest ring.
    """
    for number in range(len(world.links)):
        link = world.links[number]
        slot = np.int64(link.taken)
        while slot != link.tail:
            packet = world.pool.packets[at(slot)]
            packet.time_ps += shift_ps
            renumber(packet, further[at(int(packet.flow))])
            slot = following(world.pool, slot)

    for number in range(len(world.hosts)):
        host = world.hosts[number]
        slot = np.int64(host.taken)
        while slot != host.tail:
            packet = world.pool.packets[at(slot)]
            renumber(packet, further[at(int(packet.flow))])
            slot = following(world.pool, slot)

    for flow in range(len(further)):
        if further[flow] > 0:
            constant = world.flows.table[flow]
            ring = world.flows.outstanding[constant.ring : constant.ring + constant.ring_length]
            turn(ring, room, further[flow], shift_ps)


@inlined
def turn(ring, room, further, shift_ps):
    """Let the entries of a ring go where their numbers lead."""
    for entry in range(len(ring)):
        room[entry] = ring[entry]

    for entry in range(len(ring)):
        moved = (entry + further) & (len(ring) - 1)
        ring[moved] = room[entry]
        ring[moved].sent_ps += shift_ps


@inlined
def renumber(packet, further):
    """Give a packet, or an ACK with what it reports, the number that much higher."""
    packet.psn += further
    if packet.status & ACK:
        packet.log += further
