"""Hosts receive packets: data packets become ACKs, and ACKs change their senders."""

import numpy as np

from hostagent.transports import go_back_n, labels, sack, transport
from hostagent.transports.roce import MOST_SHARE, PSN_BITS, PSN_MASK
from hostagent.transports.state import Recovery
from sim.kernels import host_rule
from sim.kernels.frames import note_holes, note_number
from sim.kernels.jit import at, inlined
from sim.kernels.lb.hashing import label_hash
from sim.kernels.lists import ONE_READER, append
from sim.kernels.planes import answering, heap_of, note_event, way_of
from sim.kernels.ready import (
    connection_of,
    give_back_sender,
    requeue,
    sender_of,
    unblock,
)
from sim.kernels.state import (
    ACK,
    ASKS,
    LAST_DONE,
    LIVE,
    LOST,
    MARKED,
    NO_SENDER,
    TRIMMED,
    UNFINISHED,
)

# A record's numbers have 31 bits and hosts' 24, which leaves 7 in each: a share's low ones are in
# the packet number, its high ones in the log.
SHARE_SHIFT = 7
GO_BACK_N = int(Recovery.GO_BACK_N)
LOW_SHARE = (1 << SHARE_SHIFT) - 1


@inlined
def receive(world, frames, number, packet, now_ps):
    """Take in one packet: an ACK changes its sender, a data packet becomes an ACK that waits."""
    status = int(packet.status)
    if status & LOST:
        world.counters[LIVE] -= 1
        return

    note_event(world, number, now_ps)
    if status & ACK:
        world.counters[LIVE] -= 1
        receive_ack(world, number, packet, now_ps)
    elif world.rules.recovery == GO_BACK_N and packet.psn != world.flows.received[at(packet.flow)]:
        receive_out_of_order(world, frames, number, packet, now_ps)
    else:
        receive_data(world, frames, number, packet, now_ps)


@inlined
def receive_data(world, frames, number, packet, now_ps):
    """Count a data packet and queue its ACK, which echoes label, number and mark (decision 1).

    The ACK may wait for more packets. A packet that a switch has cut is not counted, and its ACK is
    a NACK.
    """
    flow = int(packet.flow)
    psn = int(packet.psn)
    flows = world.flows
    constant = flows.table[at(flow)]
    status = int(packet.status)
    trimmed = status & TRIMMED
    arrived = count_arrived(world, packet, now_ps)
    is_new = arrived > 0
    if world.rules.recovery == GO_BACK_N:
        status |= remembered(world, flow)

    if is_new:
        flows.received[at(flow)] += arrived
        if world.rules.tells_share:
            note_arriving(world, flow, arrived)

    if trimmed:
        queue_ack(world, frames, number, packet, status, now_ps)
    else:
        note_number(frames, flow, psn)
        flows.waiting[at(flow)] += max(arrived, 1)
        if transport.is_acknowledged(
            world.rules,
            waiting=int(flows.waiting[at(flow)]),
            asked=status & ASKS > 0,
            marked=status & MARKED > 0,
            is_new=is_new,
            is_complete=flows.received[at(flow)] >= constant.packets,
        ):
            flows.waiting[at(flow)] = 0
            queue_ack(world, frames, number, packet, status, now_ps)
        else:
            world.counters[LIVE] -= 1

    # Complete at this end: flows from here may follow, while the sender hears of it later.
    if is_new and flows.received[at(flow)] == constant.packets:
        unblock(world, number, flow, now_ps)


@inlined
def count_arrived(world, packet, now_ps):
    """Return the packets that a receiver gains: none if the packet is cut, or a duplicate."""
    if int(packet.status) & TRIMMED:
        return 0

    flow = int(packet.flow)
    psn = int(packet.psn)
    flows = world.flows
    if world.rules.recovery == GO_BACK_N:
        return go_back_n.take(flows.receivers[at(flow)], flows.kept[at(flow)], psn, now_ps)

    # With erasure codes every packet is a new symbol; SACK may send one twice.
    if world.constants.is_sack:
        log = flows.table[at(flow)].log
        if flows.is_received[log + psn]:
            return 0

        flows.is_received[log + psn] = 1
        flows.arrivals[log + flows.received[at(flow)]] = psn

    return 1


@inlined
def receive_out_of_order(world, frames, number, packet, now_ps):
    """Keep or throw away go-back-N's packet that is not the next in order; maybe answer it."""
    flow = int(packet.flow)
    psn = int(packet.psn)
    status = int(packet.status)
    flows = world.flows
    received = int(flows.received[at(flow)])
    receiver = flows.receivers[at(flow)]
    kept = flows.kept[at(flow)]
    if go_back_n.is_asking(receiver, world.rules, kept, psn, received, now_ps):
        queue_ack(world, frames, number, packet, status | remembered(world, flow), now_ps)
        return

    world.counters[LIVE] -= 1
    if psn - received <= world.rules.reorder_packets:
        go_back_n.remember(receiver, status & MARKED, status & ASKS)


@inlined
def remembered(world, flow):
    """Return, and clear, the mark and the request for an ACK of packets that were kept."""
    receiver = world.flows.receivers[at(flow)]
    status = receiver.is_marked | receiver.asks
    receiver.is_marked = 0
    receiver.asks = 0
    return status


@inlined
def queue_ack(world, frames, number, packet, status, now_ps):
    """Queue the ACK of a data packet, or the NACK of a packet that a switch has cut.

    `status` is the packet's, and a mark of others that this ACK is the first to tell of.
    """
    flow = int(packet.flow)
    psn = int(packet.psn)
    trimmed = status & TRIMMED
    flows = world.flows
    nic = answering(world, flow, number, now_ps)
    host = world.hosts[at(nic)]
    constant = flows.table[at(way_of(world, flow, nic))]
    slot = append(world.pool, host, ONE_READER, world.counters)
    ack = world.pool.packets[at(slot)]
    ack.flow = flow
    ack.psn = psn
    ack.pod = constant.source_pod
    ack.edge = constant.source_edge
    ack.index = constant.source_index
    first = ASKS if world.rules.acks_first > 0 else 0
    ack.status = ACK | trimmed | first | (status & MARKED)
    ack.label = packet.label
    ack.hash = constant.hash_ack ^ label_hash(world.hash_low, world.hash_high, int(packet.label))
    # In place of SACK's bitmap: the log up to here has the arrivals by now.
    ack.log = flows.received[at(flow)]
    if world.rules.tells_share:
        receiver = world.hosts[at(flows.table[at(flow)].destination)]
        write_share(ack, max(receiver.arriving, 1))

    note_holes(world, frames, ack)
    host.acks += 1


@inlined
def note_arriving(world, flow, arrived):
    """Count a flow among those that share a host's link from its first packet to its last."""
    host = world.hosts[at(world.flows.table[at(flow)].destination)]
    received = world.flows.received[at(flow)]
    if received == arrived:
        host.arriving += 1

    if received == world.flows.table[at(flow)].packets:
        host.arriving -= 1


@inlined
def write_share(ack, share):
    """Put a receiver's share into an ACK, above numbers of which 24 bits are left.

    A separate field would make every packet's record longer than half a line of memory.
    """
    told = min(share, MOST_SHARE)
    ack.psn = (np.int64(ack.psn) & PSN_MASK) | ((told & LOW_SHARE) << PSN_BITS)
    ack.log = (np.int64(ack.log) & PSN_MASK) | ((told >> SHARE_SHIFT) << PSN_BITS)


@inlined
def share_in(psn, log):
    """Return the share that `write_share` has put into the numbers of an ACK."""
    return ((log >> PSN_BITS) << SHARE_SHIFT) | (psn >> PSN_BITS)


@inlined
def acknowledge(flows, flow, ring, total):
    """SACK: give a sender the packets that an ACK reports beyond earlier ACKs."""
    # The receiver may write further entries at the same time, in another thread, but these are at
    # least a window old.
    sender = sender_of(flows, flow)
    log = flows.table[at(flow)].log
    for entry in range(int(flows.reported[flow]), total):
        sack.acknowledge(sender, ring, int(flows.arrivals[log + entry]))

    flows.reported[flow] = max(total, int(flows.reported[flow]))


@inlined
def numbers_of(world, packet, flow, sender):
    """Return an ACK's packet number, and how many packets of the flow it reports."""
    psn = np.int64(packet.psn)
    total = np.int64(packet.log)
    if not world.rules.tells_share:
        return psn, total

    near = sender.acked
    if world.constants.is_sack:
        near = np.int64(world.flows.reported[at(flow)])

    return unwrapped(psn, sender.sent), unwrapped(total, near)


@inlined
def unwrapped(number, near):
    """Return the number with these low 24 bits that is closest, as `transports.roce` does."""
    half = np.int64(1) << (PSN_BITS - 1)
    return max(near + ((number - near + half) & PSN_MASK) - half, number & PSN_MASK)


@inlined
def learn_label(world, flow, connection, label, is_marked, is_nack, now_ps):
    """Let a flow's label rule learn from an ACK, or from a NACK."""
    rules = world.rules
    if rules.label_rule == host_rule.OWN:
        # A rule of the user's knows marks only: a queue that was full was long, too.
        is_bad = is_marked or is_nack
        host_rule.on_ack(world, flow, label=label, marked=is_bad, now_ps=now_ps)
    elif is_nack:
        labels.on_nack(connection, rules, label, now_ps)
    else:
        labels.on_ack(connection, rules, label=label, marked=is_marked, now_ps=now_ps)


@inlined
def receive_ack(world, number, packet, now_ps):
    """Pass an ACK to its sender; note when the flow is done."""
    flow = int(packet.flow)
    flows = world.flows
    rules = world.rules
    constant = flows.table[at(flow)]
    share = np.int64(0)
    if rules.tells_share:
        share = share_in(np.int64(packet.psn), np.int64(packet.log))
        flows.told[constant.pair] = share
        flows.told_ps[constant.pair] = now_ps

    if flows.sender_of[at(flow)] == NO_SENDER:
        return

    sender = sender_of(flows, flow)
    connection = connection_of(flows, constant)
    ring = flows.outstanding[constant.ring : constant.ring + constant.ring_length]

    # Labels learn before the transport does (`hostagent.transports.labels`).
    label = int(packet.label)
    is_marked = int(packet.status) & MARKED > 0
    is_nack = int(packet.status) & TRIMMED > 0
    learn_label(world, flow, connection, label, is_marked, is_nack, now_ps)
    psn, total = numbers_of(world, packet, flow, sender)
    if rules.tells_share:
        transport.heed_share(sender, rules, share)

    if world.constants.is_sack:
        acknowledge(flows, flow, ring, total)

    if is_nack:
        is_done = transport.on_nack(sender, connection, rules, ring, psn, total, now_ps)
    else:
        is_done = transport.on_ack(
            sender,
            connection,
            rules,
            ring,
            psn,
            total,
            label=label,
            marked=is_marked,
            now_ps=now_ps,
        )

    requeue(world, heap_of(world, flow, number), flow, transport.ready_ps(sender, rules, ring))
    if is_done:
        give_back_sender(world, constant.source, flow)
        world.counters[UNFINISHED] -= 1
        world.counters[LAST_DONE] = max(world.counters[LAST_DONE], now_ps)
        if rules.awaits_acks:
            unblock(world, number, flow, now_ps)
