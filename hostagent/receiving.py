"""The receiving end of a flow: its arrived packets, and its ACKs."""

from hostagent.flow_plan import FlowPlan
from hostagent.own_packet import OwnFrames
from hostagent.packets import AckFrames
from hostagent.transports import go_back_n, transport
from hostagent.transports.roce import MOST_SHARE, SHARE_BITS, Packet, unwrapped_psn
from hostagent.transports.state import RECEIVER, Recovery, Rules, blank


class Receiving:
    """One flow that ends here.

    With SACK, `window` has a bit for every packet number from the lowest missing one on. With
    go-back-N it takes packets in order alone; `state` and `kept` describe the packets beyond.
    `arriving` are the flows that share its host's link: some of their packets, not all, are here.
    """

    __slots__ = (
        "arriving",
        "flow",
        "frames",
        "is_in_order",
        "is_sack",
        "kept",
        "lowest",
        "packets",
        "peer",
        "received",
        "rules",
        "state",
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
        self.state = blank(RECEIVER)
        self.kept = [0] * (go_back_n.reach(rules) if self.is_in_order else 0)
        self.waiting = 0
        self.received = 0
        self.lowest = 0
        self.window = 0

    def accept(self, packet: Packet, now_ps: int) -> bytes | None:
        """Note a packet and return its ACK, None where the ACK waits for more packets.

        With erasure coding every packet is a new symbol.
        """
        # Of a packet that a switch has cut only the headers are here.
        if packet.trimmed:
            return self._ack(packet)

        arrived = 1
        if self.is_in_order:
            psn = unwrapped_psn(packet.psn, self.received)
            if psn != self.received:
                return self._out_of_order(packet, psn, now_ps)

            arrived = go_back_n.take(self.state, self.kept, psn, now_ps)
            packet = self._with_kept(packet)

        return self._ack(packet) if self._note(packet, arrived) else None

    def _ack(self, packet: Packet) -> bytes:
        return self.frames.frame(
            packet.label,
            packet.psn,
            packet.marked,
            self.lowest if self.is_sack else self.received,
            self._told(),
            packet.trimmed,
        )

    def _told(self) -> int:
        """Return the bits behind an ACK's fixed fields: a share, if any, and the bitmap."""
        if not self.rules.tells_share:
            return self.window

        return self.window << SHARE_BITS | min(max(len(self.arriving), 1), MOST_SHARE)

    def _out_of_order(self, packet: Packet, psn: int, now_ps: int) -> bytes | None:
        """Keep go-back-N's packet or throw it away; return its answer, if any."""
        if go_back_n.is_asking(self.state, self.rules, self.kept, psn, self.received, now_ps):
            return self._ack(self._with_kept(packet))

        if psn - self.received <= self.rules.reorder_packets:
            go_back_n.remember(self.state, packet.marked, packet.asks)

        return None

    def _with_kept(self, packet: Packet) -> Packet:
        """Return a packet with the mark and the request of packets that were kept before it."""
        merged = packet._replace(
            marked=packet.marked or self.state.is_marked > 0,
            asks=packet.asks or self.state.asks > 0,
        )
        self.state.is_marked = self.state.asks = 0
        return merged

    def _note(self, packet: Packet, arrived: int) -> bool:
        """Count a whole packet, and kept packets behind it; return whether it is answered."""
        # A duplicate is acknowledged, too: the ACK of its first copy may have been lost.
        before = self.received
        if self.is_sack:
            self._slide(unwrapped_psn(packet.psn, self.lowest))
        else:
            self.received += arrived

        if before == 0:
            self.arriving.add(self.flow)

        if self.received >= self.packets:
            self.arriving.discard(self.flow)

        self.waiting += arrived
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
        # its own lowest hole, which is not above this hole.
        self.received += 1
        self.window |= 1 << (psn - self.lowest)
        arrived = (~self.window & (self.window + 1)).bit_length() - 1
        self.lowest += arrived
        self.window >>= arrived
