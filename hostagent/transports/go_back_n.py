"""Go-back-N: receivers take packets in order alone, and senders go back to what is missing.

As RoCE's reliable connections do it (InfiniBand, volume 1, 9.7.5): a packet out of order is thrown
away, and the first one after a packet in order is answered with what is missing. Here that answer
is an ACK of a number beyond those that it reports. The sender then sends all from the missing one
on again, as it does where the lowest packet that is not acknowledged has timed out.

A NIC that puts packets in order (`transport.reorder_packets`) keeps those that are so far beyond
the next one at most, without a word. It asks for what is missing where a packet is beyond that, or
where one comes after a gap has been there for `reorder_ps`.
"""

from numba.extending import register_jitable

from hostagent.transports import sack
from hostagent.transports.packet_states import ACKED, RESENT, new_psn
from hostagent.transports.state import Rules


@register_jitable
def next_again_or_new(sender, rules, packets, now_ps):
    """Send on from where the sender has gone back to, else a new packet."""
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


@register_jitable
def go_back(sender):
    """Send all again that is not acknowledged, from the lowest on."""
    sender.returns += 1
    sender.round_next = sender.lowest
    sender.round_end = sender.sent


@register_jitable
def count_in_order(sender, packets, psn, total):
    """Take in that the first `total` packets have arrived, and whether `psn` came out of order."""
    # ACKs overtake each other under spraying: a smaller total is an older one's.
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


@register_jitable
def take(receiver, kept, psn, now_ps):
    """Take the next packet in order and those kept behind it; return how many they are.

    `kept` says of each packet within reach whether it waits here: entry psn & (len(kept) - 1).
    """
    count = 1
    while receiver.kept > 0 and kept[(psn + count) & (len(kept) - 1)]:
        kept[(psn + count) & (len(kept) - 1)] = 0
        receiver.kept -= 1
        count += 1

    # What is still kept waits for another packet, whose gap is the first only now.
    receiver.gap_ps = now_ps
    receiver.has_asked = 0
    return count


@register_jitable
def is_asking(receiver, rules, kept, psn, received, now_ps):
    """Keep a packet that is not the next in order, or throw it away; tell whether to answer it.

    A duplicate is answered: an ACK may have been lost. After a gap one packet alone is, which asks
    for what is missing.
    """
    if psn < received:
        return True

    is_late = psn - received > rules.reorder_packets
    if not is_late:
        if receiver.kept == 0:
            receiver.gap_ps = now_ps

        receiver.kept += 1 - kept[psn & (len(kept) - 1)]
        kept[psn & (len(kept) - 1)] = 1
        # No timer of its own: a gap behind which nothing more comes is left to the sender's.
        is_late = now_ps - receiver.gap_ps >= rules.reorder_ps

    is_first = is_late and not receiver.has_asked
    receiver.has_asked |= is_late
    return is_first


@register_jitable
def remember(receiver, marked, asks):
    """Note what a packet that waits without a word would have been answered with."""
    receiver.is_marked |= marked
    receiver.asks |= asks


def reach(rules: Rules) -> int:
    """Return how many entries a receiver's `kept` has, a power of two."""
    return 1 << rules.reorder_packets.bit_length()
