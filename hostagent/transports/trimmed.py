"""Packets that switches have cut to their headers, as a SACK sender remembers them.

A NACK makes a packet TRIMMED: known not to have arrived, so it is neither under way nor timed out.
It stays so until it is sent again, the lowest first, or until an earlier copy turns out to have
arrived. `sender.trimmed` counts them, `sender.first_trimmed` is the lowest.
"""

from hostagent.transports import congestion
from hostagent.transports.parts import part
from hostagent.transports.state import COUNTED, PacketState

RESENT = int(PacketState.RESENT)
ACKED = int(PacketState.ACKED)
TRIMMED = int(PacketState.TRIMMED)
AGAIN = int(PacketState.AGAIN)


@part
def note(sender, packets, psn):
    """Note that a packet was cut; return whether the sender did not know it."""
    packet = packets[psn & (len(packets) - 1)]
    if psn < sender.lowest or packet.state & (ACKED | TRIMMED):
        return False

    if sender.trimmed == 0 or psn < sender.first_trimmed:
        sender.first_trimmed = psn

    packet.state |= TRIMMED
    sender.trimmed += 1
    return True


@part
def forget(sender, packets, psn):
    """Take a packet out, which was sent again or has arrived after all."""
    packets[psn & (len(packets) - 1)].state &= RESENT | ACKED | AGAIN
    sender.trimmed -= 1
    if sender.trimmed > 0 and psn == sender.first_trimmed:
        while not packets[sender.first_trimmed & (len(packets) - 1)].state & TRIMMED:
            sender.first_trimmed += 1


@part
def may_go(sender, rules):
    """Return whether the window lets a cut packet go: before holes, and before new packets."""
    return sender.trimmed > 0 and congestion.allows(sender, rules)


@part
def take_lowest(sender, packets):
    """Take the lowest cut packet to be sent again; return its number."""
    # Not RESENT: its ACK can only be this copy's, so it gives a round-trip time. Without that the
    # flows of an incast, with most packets cut once, would never learn any.
    psn = sender.first_trimmed
    forget(sender, packets, psn)
    packet = packets[psn & (len(packets) - 1)]
    packet.state |= AGAIN
    if packet.doubted == COUNTED:
        packet.doubted = 0

    return psn
