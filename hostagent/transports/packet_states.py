"""The states of packets in a sender's ring, and the next number that was never sent."""

from hostagent.transports.parts import part
from hostagent.transports.state import PacketState

# Plain integers: kernels compare them with the fields of records.
OUT = int(PacketState.OUT)
RESENT = int(PacketState.RESENT)
ACKED = int(PacketState.ACKED)
TRIMMED = int(PacketState.TRIMMED)
AGAIN = int(PacketState.AGAIN)
# Rounds pass over packets that have arrived or go again by themselves (`transports.trimmed`).
SETTLED = ACKED | TRIMMED


@part
def new_psn(sender, packets):
    """Take the next packet number that was never sent."""
    psn = sender.sent
    sender.sent += 1
    packet = packets[psn & (len(packets) - 1)]
    packet.state = OUT
    packet.doubted = 0

    return psn
