"""Erasure coding: every packet is a new symbol, and enough symbols complete a message."""

from hostagent.transports.packet_states import ACKED
from hostagent.transports.parts import part
from hostagent.transports.state import NEVER


@part
def known_missing(sender):
    """Return how many symbols left before an arrived symbol, and have not arrived yet.

    They are lost, cut or only late: the sender does not know, and makes up for all of them.
    """
    # Cut packets are among them: a NACK has their number, and does not raise the total.
    return max(sender.highest + 1 - sender.acked, 0)


@part
def covers(sender):
    """Return whether the message is complete if all symbols without an answer arrive."""
    return sender.sent - known_missing(sender) >= sender.packets


@part
def note_stop(sender, now_ps):
    """Note when the flow first stops: the first time that it is due and has sent enough."""
    # Until it is due, an ACK may show that a packet is missing.
    if now_ps <= sender.stop_ps:
        sender.stop_ps = max(sender.due_ps, now_ps) if covers(sender) else NEVER


@part
def resume_ps(sender, rules):
    """Return from when on the flow sends although it has sent enough: an srtt after its first stop.

    The srtt is the present srtt, so each ACK moves this time, also after the flow has gone on.
    """
    # "Stops in the final BDP and only sends more if necessary" (the paper, loss recovery's
    # footnote). Each ACK that shows a gap makes it necessary at once. If ACKs are missing after a
    # round trip, the last packets are lost, and no later ACK would show it. A round trip takes as
    # long as the queues of now: at the first stop, ACKs of the full queues have not come yet.
    return sender.stop_ps + (sender.srtt_ps if sender.srtt_ps >= 0 else 3 * rules.zero_load_rtt_ps)


@part
def count_symbols(sender, packets, psn, total, now_ps):
    """Believe the receiver's count, so that a lost ACK costs nothing."""
    # Beyond the ring the entry is another packet's by now.
    if psn + len(packets) >= sender.sent:
        packets[psn & (len(packets) - 1)].state = ACKED

    # ACKs overtake each other under spraying: the largest count is the newest.
    sender.acked = max(sender.acked, total)
    sender.highest = max(sender.highest, psn)
    # A late symbol has arrived: the flow may have sent enough without sending now.
    note_stop(sender, now_ps)
