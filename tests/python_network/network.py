"""The virtual-time network: discrete events in integer picoseconds, real bytes, real pipelines.

At equal times packets leave queues first, then links change, then the controller acts, then packets
arrive (by node and input port), then hosts send (design, decision 8). Everything else follows from
the scenario, so that a seed always gives the same bytes in the same order; `Network.digest` is
their hash.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from emulation.errors import FailedRunError
from emulation.outcomes.outcome import Accounts, Outcome, PortResult, QueueSamples
from emulation.programs.probes import Timer, with_news
from emulation.virtual.events import ARRIVE, CONTROL, LEAVE, LINK, SEND, Clock, Event, Kind
from fattree.routes.demand import Demand
from fattree.routes.standstill import Watch, patience, why_still
from fattree.shape.topology import SWITCH_LAYERS
from fattree.units import PS_PER_US
from hostagent.own_packet import scenario_packets
from hostagent.segment_routes import is_marked
from hostagent.transports.state import NEVER
from ofan_p4.softswitch.control.switch import Pending, Switch
from ofan_p4.softswitch.ports.queue import Passage
from tests.python_network.hosts import Hosts
from tests.python_network.ports import Port, ports_of
from tests.python_network.wires import Wires

CE = 0b11
ETHERTYPE_PROBE = 0x88B5
PACKET_OUT_BYTES = 2
# In place of a node, behind all others.
PROBERS = 1 << 40
SAMPLES_PER_RTT = 64


class Queued(NamedTuple):
    """A packet in an output queue.

    `is_lost` if its transmission will start while the link is down, or if it `is_unlucky`. `cut`
    bytes are removed at its end, and `charged` bytes were added to the queue length that ingress
    reads.
    """

    pending: Pending
    passage: Passage
    cut: int
    charged: int
    enqueued_ps: int
    is_marked: bool
    is_lost: bool
    is_unlucky: bool


class Network:
    """One run of a scenario: its switches (`shape.topology`'s order), hosts, ports and links."""

    def __init__(
        self,
        demand: Demand,
        switches: Sequence[Switch],
        clock: Clock,
        wires: Wires,
        edge_header_bytes: int = 0,
        timer: Timer | None = None,
    ) -> None:
        scenario = demand.scenario
        self.demand = demand
        self.scenario = scenario
        self.tree = scenario.tree
        self.switches = switches
        self.clock = clock
        self.on_drop: Callable[[int, int, int], None] = lambda _switch, _port, _size: None
        self.hops = 0
        self.dropped = 0
        self.unrouted = 0
        self.lost = 0
        self.probes_sent = 0
        self.probes_taken = 0
        self.ports = [
            ports_of(scenario, switch, wires, edge_header_bytes)
            for switch in range(self.tree.switches)
        ]
        # Of IPv4 or IPv6: its version, then DSCP and ECN. And the bytes that trimming removes.
        forms = scenario_packets(scenario).forms
        self._ecn_at = forms.data.ip_at + 1
        self._trimmed = forms.trimmed
        self._full_bytes = scenario.data_bytes
        self._events: list[Event] = []
        self._sequence = 0
        self.hosts = Hosts(demand, self._push, wires)
        self._samples: dict[int, tuple[int, ...]] = {}
        self._sample_ps = scenario.zero_load_rtt_ps // SAMPLES_PER_RTT
        self._next_sample_ps = 0
        self._log = hashlib.sha256()
        self._watch = Watch.of(with_news(patience(scenario, demand.events), timer))

        self._handlers: dict[int, Callable[[int, int, int, Any], None]] = {
            LEAVE: self._leave,
            LINK: self._call,
            CONTROL: self._call,
            ARRIVE: self._arrive,
            SEND: self.hosts.send,
        }

    def at(self, time_ps: int, kind: Kind, action: Callable[[], object]) -> None:
        """Schedule a link event or an act of the controller."""
        self._push(time_ps, kind, node=0, port=0, payload=action)

    def at_last(self, time_ps: int, action: Callable[[], object]) -> None:
        """Schedule probes of edges: after all acts of the controller at their instant."""
        self._push(time_ps, CONTROL, node=PROBERS, port=0, payload=action)

    def run(
        self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> None:
        """Run until all flows are done; `on_progress` gets the fraction of acknowledged packets.

        Events at the very instant of the end still happen.

        Raises FailedRunError, naming flows, at the horizon, without further events, or when no more
        progress is possible (`routes.standstill`).
        """
        events = self._events
        clock = self.clock
        limit_ps = NEVER if horizon_ps is None else horizon_ps

        # To the end of the instant: its events do not depend on which flow ends it.
        while self.hosts.unfinished or (events and events[0][0] == clock.now_ps):
            self.give_up(limit_ps)
            self._step(on_progress)

        self._count_marks_in_queues()

    def give_up(self, limit_ps: int) -> None:
        """Raise FailedRunError if an unfinished run ends before its next event."""
        if not self._events or self._events[0][0] > limit_ps:
            raise FailedRunError(self._unfinished(self.clock.now_ps))

        watch = self._watch
        while watch.next_ps <= self._events[0][0]:
            now_ps = watch.next_ps
            if watch.is_over(now_ps, self.hosts.standing(now_ps, self._is_changing)):
                still = why_still(self.scenario, self.demand.events, watch.heard_ps)
                raise FailedRunError(f"{self._unfinished(now_ps)}; {still}")

    @property
    def _is_changing(self) -> bool:
        # Probes never end: the routes' changes that they cause are in the timeline.
        is_probing = self.scenario.controller.detection == "probe"
        return not is_probing and any(
            event[1] in (LINK, CONTROL) and event[2] != PROBERS for event in self._events
        )

    def _unfinished(self, now_ps: int) -> str:
        counts, ports = zip(*(switch.misdirected for switch in self.switches), strict=True)
        complaint = self.hosts.complaint(self.unrouted, sum(counts), max(ports))
        return f"at {now_ps / PS_PER_US:.3f} µs, {complaint}"

    def advance(self, until_ps: int, most_events: int) -> bool:
        """Process at most `most_events` events, none after `until_ps`, for live views.

        Return whether more events were due.
        """
        events = self._events
        for _ in range(most_events):
            # Virtual time reaches `until_ps`, even where nothing happens then.
            if not events or events[0][0] > until_ps:
                self.clock.now_ps = max(self.clock.now_ps, until_ps)
                return False

            self._step()

        return True

    def _move(self, node: int, number: int) -> None:
        """Move a port's departures to their new times."""
        events = self._events
        for index, (_, kind, event_node, port, sequence, queued) in enumerate(events):
            if (kind, event_node, port) == (LEAVE, node, number):
                departure_ps = queued.passage.departure_ps
                events[index] = (departure_ps, LEAVE, node, number, sequence, queued)

        heapify(events)

    def _judged(self, node: int, number: int, queued: Queued) -> Queued:
        # It is the start of a transmission that counts (decision 8).
        port = self.ports[node][number]
        is_lost = queued.is_unlucky or port.wire.is_down(queued.passage.start_ps)
        change = is_lost - queued.is_lost
        port.counts["lost_to_failure"] += change
        self.lost += change

        return queued._replace(is_lost=is_lost)

    def _step(self, on_progress: Callable[[float], None] | None = None) -> None:
        # Between events nothing but time changes a queue, so that samples can be taken late: those
        # of an instant before packets arrive then, and after edges have sent their probes.
        time_ps, kind, node, port, _, payload = heappop(self._events)
        end_ps = time_ps + (kind > CONTROL)
        while self._next_sample_ps < end_ps:
            lengths = self._sample(self._next_sample_ps)
            self._next_sample_ps += self._sample_ps
            if on_progress:
                on_progress(self.hosts.progress)

            # Without an event no queue grows: in idle time, all samples are the same.
            if not any(lengths):
                idle = range(self._next_sample_ps, end_ps, self._sample_ps)
                self._samples.update(dict.fromkeys(idle, lengths))
                self._next_sample_ps += len(idle) * self._sample_ps

        self.clock.now_ps = time_ps
        self._handlers[kind](time_ps, node, port, payload)

    def _push(self, time_ps: int, kind: int, node: int, port: int, payload: Any) -> None:
        self._sequence += 1
        heappush(self._events, (time_ps, kind, node, port, self._sequence, payload))

    def _note(self, kind: int, time_ps: int, node: int, port: int, frame: bytes) -> None:
        # Arrivals with all their bytes; of departures the beginning is enough, as changes by a
        # program show when the packet arrives.
        self._log.update(b"%d %d %d %d " % (time_ps, kind, node, port))
        self._log.update(frame)

    def _call(self, time_ps: int, _node: int, _port: int, action: Callable[[], object]) -> None:
        action()

    def _arrive(self, time_ps: int, node: int, port: int, payload: tuple[bytes, int, bool]) -> None:
        frame, size, is_urgent = payload
        self._note(ARRIVE, time_ps, node, port=port, frame=frame)
        if node >= self.tree.switches:
            self.hosts.receive(node - self.tree.switches, time_ps, frame)
            return

        # A packet is one event at any time: it arrives, or it waits to leave. Every way in which it
        # ends without another event is counted where it ends, so that `accounts` adds up.
        self.hops += 1
        copies = self.switches[node].ingress(port, frame, size)
        if not copies and self._is_taken(node, port, frame):
            self.probes_taken += 1
            return

        self.unrouted += not copies
        ecn_at = self._ecn_at + self.ports[node][port].more_bytes

        for pending in copies:
            self._enqueue(
                node,
                time_ps,
                pending,
                size=size,
                is_marked=is_marked(frame, ecn_at),
                is_urgent=is_urgent,
            )

    def send_probe(self, edge: int, frame: bytes, cpu_port: int) -> None:
        """Let an edge send a packet of its own, which comes by the CPU port."""
        time_ps = self.clock.now_ps
        self.probes_sent += 1
        self._note(CONTROL, time_ps, edge, port=0, frame=frame)
        # As long as an ACK, with the controller's header in front.
        size = self.scenario.ack_bytes + PACKET_OUT_BYTES
        copies = self.switches[edge].ingress(cpu_port, frame, size)
        self.unrouted += not copies
        for pending in copies:
            self._enqueue(edge, time_ps, pending, size=size, is_marked=False, is_urgent=False)

    def _is_taken(self, node: int, port: int, frame: bytes) -> bool:
        """Return whether a packet that a switch has not sent on is a probe that has arrived."""
        is_above = node < self.tree.edges and port > self.tree.downlinks(node)
        return is_above and int.from_bytes(frame[12:14], "big") == ETHERTYPE_PROBE

    def _enqueue(
        self,
        node: int,
        time_ps: int,
        pending: Pending,
        *,
        size: int,
        is_marked: bool,
        is_urgent: bool,
    ) -> None:
        # A packet has `size` bytes on the link by which it comes, and so many without a header
        # that it may have there, and with that of the link by which it leaves.
        port = self.ports[node][pending.egress_port]
        came_by = self.ports[node].get(pending.ingress_port)
        plain = size - (came_by.more_bytes if came_by else PACKET_OUT_BYTES)
        leaving = plain + port.more_bytes

        # BMv2's metadata for egress: microseconds, and the packets ahead (enq_qdepth of v1model).
        pending.enq_timestamp = time_ps // PS_PER_US
        pending.enq_qdepth = port.queue.depth_packets(time_ps)
        passage = port.offer(time_ps, leaving, is_urgent)

        # A packet that overtakes the queue is not in it.
        if passage is None or passage.is_urgent:
            self.on_drop(node, pending.egress_port, size)

        if passage is None:
            self.dropped += 1
            return

        if passage.is_urgent and port.queue.has_hastened:
            self._move(node, pending.egress_port)

        pending.length -= leaving - passage.size

        # Lost or not, it takes its room and its time: a dead port drains at line rate (decision 8).
        queued = Queued(
            pending,
            passage,
            cut=self._trimmed(self._full_bytes - plain) if passage.size < leaving else 0,
            charged=size if passage.is_urgent else 0,
            enqueued_ps=time_ps,
            is_marked=is_marked,
            is_lost=False,
            is_unlucky=self._is_unlucky(port),
        )
        queued = self._judged(node, pending.egress_port, queued)
        self._await_leaving(node, pending.egress_port, queued)

    def _is_unlucky(self, port: Port) -> bool:
        """Return whether chance loses a packet that is queued now."""
        return port.wire.loses_next()

    def _await_leaving(self, node: int, number: int, queued: Queued) -> None:
        departure_ps = queued.passage.departure_ps
        self._push(departure_ps, kind=LEAVE, node=node, port=number, payload=queued)

    def _leave(self, time_ps: int, node: int, number: int, queued: Queued) -> None:
        # Others may have overtaken it since this was foreseen.
        passage = queued.passage
        if passage.departure_ps > time_ps:
            self._await_leaving(node, number, queued)
            return

        port = self.ports[node][number]
        frame = self._egress(time_ps, node, number, queued)
        # A packet that egress drops is unrouted, but no packet is counted twice.
        if frame is None:
            self.unrouted += not queued.is_lost
            return

        self._note(LEAVE, time_ps, node, port=number, frame=frame[: self._ecn_at])
        if not queued.is_lost:
            self._push(
                time_ps + port.latency_ps,
                kind=ARRIVE,
                node=port.far,
                port=port.far_port,
                payload=(frame, passage.size, passage.is_urgent),
            )

    def _egress(self, time_ps: int, node: int, number: int, queued: Queued) -> bytes | None:
        port = self.ports[node][number]

        # Programs take out of the queue's length the bytes that they have added.
        if queued.charged:
            self.on_drop(node, number, -queued.charged)

        # Egress runs when the last bit has left, not when the first bit does as on BMv2: so the
        # queue that it sees is behind the packet.
        depth = port.queue.depth_packets(time_ps)
        waited_us = (time_ps - queued.enqueued_ps) // PS_PER_US

        # At most one copy: no program clones at egress. Marks count when they are new here.
        for transmit in self.switches[node].egress(queued.pending, depth, waited_us):
            is_new = is_marked(transmit.frame, self._ecn_at + port.more_bytes)
            port.counts["marked"] += is_new and not queued.is_marked
            return transmit.frame[: len(transmit.frame) - queued.cut]

        return None

    def _sample(self, time_ps: int) -> tuple[int, ...]:
        """Take and return each layer's longest queue."""
        longest = dict.fromkeys(SWITCH_LAYERS, 0)
        for ports in self.ports:
            for port in ports.values():
                longest[port.layer] = max(longest[port.layer], port.queue.occupancy_bytes(time_ps))

        return self._samples.setdefault(time_ps, tuple(longest.values()))

    def _count_marks_in_queues(self) -> None:
        """Run egress for packets that still wait at the end, as marks are counted there."""
        for time_ps, _, node, port, _, queued in sorted(self._still_queued()):
            self._egress(time_ps, node, port, queued)

    def _still_queued(self) -> list[Event]:
        """Return the packets that wait at ports."""
        return [event for event in self._events if event[1] == LEAVE]

    def accounts(self) -> Accounts:
        """Return where all packets sent so far are; packets in flight are counted singly."""
        # Packets that wait for a dead link count as lost already; hosts keep no sent packets.
        waiting = [event[5] for event in self._still_queued()]
        in_flight = sum(event[1] == ARRIVE for event in self._events) + sum(
            not queued.is_lost for queued in waiting
        )
        return Accounts(
            sent=self.hosts.sent + self.probes_sent,
            received=self.hosts.received + self.probes_taken,
            dropped=self.dropped,
            unrouted=self.unrouted,
            lost=self.lost + self.hosts.lost,
            in_flight=in_flight,
            probes=self.probes_sent,
        )

    def outcome(self, cpu_seconds: float) -> Outcome:
        """Return the results of the run up to now."""
        return Outcome(
            demand=self.demand,
            flows=self.hosts.flow_results,
            ports=tuple(self._port_results()),
            samples=QueueSamples(tuple(self._samples), tuple(self._samples.values())),
            accounts=self.accounts(),
            digest=self._log.hexdigest(),
            end_ps=self.clock.now_ps,
            hops=self.hops,
            cpu_seconds=cpu_seconds,
            host_paused_ps=self.hosts.paused_ps(self.clock.now_ps),
        )

    def _port_results(self) -> Iterator[PortResult]:
        end_ps = self.clock.now_ps
        ahead = self._queued_beyond_the_end()
        for switch, ports in enumerate(self.ports):
            for number, port in ports.items():
                yield PortResult(
                    switch=switch,
                    port=number,
                    layer=port.layer,
                    packets=port.packets,
                    bytes=port.bytes,
                    max_queue_bytes=port.queue.max_bytes,
                    mean_queue_bytes=(port.queue.byte_ps - ahead.get(port, 0)) / max(end_ps, 1),
                    **port.counts,
                )

    def _queued_beyond_the_end(self) -> dict[Port, int]:
        """Return the byte picoseconds that ports have counted beyond the end of the run."""
        # `OutputQueue.offer` counts a packet's whole stay at once, when it knows the departure.
        ahead: dict[Port, int] = {}
        for _, kind, node, number, _, payload in self._events:
            if kind == LEAVE and not payload.passage.is_urgent:
                port = self.ports[node][number]
                longer_ps = payload.passage.departure_ps - self.clock.now_ps
                ahead[port] = ahead.get(port, 0) + payload.passage.size * longer_ps

        return ahead
