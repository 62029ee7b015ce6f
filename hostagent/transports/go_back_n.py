"""Go-back-N: receivers take packets in order alone, and senders go back to a missing packet.

As RoCE's reliable connections do it (InfiniBand, volume 1, 9.7.5): a packet out of order is thrown
away, and the first such packet after a packet in order is answered with the missing number. Here
that answer is an ACK of a number beyond those that it reports. The sender then sends all packets
again from the missing packet on, as after a timeout of the lowest packet without an ACK.

A NIC that puts packets in order (`transport.reorder_packets`) keeps packets up to so far beyond the
next packet, without an answer. It asks for the missing packet where a packet is beyond that, or
where a packet comes after a gap has been there for `reorder_ps`.
"""

from hostagent.transports import sack
from hostagent.transports.packet_states import ACKED, RESENT, new_psn
from hostagent.transports.parts import part
from hostagent.transports.state import Rules


@part
def next_again_or_new(sender, rules, packets, now_ps):
    """Take the next packet after a return, else a new packet."""
    is_through = sender.round_next >= sender.round_end
    if is_through and sack.deadline_ps(sender, rules, packets) <= now_ps:
        sender.backoff += 1
        go_back(sender)

    if sender.round_next >= sender.round_end:
        return new_psn(sender, packets)

    psn = sender.round_next
    packets[psn & (len(packets) - 1)].state = RESENT
    sender.round_next += 1
    return psn


@part
def go_back(sender):
    """Send all again from the lowest packet without an ACK on."""
    sender.returns += 1
    sender.round_next = sender.lowest
    sender.round_end = sender.sent


@part
def count_in_order(sender, packets, psn, total):
    """Note that the first `total` packets have arrived; go back if `psn` came out of order."""
    # ACKs overtake each other under spraying: a smaller total is an older ACK's.
    if total < sender.lowest:
        return

    if total > sender.lowest:
        for arrived in range(sender.lowest, total):
            packets[arrived & (len(packets) - 1)].state |= ACKED

        sender.lowest = total
        sender.acked = total
        sender.backoff = 0
        sender.round_next = max(sender.round_next, total)

    sender.highest = max(sender.highest, psn)
    if psn >= total:
        go_back(sender)


@part
def take(receiver, kept, psn, now_ps):
    """Take the next packet in order and packets kept behind it; return their number.

    Entry psn & (len(kept) - 1) of `kept` is 1 for a packet within reach that waits here.
    """
    count = 1
    while receiver.kept > 0 and kept[(psn + count) & (len(kept) - 1)]:
        kept[(psn + count) & (len(kept) - 1)] = 0
        receiver.kept -= 1
        count += 1

    # Packets that are still kept wait for another packet, at a gap that is the first only now.
    receiver.gap_ps = now_ps
    receiver.has_asked = 0
    return count


@part
def is_asking(receiver, rules, kept, psn, received, now_ps):
    """Keep a packet that is not the next in order, or drop it; return whether to answer it.

    A duplicate is answered: an ACK may have been lost. After a gap a single packet is answered,
    with a request for the missing packet.
    """
    if psn < received:
        return True

    is_late = psn - received > rules.reorder_packets
    if not is_late:
        if receiver.kept == 0:
            receiver.gap_ps = now_ps

        receiver.kept += 1 - kept[psn & (len(kept) - 1)]
        kept[psn & (len(kept) - 1)] = 1
        # No timer of its own: a gap without later packets is left to the sender's timer.
        is_late = now_ps - receiver.gap_ps >= rules.reorder_ps

    is_first = is_late and not receiver.has_asked
    receiver.has_asked |= is_late
    return is_first


@part
def remember(receiver, marked, asks):
    """Note the mark and the request of a packet that waits without an answer."""
    receiver.is_marked |= marked
    receiver.asks |= asks


def reach(rules: Rules) -> int:
    """Return how many entries a receiver's `kept` has, a power of two."""
    return 1 << rules.reorder_packets.bit_length()
