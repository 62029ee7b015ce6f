"""When a flow may send, what it sends, and what an ACK changes (load balancers, "Transport").

Every function takes records (or `state.blank` objects) and integers, changes them in place and
reads no clock, so that the agents, the virtual network and the simulator's kernels share it. A host
calls `ready_ps` to order its flows, `next_psn` at the moment its link takes the packet, and
`on_ack` when an acknowledgement has arrived (with SACK after `acknowledge` for every packet number
that it reports), `on_nack` in its place when a NACK has. Timers are looked at when the flow could
send, not by events of their own.
"""

from numba.extending import register_jitable

from fattree.draws import Stream, below, component, mix, scramble
from hostagent import congestion, trimmed
from hostagent.state import (
    NEVER,
    PSN_WINDOW,
    PacketState,
    Recovery,
    Rules,
)

# `fattree` knows no numba; kernels that draw must know these, too.
for rule in (scramble, mix, below, component):
    register_jitable(rule)

# Plain integers: kernels compare them with the fields of records.
ERASURE = int(Recovery.ERASURE)
JITTER = int(Stream.JITTER)
OUT = int(PacketState.OUT)
RESENT = int(PacketState.RESENT)
ACKED = int(PacketState.ACKED)
TRIMMED = int(PacketState.TRIMMED)
AGAIN = int(PacketState.AGAIN)
# What rounds pass over: what has arrived, and what goes again by itself (`hostagent.trimmed`).
SETTLED = ACKED | TRIMMED


def ring_length(rules: Rules, packets: int, gap_ps: int) -> int:
    """Return how many entries a flow's ring of packets has, a power of two up to PSN_WINDOW.

    Twice the message, or what a flow of this gap sends in 16 zero-load RTTs, and 16, if that is
    less.
    """
    # Erasure overwrites what is older than the ring (`on_ack` then takes no RTT sample); with SACK
    # nothing is sent that would not fit (`has_new`), nor would the ACK's bitmap hold more.
    enough = min(2 * packets, 16 + 16 * rules.zero_load_rtt_ps // gap_ps)
    return min(1 << (enough - 1).bit_length(), PSN_WINDOW)


@register_jitable
def start(sender, rules, flow, packets, gap_ps, due_ps, hops, in_turn, share):
    """Make a zeroed record the sender of `packets` packets, a gap apart, due from `due_ps` on.

    What goes `in_turn` is due from then on until all has left: the NIC alone paces it. `share` is
    what the receiver has told of late (`share_at_start`).
    """
    sender.flow = flow
    sender.packets = packets
    sender.gap_ps = gap_ps
    sender.pace_ps = 0 if in_turn else gap_ps * share
    sender.share = share
    sender.since_ps = due_ps
    sender.due_ps = due_ps
    sender.first_ps = NEVER
    sender.done_ps = NEVER
    sender.highest = -1
    sender.srtt_ps = -1
    sender.good_ps = -1
    sender.base_ps = rules.zero_load_rtt_ps * hops // rules.longest_path

    congestion.start(sender, rules, hops)


@register_jitable
def timeout_ps(sender, rules):
    """Return after how long a packet times out: srtt + 4 rttvar (RFC 6298), or the rules' floor.

    Its label is then avoided (REPS, PLB); with SACK it is sent again.
    """
    # The floor is what keeps REPS from freezing without a failure: rttvar shrinks while queues are
    # steady, and the next packet through a longer queue would look lost.
    # An ACK may wait for the packets that it is to report, as far apart as they leave.
    wait_ps = (rules.packets_per_ack - 1) * max(sender.gap_ps, sender.pace_ps)
    if sender.srtt_ps < 0:
        return wait_ps + max(3 * rules.zero_load_rtt_ps, rules.timer_floor_ps)

    return wait_ps + max(sender.srtt_ps + 4 * sender.rttvar_ps, rules.timer_floor_ps)


@register_jitable
def sample_rtt(sender, rtt_ps):
    """Feed one round-trip time into srtt and rttvar (gains 1/8 and 1/4, in integers)."""
    if sender.srtt_ps < 0:
        sender.srtt_ps = rtt_ps
        sender.rttvar_ps = rtt_ps >> 1
        return

    # rttvar sees the error against the srtt before this sample (RFC 6298, 2.3). The shifts round
    # down, below zero too, in Python as in kernels: all networks have the same timers.
    error = rtt_ps - sender.srtt_ps
    sender.rttvar_ps += (abs(error) - sender.rttvar_ps) >> 2
    sender.srtt_ps += error >> 3


@register_jitable
def ready_ps(sender, rules, packets):
    """Return when the flow may send if nothing arrives until then, NEVER if it will not."""
    if sender.done_ps != NEVER:
        return NEVER

    if rules.recovery == ERASURE:
        has_sent_enough = covers(sender)
        return max(sender.due_ps, sender.resume_ps) if has_sent_enough else sender.due_ps

    is_resending = sender.round_next < sender.round_end or trimmed.may_go(sender, rules)
    if is_resending or has_new(sender, rules, packets):
        return sender.due_ps

    return max(sender.due_ps, deadline_ps(sender, rules, packets))


@register_jitable
def next_psn(sender, rules, packets, label, now_ps):
    """Take the packet number that leaves with `label` at `now_ps`.

    The next is due a gap later, no catching up.
    """
    if rules.recovery == ERASURE:
        psn = next_symbol(sender, rules, packets, now_ps)
    else:
        psn = next_hole_or_new(sender, rules, packets, now_ps)

    packet = packets[psn & (len(packets) - 1)]
    packet.sent_ps = now_ps
    packet.label = label
    sender.first_ps = min(sender.first_ps, now_ps)
    sender.transmissions += 1
    sender.left_ps = now_ps
    set_due(sender)

    # Numbered by transmission, which counts resent packets as well: no two share a draw.
    if rules.jitter_permille > 0:
        draw = mix(rules.seed, component(JITTER, sender.flow), sender.transmissions)
        sender.due_ps += below(draw, sender.pace_ps * rules.jitter_permille // 1000)

    return psn


@register_jitable
def set_due(sender):
    """Let the next packet be due a pace after the last one left, or, in turn, at once."""
    sender.due_ps = sender.left_ps + sender.pace_ps if sender.pace_ps > 0 else sender.since_ps


@register_jitable
def share_at_start(rules, told, told_ps, in_turn, now_ps):
    """Return the share with which a flow begins: what its receiver has `told` its host of late.

    The chunks of a transfer are one conversation. Began each as if it were alone, then whoever has
    several senders would be drowned anew by every chunk. What is older than a round trip, and what
    goes in turn, begins alone.
    """
    is_of_late = told_ps != NEVER and now_ps - told_ps <= rules.zero_load_rtt_ps
    return told if is_of_late and not in_turn else 1


@register_jitable
def heed_share(sender, share, in_turn):
    """Pace a flow as its receiver says, whose link is shared among `share` flows.

    Flows whose host has heard nothing send a round trip long as if they were alone; then the sum of
    what leaves for one host is what its link carries, and nothing is drowned that only shares a way
    with them.
    """
    if share == sender.share:
        return

    sender.share = share
    sender.pace_ps = 0 if in_turn and share == 1 else sender.gap_ps * share
    set_due(sender)


@register_jitable
def asks(sender, rules, packets, psn):
    """Return whether the packet that was just taken asks for an ACK at once.

    It does where the sender has nothing more to send until it hears of it, or sends it again: so
    nobody waits for an ACK that the receiver holds back.
    """
    if rules.packets_per_ack == 1:
        return True

    if rules.recovery == ERASURE:
        return covers(sender)

    if packets[psn & (len(packets) - 1)].state & (RESENT | AGAIN):
        return True

    is_resending = sender.round_next < sender.round_end or trimmed.may_go(sender, rules)
    return not (is_resending or has_new(sender, rules, packets))


@register_jitable
def is_acknowledged(rules, waiting, asked, marked, is_new, is_complete):
    """Tell whether a receiver acknowledges a packet at once.

    `waiting` packets of the flow, this one among them, are not acknowledged. No timer: a mark, a
    duplicate and whatever the sender asks for are answered, so what waits is never the last.
    """
    return waiting >= rules.packets_per_ack or asked or marked or not is_new or is_complete


@register_jitable
def new_psn(sender, packets):
    """Take the next packet number that was never sent."""
    psn = sender.sent
    sender.sent += 1
    packets[psn & (len(packets) - 1)].state = OUT

    return psn


@register_jitable
def next_symbol(sender, rules, packets, now_ps):
    """Erasure: every packet is a new symbol, and any `packets` of them complete the message."""
    psn = new_psn(sender, packets)
    note_stop(sender, rules, now_ps)

    return psn


@register_jitable
def known_missing(sender):
    """Erasure: return how many symbols left before one that has arrived, and are not there yet.

    They are lost, cut or only late: the sender cannot tell, and makes up for all of them.
    """
    # Cut packets are among them: a NACK has their number, and does not raise the total.
    return max(sender.highest + 1 - sender.acked, 0)


@register_jitable
def covers(sender):
    """Erasure: tell whether the message is complete if all arrives of which nothing is known."""
    return sender.sent - known_missing(sender) >= sender.packets


@register_jitable
def note_stop(sender, rules, now_ps):
    """Erasure: note when the flow stops for the first time, and how long stops may last.

    Within an srtt of that the flow stops whenever it has sent enough, by what it knows then; later
    it does not stop before it is done.
    """
    # "Stops in the final BDP and only sends more if necessary" (the paper, loss recovery's
    # footnote). Each ACK that shows a gap makes it necessary at once. After a round trip the ACKs
    # of all that has arrived are here: whoever still needs more has lost what was sent last, which
    # no later ACK shows, cannot know how many of the next ones will be lost, and any are as good.
    if sender.resume_ps == 0 and covers(sender):
        sender.resume_ps = now_ps + (
            sender.srtt_ps if sender.srtt_ps >= 0 else 3 * rules.zero_load_rtt_ps
        )


@register_jitable
def has_new(sender, rules, packets):
    """SACK: tell whether a packet that was never sent may go.

    The ring, like the bitmap, starts at the lowest hole.
    """
    if sender.sent >= sender.packets or sender.sent >= sender.lowest + len(packets):
        return False

    return congestion.allows(sender, rules)


@register_jitable
def deadline_ps(sender, rules, packets):
    """SACK: return when the lowest unacknowledged packet times out.

    The timeout doubles on repetition.
    """
    if sender.lowest >= sender.sent:
        return NEVER

    # 2**16 timeouts are longer than any run; more would in the end leave int64.
    wait_ps = timeout_ps(sender, rules) << min(sender.backoff, 16)
    lowest = packets[sender.lowest & (len(packets) - 1)]
    # What was cut waits for the window, and whether that will open those tell that are under way.
    return (sender.heard_ps if lowest.state & TRIMMED else lowest.sent_ps) + wait_ps


@register_jitable
def next_hole_or_new(sender, rules, packets, now_ps):
    """SACK: resend what was cut, the round's holes or what has timed out, else a new packet."""
    if trimmed.may_go(sender, rules):
        return trimmed.take_lowest(sender, packets)

    # The deadline is this timeout or, backed off, later: the lowest hole at least is in the round.
    if sender.round_next >= sender.round_end and deadline_ps(sender, rules, packets) <= now_ps:
        sender.backoff += 1
        congestion.on_timeout(sender, rules, now_ps)
        # Nothing was heard for so long: the window does not hold it back any more.
        if packets[sender.lowest & (len(packets) - 1)].state & TRIMMED:
            return trimmed.take_lowest(sender, packets)

        sender.round_skips = SETTLED
        before_ps = now_ps - timeout_ps(sender, rules)
        sender.round_is_timeout = 1
        start_round(sender, packets, sender.lowest, end=sender.sent, before_ps=before_ps)

    if sender.round_next >= sender.round_end:
        return new_psn(sender, packets)

    psn = sender.round_next
    packets[psn & (len(packets) - 1)].state = RESENT
    sender.round_next += 1
    skip_to_hole(sender, packets)
    if sender.round_is_timeout:
        congestion.on_timed_out(sender, rules)

    return psn


@register_jitable
def start_round(sender, packets, first, end, before_ps):
    """SACK: resend every hole from `first` to `end` that was last sent by `before_ps`."""
    sender.round_next = first
    sender.round_end = end
    sender.round_before_ps = before_ps
    skip_to_hole(sender, packets)


@register_jitable
def skip_to_hole(sender, packets):
    """SACK: move the round on to its next hole, or to its end."""
    # A hole that was resent after the round's instant is on its way: it waits for the next round.
    while sender.round_next < sender.round_end:
        packet = packets[sender.round_next & (len(packets) - 1)]
        if not packet.state & sender.round_skips and packet.sent_ps <= sender.round_before_ps:
            return

        sender.round_next += 1


@register_jitable
def acknowledge(sender, packets, psn):
    """SACK: mark one packet number that the receiver reports.

    Call it for every number of a bitmap, then `on_ack`.
    """
    packet = packets[psn & (len(packets) - 1)]
    if psn < sender.lowest or packet.state & ACKED:
        return

    if packet.state & TRIMMED:
        trimmed.forget(sender, packets, psn)

    packet.state |= ACKED
    sender.acked += 1
    sender.highest = max(sender.highest, psn)

    while sender.lowest < sender.sent and packets[sender.lowest & (len(packets) - 1)].state & ACKED:
        sender.lowest += 1
        sender.backoff = 0


@register_jitable
def on_ack(sender, rules, packets, psn, total, marked, now_ps):
    """Account for an ACK of packet number `psn` that arrives at `now_ps`.

    `total` is how many packets of the flow the receiver has received, `marked` whether this one had
    ECN's mark. Return whether the flow is done.
    """
    if sender.done_ps != NEVER:
        return False

    sender.heard_ps = now_ps
    packet = packets[psn & (len(packets) - 1)]
    is_known = psn + len(packets) >= sender.sent
    # Karn: an ACK of a packet that was sent twice tells no round-trip time (RFC 6298, section 3).
    rtt_ps = now_ps - packet.sent_ps if is_known and not packet.state & RESENT else -1

    if rtt_ps >= 0:
        sample_rtt(sender, rtt_ps)

    # No packet is back that soon: the ACK is the first one's, not the second's (Eifel, RFC 3522).
    if packet.state & RESENT and now_ps - packet.sent_ps < sender.base_ps:
        on_spurious(sender, now_ps)

    if rules.recovery == ERASURE:
        count_symbols(sender, rules, packets, psn=psn, total=total, now_ps=now_ps)
    else:
        repair(sender, rules, packets, marked=marked, rtt_ps=rtt_ps, now_ps=now_ps)

    return is_done(sender, now_ps)


@register_jitable
def on_nack(sender, rules, packets, psn, total, now_ps):
    """Account for a NACK at `now_ps`: a switch has cut packet number `psn` to its headers.

    It reports what has arrived as an ACK does. Return whether the flow is done.
    """
    if sender.done_ps != NEVER:
        return False

    sender.heard_ps = now_ps
    if rules.recovery == ERASURE:
        # Any other symbol is as good.
        count_symbols(sender, rules, packets, psn=psn, total=total, now_ps=now_ps)
    elif trimmed.note(sender, packets, psn):
        skip_to_hole(sender, packets)
        congestion.on_nack(sender, rules, now_ps)

    return is_done(sender, now_ps)


@register_jitable
def is_done(sender, now_ps):
    """Note when the flow is complete; return whether it is."""
    if sender.acked < sender.packets:
        return False

    sender.done_ps = now_ps
    return True


@register_jitable
def on_spurious(sender, now_ps):
    """SACK: a hole was resent and closed by itself: late holes get a round trip to do the same."""
    # On paths as uneven as that, most late holes are reordering (RFC 8985 widens its window after a
    # spurious retransmission, too). Resent packets lengthen the queues that made the others late:
    # REPS at 8 MiB resends 32 % without this rule and 5 % with it (15 and 2 with MSwift).
    sender.patient_ps = now_ps + sender.srtt_ps
    # Lazy TCP counts late holes in a row.
    sender.late_holes = 0


@register_jitable
def count_symbols(sender, rules, packets, psn, total, now_ps):
    """Erasure: believe the receiver's count, so that a lost ACK costs nothing."""
    # Beyond the ring the entry is another packet's by now.
    if psn + len(packets) >= sender.sent:
        packets[psn & (len(packets) - 1)].state = ACKED

    # ACKs overtake each other under spraying: the largest count is the newest.
    sender.acked = max(sender.acked, total)
    sender.highest = max(sender.highest, psn)
    # What was only late has arrived: the flow may have sent enough without sending now.
    note_stop(sender, rules, now_ps)


@register_jitable
def repair(sender, rules, packets, marked, rtt_ps, now_ps):
    """SACK: start a round of retransmissions when the lowest hole is late, and adapt the window."""
    skip_to_hole(sender, packets)
    # The paper's threshold: 6 for an all-to-all, 32 for a permutation, between resending what is
    # merely reordered and leaving all to timeouts ("Sensitivity Analysis", loss recovery).
    late_end = sender.highest - rules.sack_threshold
    # A round resends the holes that are late themselves (RFC 6675, IsLost), not those above: under
    # spraying most of these close within the threshold. Each hole is in one round only, those below
    # `recover` have been: one that is resent and lost again is the timeout's.
    first = max(sender.lowest, sender.recover)
    is_free = sender.round_next >= sender.round_end and now_ps >= sender.patient_ps
    if first < late_end and is_free:
        is_lowest = sender.lowest >= sender.recover
        sender.recover = late_end
        # Where NACKs tell of losses, holes that they have told of are on their way again.
        sender.round_skips = SETTLED | RESENT | AGAIN if rules.trimming else SETTLED
        sender.round_is_timeout = 0
        start_round(sender, packets, first, end=late_end, before_ps=now_ps)
        if is_lowest and (not rules.trimming or sender.round_next < sender.round_end):
            congestion.on_late_hole(sender, rules, now_ps)

    congestion.on_ack(sender, rules, packets, marked=marked, rtt_ps=rtt_ps, now_ps=now_ps)
