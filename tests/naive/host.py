"""A host: its flows, the ACKs that it has to send, and its link."""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from tests.naive.go_back_n import GoBackN
from tests.naive.labels import LabelRule, Watch
from tests.naive.packet import ACK, DATA, Packet
from tests.naive.port import Port
from tests.naive.sack import Sack
from tests.naive.transport import Recovery
from tests.naive.wire import NEVER


@dataclass(slots=True)
class Flow:
    """Both ends of a flow: the states of the sender and of the receiver.

    `waits_for` are flows that must be complete first. Without packets it is a computation.
    """

    number: int
    source: int
    destination: int
    payloads: tuple[int, ...]
    payload_bytes: int
    phase_ps: int
    sender: Recovery
    labels: LabelRule
    watch: Watch
    waits_for: set[int]
    reports_holdings: bool
    in_order: bool
    keeps: int
    patience_ps: int
    is_in_graph: bool
    compute_ps: int = 0
    started_ps: int = NEVER
    done_ps: int = NEVER
    sent: set[int] = field(default_factory=set)
    is_sent: bool = False
    # Other NICs of its machine send it.
    is_moved: bool = False
    received: set[int] = field(default_factory=set)
    # Go-back-N: packets that wait for an earlier packet, since when, and whether it was asked for.
    kept: set[int] = field(default_factory=set)
    gap_ps: int = 0
    has_asked: bool = False
    # The kept packets that no ACK has reported.
    silent: list[Packet] = field(default_factory=list)
    packets_per_ack: int = 1
    unanswered: int = 0
    tells_share: bool = False
    # That of the longest path, zero-load.
    round_trip_ps: int = 0

    @property
    def packets(self) -> int:
        return len(self.payloads)

    def payload(self, psn: int) -> int:
        """Return a packet's bytes of payload: beyond the message, `payload_bytes`."""
        return self.payloads[psn] if psn < self.packets else self.payload_bytes

    @property
    def is_active(self) -> bool:
        return self.started_ps != NEVER and self.done_ps == NEVER

    @property
    def transmissions(self) -> int:
        return self.sender.pacer.transmissions

    @property
    def tries(self) -> int:
        """Return how often the sender has tried to deliver the missing packets."""
        # Behind a missing packet all others are in vain.
        return self.returns if isinstance(self.sender, GoBackN) else self.transmissions

    @property
    def freezes(self) -> int:
        return self.watch.freezes

    @property
    def returns(self) -> int:
        return self.sender.returns if isinstance(self.sender, GoBackN) else 0


@dataclass(slots=True)
class Host:
    """The flows that begin here, the ACKs that wait, the link; `nics` are of one machine.

    `kept_ps` is the time from a packet to the NIC's next packet, by its bytes, and `between_ps` the
    least time from a data packet to the next data packet. Flows in `incoming` have arrived here in
    part.
    """

    number: int
    link: Port
    kept_ps: dict[int, int] = field(default_factory=dict)
    between_ps: dict[int, int] = field(default_factory=dict)
    free_ps: int = 0
    data_free_ps: int = 0
    incoming: set[int] = field(default_factory=set)
    # By destination: the share that it announced last, and when.
    heard: dict[int, tuple[int, int]] = field(default_factory=dict)
    flows: list[Flow] = field(default_factory=list)
    acks: deque[Packet] = field(default_factory=deque)
    last_was_ack: bool = True
    nics: list["Host"] = field(default_factory=list)
    # Of its machine, where other NICs may send for this one (`tests.naive.planes`).
    planes: Any = None
    # The pauses that it was sent, each from a time until another.
    pauses: list[tuple[int, int]] = field(default_factory=list)

    def pause(self, now_ps: int, lasts_ps: int) -> None:
        """Send nothing for a while from now on; 0 ends a pause."""
        since_ps, until_ps = self.pauses[-1] if self.pauses else (0, 0)
        if until_ps > now_ps:
            self.pauses[-1] = since_ps, now_ps + lasts_ps
        elif lasts_ps:
            self.pauses.append((now_ps, now_ps + lasts_ps))

    @property
    def paused_until_ps(self) -> int:
        return self.pauses[-1][1] if self.pauses else 0

    def paused_ps(self, end_ps: int) -> int:
        return sum(min(until_ps, end_ps) - since_ps for since_ps, until_ps in self.pauses)

    def start(self, flow: Flow, now_ps: int) -> None:
        """Let a flow begin; it is due a phase later. Or let a computation begin."""
        flow.started_ps = now_ps
        if not flow.packets:
            flow.sender.pacer.first_ps = now_ps
        pacer = flow.sender.pacer
        pacer.begin_ps = now_ps + flow.phase_ps
        # A flow takes the share that the receiver sent within a round trip, unless it goes in turn.
        heard = self.home(flow.source).heard
        share, heard_ps = heard.get(flow.destination, (1, NEVER))
        if not pacer.is_whole and heard_ps != NEVER and now_ps - heard_ps <= flow.round_trip_ps:
            pacer.share = share

    def first_ready(self) -> tuple[int, int]:
        """Return the ready time and the number of the flow that may send first.

        NEVER and 0 if none will.
        """
        ready = [
            (flow.sender.ready_ps(), flow.number)
            for flow in self.flows
            if flow.is_active and flow.packets and not flow.is_moved
        ]
        ready_ps, number = min(ready, default=(NEVER, 0))
        return max(ready_ps, self.data_free_ps), number

    def ready_ps(self) -> int:
        """Return since when the flow that may send first has been ready, NEVER if none will."""
        number = self.first_ready()[1]
        ready = [flow.sender.ready_ps() for flow in self.flows if flow.number == number]
        return ready[0] if self.first_ready()[0] < NEVER else NEVER

    def flow_of(self, number: int) -> "Flow":
        return next(flow for flow in self.flows if flow.number == number)

    @property
    def idle_ps(self) -> int:
        """Return from when on the link takes a packet."""
        return max(self.free_ps, self.link.free_ps, self.paused_until_ps)

    def sends_ps(self) -> int:
        """Return when its next packet may leave, of its own flows or an ACK."""
        return max(self.idle_ps, 0 if self.acks else self.first_ready()[0])

    @property
    def computing(self) -> list[Flow]:
        return [flow for flow in self.flows if flow.is_active and not flow.packets]

    def finish(self, now_ps: int) -> list[Flow]:
        """End and return the computations that are over; start the flows that waited for them."""
        over = [flow for flow in self.computing if flow.started_ps + flow.compute_ps <= now_ps]
        for flow in over:
            flow.done_ps = now_ps
            self.unblock(flow, now_ps)
        return over

    def wake_ps(self, now_ps: int) -> int:
        """Return when the host can send or ends a computation, if nothing arrives until then."""
        ends = [flow.started_ps + flow.compute_ps for flow in self.computing]
        free_ps = max(self.free_ps, self.link.free_ps)
        sends = max(now_ps, free_ps, 0 if self.acks else self.first_ready()[0])
        return min([*ends, max(sends, self.paused_until_ps)])

    def next_packet(self, now_ps: int, moved: Flow | None = None) -> Packet | None:
        """Return the link's next packet: data and ACKs in turn while both wait, data first.

        The data are of its own flows, or of another NIC's that has moved.
        """
        ready_ps, number = self.first_ready()
        if moved is not None:
            ready_ps, number = now_ps, moved.number
        if self.acks and not (ready_ps <= now_ps and self.last_was_ack):
            self.last_was_ack = True
            self.free_ps = now_ps + self.kept_ps[self.link.wire.ack_bytes]
            return self.acks.popleft()
        if ready_ps > now_ps:
            return None

        self.last_was_ack = False
        flow = moved or self.flow_of(number)
        label = flow.labels.next(flow.watch, now_ps)
        pacer, timer = flow.sender.pacer, flow.sender.timer
        # Without a good label a probe leaves, and the next one after a timeout. Go-back-N's silence
        # is no sign of a loss.
        is_held = flow.labels.is_out and not isinstance(flow.sender, GoBackN)
        pacer.held_until_ps = now_ps + timer.timeout_ps if is_held else None
        if is_held:
            flow.labels.is_heard = False
        sender = flow.sender
        if flow.labels.is_probe(label) and isinstance(sender, Sack) and sender.memory.count:
            psn = sender.probe(now_ps)
        else:
            psn = sender.send(label, now_ps)
        for lost in flow.sender.memory.lost:
            flow.labels.on_lost(lost)
        flow.sender.memory.lost.clear()
        flow.sent.add(psn)
        size = self.link.wire.size(flow.payload(psn))
        self.free_ps = now_ps + self.kept_ps[size]
        self.data_free_ps = now_ps + self.between_ps[size]
        # In a graph the last of a flow's own packets releases the flows that wait for it here.
        if flow.is_in_graph and not flow.is_sent and len(flow.sent) == flow.packets:
            flow.is_sent = True
            self.unblock(flow, now_ps)
        return Packet(
            flow=number,
            psn=psn,
            source=self.number,
            destination=flow.destination + self.number - flow.source,
            kind=DATA,
            label=label,
            asks=flow.sender.asks(psn),
            payload=flow.payload(psn),
        )

    def take(self, packet: Packet, flow: Flow, now_ps: int) -> None:
        """Take in a packet; if its flow is complete here now, start the flows that wait for it."""
        is_complete = (
            self.take_data(packet, flow, now_ps)
            if packet.kind == DATA
            else self.take_ack(packet, flow, now_ps)
        )
        if is_complete and (packet.kind == DATA or not flow.is_in_graph):
            self.unblock(flow, now_ps)

    def unblock(self, flow: Flow, now_ps: int) -> None:
        """Start the flows that waited for this flow alone, at any NIC of this machine."""
        for waiting in [waiting for nic in self.nics for waiting in nic.flows]:
            if flow.number in waiting.waits_for:
                waiting.waits_for.remove(flow.number)
                if not waiting.waits_for:
                    self.start(waiting, now_ps)

    def take_data(self, packet: Packet, flow: Flow, now_ps: int) -> bool:
        before = len(flow.received)
        if flow.in_order and packet.psn != before:
            self.take_out_of_order(packet, flow, now_ps)
            return False
        flow.has_asked = False
        is_new = packet.psn not in flow.received and not packet.trimmed
        if is_new:
            flow.received.add(packet.psn)
            while flow.kept and len(flow.received) in flow.kept:
                flow.kept.remove(len(flow.received))
                flow.received.add(len(flow.received))
            # If something waits, then for another packet, since now.
            flow.gap_ps = now_ps
            packet = self.with_silent(packet, flow)
            self.home(flow.destination).incoming.add(flow.number)
        if len(flow.received) >= flow.packets:
            self.home(flow.destination).incoming.discard(flow.number)
        ack, nic = self.ack_of(packet, flow), self.answering(flow, now_ps)
        flow.unanswered += 0 if packet.trimmed else max(len(flow.received) - before, 1)
        is_complete = len(flow.received) >= flow.packets
        is_repeated = not is_new and not packet.trimmed
        if (
            packet.trimmed
            or packet.asks
            or packet.marked
            or is_repeated
            or is_complete
            or flow.unanswered >= flow.packets_per_ack
        ):
            nic.acks.append(nic.sent_by(ack, flow))
            flow.unanswered = flow.unanswered if packet.trimmed else 0
        return is_new and len(flow.received) == flow.packets

    def take_out_of_order(self, packet: Packet, flow: Flow, now_ps: int) -> None:
        """Answer go-back-N's duplicate; keep a near packet, and ask once for the missing packet."""
        beyond = packet.psn - len(flow.received)
        is_kept = 0 < beyond <= flow.keeps
        if is_kept:
            flow.gap_ps = flow.gap_ps if flow.kept else now_ps
            flow.kept.add(packet.psn)
        is_late = beyond > flow.keeps or (is_kept and now_ps - flow.gap_ps >= flow.patience_ps)
        if beyond < 0 or (is_late and not flow.has_asked):
            nic = self.answering(flow, now_ps)
            nic.acks.append(nic.sent_by(self.ack_of(self.with_silent(packet, flow), flow), flow))
        elif is_kept:
            flow.silent.append(packet)
        flow.has_asked |= is_late

    def with_silent(self, packet: Packet, flow: Flow) -> Packet:
        """Return a packet as its answer sees it: with the marks and requests of silent packets."""
        reported = [packet, *flow.silent]
        flow.silent.clear()
        return replace(
            packet,
            marked=any(arrival.marked for arrival in reported),
            asks=any(arrival.asks for arrival in reported),
        )

    def ack_of(self, packet: Packet, flow: Flow) -> Packet:
        """Return the ACK or NACK of a packet that has arrived."""
        return Packet(
            flow=flow.number,
            psn=packet.psn,
            source=flow.destination,
            destination=flow.source,
            kind=ACK,
            label=packet.label,
            marked=packet.marked,
            total=len(flow.received),
            held=frozenset(flow.received if flow.reports_holdings else ()),
            trimmed=packet.trimmed,
            share=max(len(self.home(flow.destination).incoming), 1),
        )

    def home(self, number: int) -> "Host":
        """Return the NIC of this machine with a number."""
        return next(nic for nic in self.nics if nic.number == number)

    def answering(self, flow: Flow, now_ps: int) -> "Host":
        """Return the NIC that acknowledges packets that come to this NIC."""
        return self.planes.answering(self, flow, now_ps) if self.planes else self

    def sent_by(self, ack: Packet, flow: Flow) -> Packet:
        """Return an ACK as this NIC sends it, in its own plane."""
        peer = flow.source + self.number - flow.destination
        return replace(ack, source=self.number, destination=peer)

    def take_ack(self, packet: Packet, flow: Flow, now_ps: int) -> bool:
        if flow.tells_share:
            self.home(flow.source).heard[flow.destination] = packet.share, now_ps
        # Later messages learn from the last ACKs of a message, too.
        if packet.trimmed:
            flow.labels.on_nack(packet.label, now_ps)
        else:
            flow.labels.on_ack(packet.label, packet.marked, now_ps)
        if flow.done_ps != NEVER:
            return False
        sender, psn, total, held = flow.sender, packet.psn, packet.total, packet.held
        if flow.tells_share:
            sender.pacer.hear_share(packet.share)
        if flow.labels.is_heard:
            sender.pacer.go_on()
        if packet.trimmed:
            is_done = sender.on_nack(psn, total, held, now_ps)
        else:
            if sender.memory.knows(psn):
                lost = sender.memory.at(psn).overtook(packet.label)
                if lost is not None:
                    flow.labels.on_lost(lost)
            is_done = sender.on_ack(psn, total, held, packet.marked, now_ps)
        if is_done:
            flow.done_ps = now_ps
        return is_done
