"""Selective ACKs: rounds send late holes again, and holes that time out."""

from hostagent.transports import congestion, nscc, trimmed
from hostagent.transports.packet_states import ACKED, AGAIN, RESENT, SETTLED, TRIMMED, new_psn
from hostagent.transports.parts import part
from hostagent.transports.state import NEVER
from hostagent.transports.timers import timeout_ps

# The least threshold that follows a window, in packets.
FEWEST = 5


@part
def has_new(sender, rules, packets):
    """Return whether a packet that was never sent may go.

    The ring, like the bitmap, starts at the lowest hole.
    """
    if sender.sent >= sender.packets or sender.sent >= sender.lowest + len(packets):
        return False

    return congestion.allows(sender, rules)


@part
def deadline_ps(sender, rules, packets):
    """Return when the lowest unacknowledged packet times out.

    The timeout doubles on repetition.
    """
    if sender.lowest >= sender.sent:
        return NEVER

    # 2**16 timeouts are longer than any run; more would in the end leave int64.
    wait_ps = timeout_ps(sender, rules) << min(sender.backoff, 16)
    lowest = packets[sender.lowest & (len(packets) - 1)]
    # A cut packet waits for the window, which ACKs of packets under way may open.
    return (sender.heard_ps if lowest.state & TRIMMED else lowest.sent_ps) + wait_ps


@part
def next_hole_or_new(sender, rules, packets, now_ps):
    """Take a cut packet, a hole of the round or of a timeout, else a new packet."""
    if trimmed.may_go(sender, rules):
        return trimmed.take_lowest(sender, packets)

    # The deadline is this timeout or, backed off, later: the lowest hole at least is in the round.
    if sender.round_next >= sender.round_end and deadline_ps(sender, rules, packets) <= now_ps:
        sender.backoff += 1
        congestion.on_timeout(sender, rules, now_ps)
        # No ACK came for so long: the window does not hold a cut packet back any more.
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


@part
def copy_of_last(sender, packets):
    """Return the number of the newest packet, of which a copy leaves to test a path.

    Nothing waits for the copy. An ACK may be of either, so it gives no round-trip time.
    """
    psn = sender.sent - 1
    packets[psn & (len(packets) - 1)].state |= RESENT
    return psn


@part
def start_round(sender, packets, first, end, before_ps):
    """Resend every hole from `first` to `end` that was last sent by `before_ps`."""
    sender.round_next = first
    sender.round_end = end
    sender.round_before_ps = before_ps
    skip_to_hole(sender, packets)


@part
def skip_to_hole(sender, packets):
    """Move the round on to its next hole, or to its end."""
    # A hole that was resent after the round's instant is on its way: it waits for the next round.
    while sender.round_next < sender.round_end:
        packet = packets[sender.round_next & (len(packets) - 1)]
        if not packet.state & sender.round_skips and packet.sent_ps <= sender.round_before_ps:
            return

        sender.round_next += 1


@part
def acknowledge(sender, packets, psn):
    """Mark one packet number that the receiver reports.

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


@part
def on_spurious(sender, now_ps):
    """Give late holes a round trip to close by themselves, as a resent hole has done."""
    # On paths as uneven as that, most late holes are reordering (RFC 8985 widens its window after a
    # spurious retransmission, too). Resent packets lengthen the queues that made others late:
    # REPS at 8 MiB resends 32 % without this rule and 5 % with it (15 and 2 with MSwift).
    sender.patient_ps = now_ps + sender.srtt_ps
    # Lazy TCP counts late holes in a row.
    sender.late_holes = 0


@part
def end_of_late(sender, rules):
    """Return the packet number below which all holes are late.

    A hole is late when more packets above it have arrived than a given number. Where the number
    follows the window (NSCC, unless given), holes are late when 1.5 windows of packets
    have arrived above the lowest hole: at least FEWEST packets, at most the largest window.
    """
    # The paper's: 6 for an all-to-all, 32 for a permutation, between resending merely reordered
    # packets and leaving all to timeouts ("Sensitivity Analysis", loss recovery). The packets that
    # leave while a packet waits in a queue may all pass it, so NSCC's threshold follows its window,
    # as in Ultra Ethernet's public simulator (SLEEK).
    if rules.sack_threshold > 0:
        return sender.highest - rules.sack_threshold

    threshold = max(min(3 * sender.window // 2, nscc.ceiling(sender)) >> 16, FEWEST)
    return sender.highest - threshold + 1 if sender.acked - sender.lowest >= threshold else 0


@part
def repair(sender, rules, packets, marked, rtt_ps, now_ps):
    """Start a round of retransmissions when the lowest hole is late, and adapt the window."""
    skip_to_hole(sender, packets)
    late_end = end_of_late(sender, rules)
    # A round resends the holes that are late themselves (RFC 6675, IsLost), not those above: under
    # spraying most of these close within the threshold. Each hole is in one round only, those below
    # `recover` have been: a hole that is resent and lost again is the timeout's.
    first = max(sender.lowest, sender.recover)
    is_free = sender.round_next >= sender.round_end and now_ps >= sender.patient_ps
    if first < late_end and is_free:
        is_lowest = sender.lowest >= sender.recover
        sender.recover = late_end
        # Where NACKs report losses, resent holes are on their way again.
        sender.round_skips = SETTLED | RESENT | AGAIN if rules.trimming else SETTLED
        sender.round_is_timeout = 0
        start_round(sender, packets, first, end=late_end, before_ps=now_ps)
        if is_lowest and (not rules.trimming or sender.round_next < sender.round_end):
            congestion.on_late_hole(sender, rules, now_ps)

    congestion.on_ack(sender, rules, packets, marked=marked, rtt_ps=rtt_ps, now_ps=now_ps)
