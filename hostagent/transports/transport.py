"""The transport of flows: times to send, packets, effects of ACKs (load balancers, "Transport").

Every function takes records (or `state.blank` objects) and integers, changes them in place and
reads no clock, so that the agents, the virtual network and the simulator's kernels share it. A host
calls `ready_ps` to order its flows, `next_psn` at the moment its link takes the packet, and
`on_ack` when an acknowledgement has arrived (with SACK after `sack.acknowledge` for every number
that it reports), `on_nack` instead for a NACK. Timers are checked when the flow could send; they
are no events.
"""

from fattree.draws import Stream, below, component, mix, scramble
from hostagent.transports import congestion, dcqcn, erasure, go_back_n, labels, mrc, sack, trimmed
from hostagent.transports.packet_states import AGAIN, RESENT, new_psn
from hostagent.transports.parts import part
from hostagent.transports.state import NEVER, PSN_WINDOW, Congestion, Recovery, Rules
from hostagent.transports.timers import sample_rtt

# `fattree` knows no numba; kernels that draw must know these, too.
for rule in (scramble, mix, below, component):
    part(rule)

# Plain integers: kernels compare them with the fields of records.
ERASURE = int(Recovery.ERASURE)
SACK = int(Recovery.SACK)
DCQCN = int(Congestion.DCQCN)
JITTER = int(Stream.JITTER)


def ring_length(rules: Rules, packets: int, gap_ps: int) -> int:
    """Return how many entries a flow's ring of packets has, a power of two up to PSN_WINDOW.

    Enough for twice the message or, if that is less, for 16 packets more than a flow of this gap
    sends in 16 zero-load RTTs.
    """
    # Erasure overwrites entries older than the ring (`on_ack` then takes no RTT sample); with SACK
    # nothing is sent that would not fit (`sack.has_new`), nor would the ACK's bitmap hold more.
    enough = min(2 * packets, 16 + 16 * rules.zero_load_rtt_ps // gap_ps)
    return min(1 << (enough - 1).bit_length(), PSN_WINDOW)


@part
def start(sender, rules, flow, packets, gap_ps, due_ps, hops, in_turn, share):
    """Make a zeroed record the sender of `packets` packets, a gap apart, due from `due_ps` on.

    A flow that goes `in_turn` is due from then on until all packets have left: only the NIC paces
    it. `share` is the receiver's latest share (`share_at_start`).
    """
    sender.flow = flow
    sender.packets = packets
    sender.gap_ps = gap_ps
    sender.share = share
    sender.in_turn = in_turn
    sender.since_ps = due_ps
    sender.due_ps = due_ps
    sender.first_ps = NEVER
    sender.done_ps = NEVER
    sender.stop_ps = NEVER
    sender.highest = -1
    sender.srtt_ps = -1
    sender.good_ps = -1
    sender.base_ps = rules.zero_load_rtt_ps * hops // rules.longest_path

    congestion.start(sender, rules, hops)
    set_pace(sender, rules)


@part
def ready_ps(sender, rules, packets):
    """Return when the flow may send if nothing arrives until then, NEVER if it will not."""
    if sender.done_ps != NEVER:
        return NEVER

    if rules.recovery == ERASURE:
        has_sent_enough = erasure.covers(sender)
        resume_ps = erasure.resume_ps(sender, rules) if has_sent_enough else sender.due_ps
        return max(sender.due_ps, resume_ps)

    is_resending = sender.round_next < sender.round_end or trimmed.may_go(sender, rules)
    if is_resending or sack.has_new(sender, rules, packets):
        return sender.due_ps

    return max(sender.due_ps, sack.deadline_ps(sender, rules, packets))


@part
def next_psn(sender, connection, rules, packets, label, now_ps):
    """Take the packet number that leaves with `label` at `now_ps`.

    The next packet is due a gap later; late packets do not catch up. `connection` learns which
    label has lost a packet (`labels`).
    """
    # By the state that chose the label.
    held_ps = labels.held_ps(sender, connection, rules, now_ps)
    sender.is_held = 1 if held_ps else 0
    is_copy = rules.recovery == SACK and sender.sent > 0
    if is_copy and labels.is_probe(connection, rules, label):
        psn = sack.copy_of_last(sender, packets)
    else:
        psn = next_of_message(sender, connection, rules, packets, label, now_ps)

    sender.first_ps = min(sender.first_ps, now_ps)
    sender.transmissions += 1
    sender.left_ps = now_ps
    if rules.congestion == DCQCN:
        dcqcn.on_sent(sender, rules, now_ps)
        set_pace(sender, rules)

    set_due(sender)

    # Numbered by transmission, which counts resent packets as well: no two share a draw.
    if rules.jitter_permille > 0:
        draw = mix(rules.seed, component(JITTER, sender.flow), sender.transmissions)
        sender.due_ps += below(draw, sender.pace_ps * rules.jitter_permille // 1000)

    sender.due_ps = max(sender.due_ps, held_ps)
    if rules.recovery == ERASURE:
        erasure.note_stop(sender, now_ps)

    return psn


@part
def next_of_message(sender, connection, rules, packets, label, now_ps):
    """Take the message's next packet, new or again, and note its label and time."""
    if rules.recovery == ERASURE:
        psn = new_psn(sender, packets)
    elif rules.recovery == SACK:
        psn = sack.next_hole_or_new(sender, rules, packets, now_ps)
    else:
        psn = go_back_n.next_again_or_new(sender, rules, packets, now_ps)

    packet = packets[psn & (len(packets) - 1)]
    # A packet that goes again after a NACK was cut, not lost: it is AGAIN, too. Go-back-N sends
    # packets behind a loss again, and most of these had arrived.
    if rules.recovery == SACK and packet.state == RESENT:
        labels.on_resent(connection, rules, packet, label, sender.round_is_timeout)

    packet.sent_ps = now_ps
    packet.label = label
    return psn


@part
def set_pace(sender, rules):
    """Set the time between packets, by the receiver's share and the congestion control."""
    is_at_once = sender.in_turn and sender.share == 1
    sender.pace_ps = 0 if is_at_once else sender.gap_ps * sender.share
    if rules.congestion == DCQCN and sender.rate < dcqcn.ONE:
        sender.pace_ps = dcqcn.slowed(sender, sender.gap_ps * sender.share)


@part
def set_due(sender):
    """Make the next packet due: a pace after the last packet left, or at once for flows in turn."""
    sender.due_ps = sender.left_ps + sender.pace_ps if sender.pace_ps > 0 else sender.since_ps


@part
def share_at_start(rules, told, told_ps, in_turn, now_ps):
    """Return the share with which a flow begins: `told`, the latest share from its receiver.

    The chunks of a transfer belong together: if each began as if alone, every chunk would overload
    a receiver with several senders. After a round trip without an ACK a flow begins as if alone,
    and so does a flow that goes in turn.
    """
    is_of_late = told_ps != NEVER and now_ps - told_ps <= rules.zero_load_rtt_ps
    return told if is_of_late and not in_turn else 1


@part
def heed_share(sender, rules, share):
    """Set the pace of a flow to a receiver with `share` flows on its link.

    Without an ACK from the receiver a flow sends for a round trip as if alone. After that all
    senders together fill the receiver's link, and do not harm flows that only share a part of the
    path.
    """
    if share == sender.share:
        return

    sender.share = share
    set_pace(sender, rules)
    if not sender.is_held:
        set_due(sender)


@part
def release(sender, connection):
    """Make the next packet of a held flow due, once a probe has come back."""
    if sender.is_held and connection.has_echo:
        sender.is_held = 0
        set_due(sender)


@part
def asks(sender, rules, packets, psn):
    """Return whether the packet that was just taken asks for an ACK at once.

    It does if the sender can send nothing more until this ACK, or if it sends the packet again: so
    no sender waits for an ACK that the receiver holds back.
    """
    if rules.packets_per_ack == 1:
        return True

    if rules.recovery == ERASURE:
        return erasure.covers(sender)

    if packets[psn & (len(packets) - 1)].state & (RESENT | AGAIN):
        return True

    is_resending = sender.round_next < sender.round_end or trimmed.may_go(sender, rules)
    return not (is_resending or sack.has_new(sender, rules, packets))


@part
def is_acknowledged(rules, waiting, asked, marked, is_new, is_complete):
    """Return whether a receiver acknowledges a packet at once.

    `waiting` packets of the flow, with this packet, are not acknowledged yet. There is no timer:
    marked packets, duplicates and packets that ask are answered at once, so the last packet never
    waits.
    """
    return waiting >= rules.packets_per_ack or asked or marked or not is_new or is_complete


@part
def on_ack(sender, connection, rules, packets, psn, total, label, marked, now_ps):
    """Account for an ACK of packet number `psn` that arrives at `now_ps`.

    `total` is how many packets of the flow the receiver has received, `marked` whether the packet
    had ECN's mark, `label` its label. Return whether the flow is done.
    """
    if sender.done_ps != NEVER:
        return False

    release(sender, connection)
    sender.heard_ps = now_ps
    packet = packets[psn & (len(packets) - 1)]
    is_known = psn + len(packets) >= sender.sent
    # Karn: an ACK of a packet that was sent twice has no round-trip time (RFC 6298, section 3).
    rtt_ps = now_ps - packet.sent_ps if is_known and not packet.state & RESENT else -1

    if rtt_ps >= 0:
        sample_rtt(sender, rtt_ps)

    if is_known:
        mrc.on_copy(connection, rules, packet, label)

    # No packet is back that soon: the ACK is the first copy's, not the second's (Eifel, RFC 3522).
    if is_known and packet.state & RESENT and now_ps - packet.sent_ps < sender.base_ps:
        sack.on_spurious(sender, now_ps)

    if rules.recovery == ERASURE:
        erasure.count_symbols(sender, packets, psn=psn, total=total, now_ps=now_ps)
    elif rules.recovery == SACK:
        sack.repair(sender, rules, packets, marked=marked, rtt_ps=rtt_ps, now_ps=now_ps)
    else:
        go_back_n.count_in_order(sender, packets, psn=psn, total=total)

    # A new rate holds from the next packet on: that packet's time is decided.
    if rules.congestion == DCQCN and marked:
        dcqcn.on_mark(sender, rules, now_ps)

    return is_done(sender, now_ps)


@part
def on_nack(sender, connection, rules, packets, psn, total, now_ps):
    """Account for a NACK at `now_ps`: a switch has cut packet number `psn` to its headers.

    Like an ACK it reports which packets have arrived. Return whether the flow is done.
    """
    if sender.done_ps != NEVER:
        return False

    release(sender, connection)
    sender.heard_ps = now_ps
    if rules.congestion == DCQCN:
        dcqcn.on_mark(sender, rules, now_ps)

    if rules.recovery == ERASURE:
        # Any other symbol is as good.
        erasure.count_symbols(sender, packets, psn=psn, total=total, now_ps=now_ps)
    else:
        is_news = trimmed.note(sender, packets, psn)
        # The NACK may have reported the round's next hole as arrived, whatever it is of.
        sack.skip_to_hole(sender, packets)
        if is_news:
            congestion.on_nack(sender, rules, now_ps)

    return is_done(sender, now_ps)


@part
def is_done(sender, now_ps):
    """Note when the flow is complete; return whether it is."""
    if sender.acked < sender.packets:
        return False

    sender.done_ps = now_ps
    return True
