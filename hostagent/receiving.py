"""The receiving end of a flow: what has arrived of it, and what its ACKs say."""

from hostagent.flow_plan import FlowPlan
from hostagent.own_packet import OwnFrames
from hostagent.packets import AckFrames
from hostagent.transports import go_back_n, transport
from hostagent.transports.roce import MOST_SHARE, SHARE_BITS, Packet, unwrapped_psn
from hostagent.transports.state import Recovery, Rules


class Receiving:
    """One flow that ends here.

    With SACK, `window` has a bit for every packet number from the lowest missing one on. With
    go-back-N it takes packets in order alone, and `has_asked` for what is missing. `arriving` are
    the flows that share its host's link: something of them has arrived, and not all.
    """

    __slots__ = (
        "arriving",
        "flow",
        "frames",
        "has_asked",
        "is_in_order",
        "is_sack",
        "lowest",
        "packets",
        "peer",
        "received",
        "rules",
        "waiting",
        "window",
    )

    def __init__(
        self, plan: FlowPlan, frames: AckFrames | OwnFrames, rules: Rules, arriving: set[int]
    ) -> None:
        self.flow = plan.flow
        self.arriving = arriving
        self.packets = plan.packets
        self.peer = plan.source
        self.frames = frames
        self.rules = rules
        self.is_sack = rules.recovery == Recovery.SACK
        self.is_in_order = rules.recovery == Recovery.GO_BACK_N
        self.has_asked = False
        self.waiting = 0
        self.received = 0
        self.lowest = 0
        self.window = 0

    def accept(self, packet: Packet) -> bytes | None:
        """Note a packet and return its ACK, None where that waits for more packets.

        With erasure coding every packet is a new symbol.
        """
        # Of a packet that a switch has cut only the headers are here.
        if not packet.trimmed and not self._note(packet):
            return None

        return self.frames.frame(
            packet.label,
            packet.psn,
            packet.marked,
            self.lowest if self.is_sack else self.received,
            self._told(),
            packet.trimmed,
        )

    def _told(self) -> int:
        """Return what an ACK has behind its fixed fields: a share, if any, and the bitmap."""
        if not self.rules.tells_share:
            return self.window

        return self.window << SHARE_BITS | min(max(len(self.arriving), 1), MOST_SHARE)

    def _note(self, packet: Packet) -> bool:
        """Count a packet that is whole; return whether it is acknowledged now."""
        # A duplicate is acknowledged, too: the ACK of its first copy may have been lost.
        if self.is_in_order:
            psn = unwrapped_psn(packet.psn, self.received)
            if psn != self.received:
                is_asking: bool = go_back_n.is_asking(psn, self.received, self.has_asked)
                self.has_asked |= psn > self.received
                return is_asking

            self.has_asked = False

        before = self.received
        if self.is_sack:
            self._slide(unwrapped_psn(packet.psn, self.lowest))
        else:
            self.received += 1

        if before == 0:
            self.arriving.add(self.flow)

        if self.received >= self.packets:
            self.arriving.discard(self.flow)

        self.waiting += 1
        is_now: bool = transport.is_acknowledged(
            self.rules,
            waiting=self.waiting,
            asked=packet.asks,
            marked=packet.marked,
            is_new=self.received > before,
            is_complete=self.received >= self.packets,
        )
        self.waiting = 0 if is_now else self.waiting
        return is_now

    def _slide(self, psn: int) -> None:
        if psn < self.lowest or self.window >> (psn - self.lowest) & 1:
            return

        # Bit 0, the lowest missing number, is never set when this returns: the ones at the window's
        # end have arrived in sequence. No bitmap outgrows an ACK, as the sender's ring starts at
        # its own lowest hole, which is not above this one.
        self.received += 1
        self.window |= 1 << (psn - self.lowest)
        arrived = (~self.window & (self.window + 1)).bit_length() - 1
        self.lowest += arrived
        self.window >>= arrived
