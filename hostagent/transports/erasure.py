"""Erasure coding: every packet is a new symbol, and any of the right number complete a message."""

from numba.extending import register_jitable

from hostagent.transports.packet_states import ACKED, new_psn


@register_jitable
def next_symbol(sender, rules, packets, now_ps):
    """Every packet is a new symbol, and any `packets` of them complete the message."""
    psn = new_psn(sender, packets)
    note_stop(sender, rules, now_ps)

    return psn


@register_jitable
def known_missing(sender):
    """Return how many symbols left before one that has arrived, and are not there yet.

    They are lost, cut or only late: the sender cannot tell, and makes up for all of them.
    """
    # Cut packets are among them: a NACK has their number, and does not raise the total.
    return max(sender.highest + 1 - sender.acked, 0)


@register_jitable
def covers(sender):
    """Tell whether the message is complete if all arrives of which nothing is known."""
    return sender.sent - known_missing(sender) >= sender.packets


@register_jitable
def note_stop(sender, rules, now_ps):
    """Note when the flow stops for the first time, and how long stops may last.

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
def count_symbols(sender, rules, packets, psn, total, now_ps):
    """Believe the receiver's count, so that a lost ACK costs nothing."""
    # Beyond the ring the entry is another packet's by now.
    if psn + len(packets) >= sender.sent:
        packets[psn & (len(packets) - 1)].state = ACKED

    # ACKs overtake each other under spraying: the largest count is the newest.
    sender.acked = max(sender.acked, total)
    sender.highest = max(sender.highest, psn)
    # What was only late has arrived: the flow may have sent enough without sending now.
    note_stop(sender, rules, now_ps)
