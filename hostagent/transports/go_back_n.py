"""Go-back-N: receivers take packets in order alone, and senders go back to what is missing.

As RoCE's reliable connections do it (InfiniBand, volume 1, 9.7.5): a packet out of order is thrown
away, and the first one after a packet in order is answered with what is missing. Here that answer
is an ACK of a number beyond those that it reports. The sender then sends all from the missing one
on again, as it does where the lowest packet that is not acknowledged has timed out.
"""

from numba.extending import register_jitable

from hostagent.transports import sack
from hostagent.transports.packet_states import ACKED, RESENT, new_psn


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
def is_asking(psn, received, has_asked):
    """Tell whether a receiver answers a packet that is not the next in order.

    A duplicate it does: an ACK may have been lost. After a gap the first one alone.
    """
    return psn < received or not has_asked
