"""A host without its sockets: the choice of its link's next packet, and the effect of arrivals.

The virtual network and the Mininet agent drive the same object: they give it the time, put the
frames of `send` on the wire, and hand over arriving frames. The rules themselves are `labels` and
`transport`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any, NamedTuple

from fattree.experiment.nics import Nic
from hostagent.flow_plan import FlowPlan, Waits
from hostagent.own_packet import OwnFrames, OwnPackets
from hostagent.own_rule import OwnRule
from hostagent.packets import DataFrames, Ends, Packets
from hostagent.receiving import Receiving
from hostagent.rules import tries
from hostagent.segment_routes import SegmentRoutes
from hostagent.source_routes import SourceRoutes
from hostagent.transports import labels, sack, transport
from hostagent.transports.roce import (
    MOST_SHARE,
    RUNS,
    SHARE_BITS,
    Packet,
    parse_trimmed,
    unwrapped_psn,
)
from hostagent.transports.state import NEVER, PACKET, SENDER, Recovery, Rules, blank


class Departure(NamedTuple):
    """A frame that the link takes now, its class, and whether switches hurry it on.

    A frame of data is `less` bytes shorter than a full packet.
    """

    frame: bytes
    is_ack: bool
    is_urgent: bool = False
    less: int = 0


class MisdeliveryError(Exception):
    """A frame that this host must never see: corrupt, or meant for another host."""


class StalePacketError(MisdeliveryError):
    """A packet of an earlier run, which the network has kept until now."""


class _Sending:
    """One flow that begins here; `key_ps` is its valid key in the heap of ready times.

    `own` is the flow's state in a host rule of the user's, `connection` the sender with that of
    ours (`hostagent.transports.labels`).
    """

    __slots__ = ("connection", "frames", "key_ps", "own", "packets", "plan", "sender", "started_ps")

    def __init__(
        self, plan: FlowPlan, frames: DataFrames | OwnFrames | None, ring: int, rule_state: Any
    ) -> None:
        self.plan = plan
        self.frames = frames
        self.sender = self.connection = blank(SENDER)
        # A connection draws labels as its first message, which may start after others.
        self.sender.flow = plan.flow
        self.sender.first_ps = self.sender.done_ps = NEVER
        self.own = rule_state
        self.packets = [blank(PACKET) for _ in range(ring)]
        self.key_ps = NEVER
        self.started_ps = NEVER


class Endpoint:
    """The flows of a run that begin or end at one host, and its ACKs.

    The hosts (NICs) of a machine share `waits`; `nics` paces this host, by how many bytes a data
    packet is shorter than a full packet. With `is_connected` the flows to a host share the state of
    their label rule. Times in ps never run backwards.
    """

    def __init__(
        self,
        flows: Iterable[FlowPlan],
        host: int,
        rules: Rules,
        ends: Callable[[int, int], Ends],
        payload_bytes: int,
        routes: SourceRoutes | SegmentRoutes | None = None,
        run: int = 0,
        own_rule: OwnRule | None = None,
        packets: Packets | OwnPackets | None = None,
        waits: Waits | None = None,
        *,
        nics: Mapping[int, Nic],
        is_connected: bool = False,
    ) -> None:
        written = packets or Packets(payload_bytes)
        self._wrap = written.wrap
        self._parse = written.parse
        self._rules = rules
        self._run = run % RUNS
        self._own_rule = own_rule
        self.routes = routes
        self._ip = ends(host, host).source_ip
        self._is_sack = rules.recovery == Recovery.SACK
        self._sending: dict[int, _Sending] = {}
        self._receiving: dict[int, Receiving] = {}
        self._arriving: set[int] = set()
        # The latest shares from receivers, and their times.
        self._told: dict[int, tuple[int, int]] = {}
        self._nics = nics
        self._data_free_ps = 0
        self._waits = waits or Waits()
        self._ready: list[tuple[int, int]] = []
        self._timers: list[tuple[int, int]] = []
        self._acks: deque[tuple[Receiving, bytes, bool]] = deque()
        self._last_was_ack = True

        connections: dict[int, SimpleNamespace] = {}
        # Scapy builds the frames of all flows here, before the run.
        for plan in flows:
            peer = plan.destination if plan.source == host else plan.source
            if plan.source == host:
                is_sent = plan.packets > 0
                frames = written.data(ends(host, peer), plan.flow, run) if is_sent else None
                ring = transport.ring_length(rules, plan.packets, plan.gap_ps) if is_sent else 0
                state = own_rule.fresh() if own_rule else None
                sending = self._sending[plan.flow] = _Sending(plan, frames, ring, state)
                if is_connected:
                    sending.connection = connections.setdefault(peer, sending.sender)

                self._waits.add(plan, self._start)
            else:
                self._receiving[plan.flow] = Receiving(
                    plan, written.ack(ends(host, peer), plan.flow, run), rules, self._arriving
                )

        for flow, sending in self._sending.items():
            if not sending.plan.after:
                self._start(flow, sending.plan.start_ps)

    def wake_ps(self) -> int:
        """Return from when on `send` has a frame, NEVER if not before a packet arrives."""
        return 0 if self._acks else self._data_wake_ps()

    def kept_ps(self, is_ack: bool, less: int = 0) -> int:
        """Return for how long a packet of a class blocks the NIC."""
        nic = self._nics[less]
        return nic.ack_ps if is_ack else nic.data_ps

    def timer_ps(self) -> int:
        """Return when `elapse` is next due, NEVER if not before a packet arrives."""
        return self._timers[0][0] if self._timers else NEVER

    def elapse(self, now_ps: int) -> list[int]:
        """End the computations that are over by now, and return them."""
        ended = []
        while self._timers and self._timers[0][0] <= now_ps:
            flow = heappop(self._timers)[1]
            self._sending[flow].sender.done_ps = now_ps
            self._waits.complete(flow, now_ps)
            ended.append(flow)

        return ended

    @property
    def has_received_all(self) -> bool:
        """Return whether every flow that ends here is complete here."""
        return all(
            receiving.received >= receiving.packets for receiving in self._receiving.values()
        )

    def send(self, now_ps: int) -> Departure | None:
        """Return the frame for a link that is free now.

        Data and ACKs alternate while both wait, data first (design, decision 3).
        """
        is_data_ready = self._data_wake_ps() <= now_ps
        if self._acks and not (is_data_ready and self._last_was_ack):
            self._last_was_ack = True
            receiving, ack, is_nack = self._acks.popleft()
            return Departure(self._routed(ack, receiving.peer, True), True, is_nack)

        if not is_data_ready:
            return None

        # Label, number and waypoint are chosen only now that the link takes the packet: hosts have
        # no queue of data in which a choice could grow old.
        self._last_was_ack = False
        plan = self._sending[self._ready[0][1]].plan
        frame, less = self._next_data(plan.flow, now_ps)
        self._data_free_ps = now_ps + self._nics[less].between_ps
        return Departure(self._routed(frame, plan.destination, False), False, less=less)

    def receive(self, now_ps: int, frame: bytes) -> int | None:
        """Take in a frame.

        Return the flow that it completes here (as its sender or its receiver), if any.

        Raises MisdeliveryError for a frame that is not this host's, StalePacketError for a frame
        of another run.
        """
        packet = self._parse(frame)
        if packet is None and self._rules.trimming:
            packet = parse_trimmed(frame)

        if packet is None or packet.destination_ip != self._ip:
            raise MisdeliveryError(f"a host got a frame that is not its own: {frame[:58].hex()}")

        # Flows have the same numbers in every run: the packet would count for this run's flow.
        if packet.run != self._run:
            raise StalePacketError(f"a host got a packet of run {packet.run} in run {self._run}")

        is_complete = (
            self._take_ack(packet, now_ps) if packet.is_ack else self._take_data(packet, now_ps)
        )
        if not is_complete:
            return None

        # Flows that wait for this flow begin or end at this machine as well (design, decision 9):
        # each end starts its own flows without a message.
        if self._rules.awaits_acks or not packet.is_ack:
            self._waits.complete(packet.flow, now_ps)

        return packet.flow

    def tries(self, flow: int) -> int:
        """Return how often the sender of a flow has tried to deliver missing packets."""
        return int(tries(self.sender(flow), self._rules.recovery))

    def sender(self, flow: int) -> SimpleNamespace:
        """Return the sender state of a flow that begins here."""
        return self._sending[flow].sender

    def started_ps(self, flow: int) -> int:
        """Return when a flow that begins here started (its phase not included), NEVER before."""
        return self._sending[flow].started_ps

    def _routed(self, frame: bytes, peer: int, is_ack: bool) -> bytes:
        if isinstance(self.routes, SegmentRoutes):
            packet = self._parse(frame)
            assert packet is not None
            return self.routes.routed(frame, peer, packet.label)

        waypoint = self.routes.next_waypoint(peer, is_ack) if self.routes else None
        return frame if waypoint is None else self._wrap(frame, self._ip, waypoint)

    def _data_ready_ps(self) -> int:
        """Return when the first flow is ready to send, and leave it on top of the heap."""
        # A flow may have several entries in the heap: the entry with its key is valid.
        ready = self._ready
        while ready and self._sending[ready[0][1]].key_ps != ready[0][0]:
            heappop(ready)

        return ready[0][0] if ready else NEVER

    def _data_wake_ps(self) -> int:
        """Return when data may leave: the NIC keeps its rate, however many flows are ready."""
        return max(self._data_ready_ps(), self._data_free_ps)

    def _start(self, flow: int, now_ps: int) -> None:
        sending = self._sending[flow]
        plan = sending.plan
        sending.started_ps = now_ps
        due_ps = now_ps + plan.phase_ps
        share, share_ps = self._told.get(plan.destination, (1, NEVER))
        transport.start(
            sending.sender,
            rules=self._rules,
            flow=flow,
            packets=plan.packets,
            gap_ps=plan.gap_ps,
            due_ps=due_ps,
            hops=plan.hops,
            in_turn=plan.in_turn,
            share=transport.share_at_start(
                self._rules, told=share, told_ps=share_ps, in_turn=plan.in_turn, now_ps=now_ps
            ),
        )

        if plan.packets == 0:
            sending.sender.first_ps = now_ps
            heappush(self._timers, (now_ps + plan.compute_ps, flow))
            return

        labels.start(sending.connection, self._rules)
        self._requeue(sending)

    def _requeue(self, sending: _Sending) -> None:
        """Put a flow's new time among the ready times.

        The old entry's key shows that it is stale.
        """
        ready_ps = transport.ready_ps(sending.sender, self._rules, sending.packets)
        if ready_ps != sending.key_ps:
            sending.key_ps = ready_ps
            if ready_ps != NEVER:
                heappush(self._ready, (ready_ps, sending.plan.flow))

    def _next_data(self, flow: int, now_ps: int) -> tuple[bytes, int]:
        """Return a flow's next frame, and by how many bytes it is shorter than a full packet."""
        sending = self._sending[flow]
        sender = sending.sender
        connection = sending.connection
        packets = sending.packets
        if self._own_rule:
            label = self._own_rule.next_label(sending.own, sender, self._rules, packets, now_ps)
        else:
            label = labels.next_label(sender, connection, self._rules, packets, now_ps)

        before = sender.sent
        psn = transport.next_psn(
            sender, connection, self._rules, packets=packets, label=label, now_ps=now_ps
        )
        self._requeue(sending)
        if not self._rules.awaits_acks and before < sender.packets == sender.sent:
            self._waits.complete(flow, now_ps)

        assert sending.frames is not None
        asks = transport.asks(sender, self._rules, packets, psn)
        # With erasure coding packets beyond the message are as long as its longest packet.
        less = sending.plan.less if psn + 1 == sending.plan.packets else 0
        return sending.frames.frame(label, psn, asks=asks, less=less), less

    def _take_data(self, packet: Packet, now_ps: int) -> bool:
        receiving = self._receiving.get(packet.flow)
        if receiving is None:
            raise MisdeliveryError(
                f"a host got a packet of flow {packet.flow}, which does not end there"
            )

        before = receiving.received
        ack = receiving.accept(packet, now_ps)
        if ack is not None:
            is_urgent = packet.trimmed or self._rules.acks_first > 0
            self._acks.append((receiving, ack, is_urgent))

        return before < receiving.packets == receiving.received

    def _take_ack(self, ack: Packet, now_ps: int) -> bool:
        sending = self._sending.get(ack.flow)
        if sending is None:
            raise MisdeliveryError(
                f"a host got an ACK of flow {ack.flow}, which does not begin there"
            )

        sender = sending.sender
        packets = sending.packets
        psn = unwrapped_psn(ack.psn, sender.sent)
        if self._own_rule:
            # A rule of the user's knows marks only: a queue that was full was long, too.
            is_bad = ack.marked or ack.trimmed
            self._own_rule.on_ack(sending.own, sender, self._rules, ack.label, is_bad, now_ps)
        elif ack.trimmed:
            labels.on_nack(sending.connection, self._rules, ack.label, now_ps)
        else:
            labels.on_ack(
                sending.connection, self._rules, label=ack.label, marked=ack.marked, now_ps=now_ps
            )

        if self._rules.tells_share:
            share = ack.sacked & MOST_SHARE
            self._told[sending.plan.destination] = share, now_ps
            transport.heed_share(sender, self._rules, share)
            ack = ack._replace(sacked=ack.sacked >> SHARE_BITS)

        if self._is_sack:
            self._acknowledge(sender, packets, ack)

        # SACK has counted the bitmap; with erasure coding MSN is the receiver's total.
        total = 0 if self._is_sack else unwrapped_psn(ack.msn, sender.acked)
        is_done: bool
        if ack.trimmed:
            is_done = transport.on_nack(
                sender,
                sending.connection,
                rules=self._rules,
                packets=packets,
                psn=psn,
                total=total,
                now_ps=now_ps,
            )
        else:
            is_done = transport.on_ack(
                sender,
                sending.connection,
                rules=self._rules,
                packets=packets,
                psn=psn,
                total=total,
                label=ack.label,
                marked=ack.marked,
                now_ps=now_ps,
            )

        self._requeue(sending)
        return is_done

    def _acknowledge(
        self, sender: SimpleNamespace, packets: list[SimpleNamespace], ack: Packet
    ) -> None:
        # All below the receiver's lowest missing number has arrived, even if ACKs were lost.
        lowest = unwrapped_psn(ack.msn, sender.lowest)
        for psn in range(sender.lowest, lowest):
            sack.acknowledge(sender, packets, psn)

        for bit in range(ack.sacked.bit_length()):
            if ack.sacked >> bit & 1:
                sack.acknowledge(sender, packets, lowest + bit)
