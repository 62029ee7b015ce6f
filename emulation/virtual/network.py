"""The virtual-time network: discrete events in integer picoseconds, real bytes, real pipelines.

At equal times packets leave queues first, then links change, then the controller acts, then packets
arrive (by node and input port), then hosts send (design, decision 8). Everything else follows from
the scenario, so that one seed gives the same bytes in the same order; `Network.digest` says so.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

from emulation.errors import EmulationError
from emulation.outcomes.outcome import Accounts, FlowResult, Outcome, PortResult, QueueSamples
from emulation.softswitch.switch import Pending, Transmit
from emulation.virtual.ports import Outage, Port
from fattree import traffic
from fattree.addressing import host_name
from fattree.draws import Stream, component, mix
from fattree.experiment import Scenario
from fattree.topology import SWITCH_LAYERS, FatTree, Tier
from fattree.units import PS_PER_US
from hostagent.build import endpoints, plans
from hostagent.endpoint import FlowPlan
from hostagent.state import NEVER

ECN_BYTE = 15
CE = 0b11
SAMPLES_PER_RTT = 64


class Kind(IntEnum):
    """What happens first at equal times."""

    LEAVE = 0
    LINK = 1
    CONTROL = 2
    ARRIVE = 3
    SEND = 4


LEAVE, LINK, CONTROL, ARRIVE, SEND = map(int, Kind)
Event = tuple[int, int, int, int, int, Any]


class Queued(NamedTuple):
    """A packet in an output queue.

    `is_lost` where its transmission will start while the link is down.
    """

    pending: Pending
    size: int
    enqueued_ps: int
    is_marked: bool
    is_lost: bool


class Node(Protocol):
    """What the network asks of a switch (`softswitch.switch.Switch`)."""

    def ingress(self, port: int, frame: bytes, length: int | None = None) -> list[Pending]:
        """Process a frame up to the queues."""

    def egress(
        self, pending: Pending, deq_qdepth: int = 0, deq_timedelta_us: int = 0
    ) -> list[Transmit]:
        """Process a copy that has left its queue."""


class SwitchDraws:
    """A switch's random source: draw n is `mix(seed, switch's component, n)`, scaled."""

    def __init__(self, seed: int, switch: int) -> None:
        self._seed = seed
        self._component = component(Stream.SWITCH, switch)
        self._count = 0

    def __call__(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        draw = int(mix(self._seed, self._component, self._count))
        self._count += 1
        return low + (draw * (high - low + 1) >> 32)


class Clock:
    """Virtual time."""

    __slots__ = ("now_ps",)

    def __init__(self) -> None:
        self.now_ps = 0

    def __call__(self) -> int:
        """Return the time in picoseconds."""
        return self.now_ps


class Network:
    """One run of a scenario: its switches (`fattree.topology`'s order), hosts, ports and links."""

    def __init__(
        self,
        scenario: Scenario,
        switches: Sequence[Node],
        clock: Clock,
        outages: dict[int, list[Outage]] | None = None,
    ) -> None:
        self.scenario = scenario
        self.tree = scenario.tree
        self.switches = switches
        self.clock = clock
        self.on_drop: Callable[[int, int, int], None] = lambda _switch, _port, _size: None
        self.hops = self.sent = self.received = self.dropped = self.unrouted = self.lost = 0
        self.ports = [
            _ports(scenario, switch, outages or {}) for switch in range(self.tree.switches)
        ]
        flows = traffic.flows(scenario)
        self._plans = plans(scenario, flows)
        self.hosts = endpoints(scenario, flows, range(self.tree.hosts))
        self.done_ps = [NEVER] * len(self._plans)
        self._samples: dict[int, tuple[int, ...]] = {}
        self._sample_ps = scenario.zero_load_rtt_ps // SAMPLES_PER_RTT
        self._next_sample_ps = 0
        self._sizes = (scenario.data_bytes, scenario.ack_bytes)
        gap = scenario.packets.gap_bytes
        self._tx_ps = tuple(scenario.tx_ps(size) for size in self._sizes)
        self._slot_ps = tuple(scenario.tx_ps(size + gap) for size in self._sizes)
        self._latency_ps = scenario.latency_ps
        self._free_ps = [0] * self.tree.hosts
        self._wake_ps = [NEVER] * self.tree.hosts
        self._unfinished = len(self._plans)
        self._events: list[Event] = []
        self._sequence = 0
        self._log = hashlib.sha256()
        self._handlers = (self._leave, self._call, self._call, self._arrive, self._send)

        for host in range(self.tree.hosts):
            self._wake(host, 0)

    def at(self, time_ps: int, kind: Kind, action: Callable[[], object]) -> None:
        """Let something happen at a time: a link event or an act of the controller."""
        self._push(time_ps, kind, node=0, port=0, payload=action)

    def run(
        self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> None:
        """Run until all flows are done; `on_progress` gets the fraction of acknowledged packets.

        What happens at the very instant of the end still happens.

        Raises EmulationError, naming flows, at the horizon or when nothing happens any more.
        """
        events = self._events
        clock = self.clock
        limit_ps = NEVER if horizon_ps is None else horizon_ps

        while self._unfinished or (events and events[0][0] == clock.now_ps):
            if not events or events[0][0] > limit_ps:
                raise EmulationError(self._complaint())

            self._step(on_progress)

        self._count_marks_in_queues()

    def advance(self, until_ps: int, most_events: int) -> bool:
        """Let at most `most_events` happen, none after `until_ps`, for whoever looks on.

        Return whether more was due.
        """
        events = self._events
        for _ in range(most_events):
            if not events or events[0][0] > until_ps:
                self.clock.now_ps = max(self.clock.now_ps, until_ps)
                return False

            self._step()

        return True

    @property
    def unfinished(self) -> int:
        """Return how many flows are not complete."""
        return self._unfinished

    def acknowledged(self, flow: int) -> int:
        """Return how many packets of a flow its sender knows to have arrived."""
        plan = self._plans[flow]
        acked: int = min(self.hosts[plan.source].sender(flow).acked, plan.packets)
        return acked

    def set_links(self, links: Iterable[int], up: bool) -> None:
        """Break or mend links now; what waits for them is judged anew (design, decision 8)."""
        ends = {end for link in links for end in self.tree.link_ends(link)}
        for end in ends:
            self.ports[end.switch][end.port].set_link(self.clock.now_ps, up)

        for index, (time_ps, kind, node, number, sequence, payload) in enumerate(self._events):
            if kind == LEAVE and (node, number) in ends:
                self._events[index] = (
                    time_ps,
                    kind,
                    node,
                    number,
                    sequence,
                    self._judged(node, number, time_ps, payload),
                )

    def _judged(self, node: int, number: int, departure_ps: int, queued: Queued) -> Queued:
        port = self.ports[node][number]
        is_lost = port.is_down(departure_ps - port.queue.tx_ps(queued.size))
        change = is_lost - queued.is_lost
        port.lost += change
        self.lost += change

        return queued._replace(is_lost=is_lost)

    def _step(self, on_progress: Callable[[float], None] | None = None) -> None:
        time_ps, kind, node, port, _, payload = heappop(self._events)
        while self._next_sample_ps <= time_ps:
            self._sample(self._next_sample_ps)
            self._next_sample_ps += self._sample_ps
            if on_progress:
                on_progress(self._acknowledged())

        self.clock.now_ps = time_ps
        self._handlers[kind](time_ps, node, port, payload)

    def _acknowledged(self) -> float:
        return sum(map(self.acknowledged, range(len(self._plans)))) / sum(
            plan.packets for plan in self._plans
        )

    def _push(self, time_ps: int, kind: int, node: int, port: int, payload: Any) -> None:
        self._sequence += 1
        heappush(self._events, (time_ps, kind, node, port, self._sequence, payload))

    def _note(self, kind: int, time_ps: int, node: int, port: int, frame: bytes) -> None:
        self._log.update(b"%d %d %d %d " % (time_ps, kind, node, port))
        self._log.update(frame)

    def _call(self, time_ps: int, _node: int, _port: int, action: Callable[[], object]) -> None:
        action()

    def _arrive(self, time_ps: int, node: int, port: int, payload: tuple[bytes, int]) -> None:
        frame, size = payload
        self._note(ARRIVE, time_ps, node, port=port, frame=frame)
        if node >= self.tree.switches:
            self._receive(node - self.tree.switches, time_ps, frame)
            return

        self.hops += 1
        copies = self.switches[node].ingress(port, frame, size)
        self.unrouted += not copies

        for pending in copies:
            self._enqueue(node, time_ps, pending, size=size, is_marked=frame[ECN_BYTE] & CE == CE)

    def _enqueue(
        self, node: int, time_ps: int, pending: Pending, size: int, is_marked: bool
    ) -> None:
        port = self.ports[node][pending.egress_port]
        pending.enq_timestamp = time_ps // PS_PER_US
        pending.enq_qdepth = port.queue.depth_packets(time_ps)
        departure_ps = port.offer(time_ps, size)

        if departure_ps is None:
            self.dropped += 1
            self.on_drop(node, pending.egress_port, size)
            return

        is_lost = port.is_down(port.queue.last_start_ps)
        port.lost += is_lost
        self.lost += is_lost
        self._push(
            departure_ps,
            kind=LEAVE,
            node=node,
            port=pending.egress_port,
            payload=Queued(
                pending, size, enqueued_ps=time_ps, is_marked=is_marked, is_lost=is_lost
            ),
        )

    def _leave(self, time_ps: int, node: int, number: int, queued: Queued) -> None:
        port = self.ports[node][number]
        frame = self._egress(time_ps, node, number, queued)
        if frame is None:
            self.unrouted += not queued.is_lost
            return

        self._note(LEAVE, time_ps, node, port=number, frame=frame[:ECN_BYTE])
        if not queued.is_lost:
            self._push(
                time_ps + self._latency_ps,
                kind=ARRIVE,
                node=port.far,
                port=port.far_port,
                payload=(frame, queued.size),
            )

    def _egress(self, time_ps: int, node: int, number: int, queued: Queued) -> bytes | None:
        port = self.ports[node][number]
        depth = port.queue.depth_packets(time_ps)
        waited_us = (time_ps - queued.enqueued_ps) // PS_PER_US

        for transmit in self.switches[node].egress(queued.pending, depth, waited_us):
            port.marks += not queued.is_marked and transmit.frame[ECN_BYTE] & CE == CE
            return transmit.frame

        return None

    def _receive(self, host: int, time_ps: int, frame: bytes) -> None:
        self.received += 1
        flow = self.hosts[host].receive(time_ps, frame)
        if flow is not None and self._plans[flow].source == host:
            self.done_ps[flow] = time_ps
            self._unfinished -= 1

        self._wake(host, time_ps)

    def _wake(self, host: int, now_ps: int) -> None:
        """See to it that the host sends as soon as its link is free and something may go."""
        wake_ps = max(now_ps, self._free_ps[host], self.hosts[host].wake_ps())
        if wake_ps < self._wake_ps[host]:
            self._wake_ps[host] = wake_ps
            self._push(wake_ps, kind=SEND, node=host, port=0, payload=None)

    def _send(self, time_ps: int, host: int, _port: int, _payload: None) -> None:
        if self._wake_ps[host] != time_ps:
            return

        self._wake_ps[host] = NEVER
        departure = self.hosts[host].send(time_ps)
        if departure is not None:
            self.sent += 1
            edge, index = divmod(host, self.tree.half)
            arrival_ps = time_ps + self._tx_ps[departure.is_ack] + self._latency_ps
            self._push(
                arrival_ps,
                kind=ARRIVE,
                node=edge,
                port=index + 1,
                payload=(departure.frame, self._sizes[departure.is_ack]),
            )

            self._free_ps[host] = time_ps + self._slot_ps[departure.is_ack]

        self._wake(host, time_ps)

    def _sample(self, time_ps: int) -> None:
        longest = dict.fromkeys(SWITCH_LAYERS, 0)
        for ports in self.ports:
            for port in ports.values():
                longest[port.layer] = max(longest[port.layer], port.queue.occupancy_bytes(time_ps))

        self._samples[time_ps] = tuple(longest.values())

    def _count_marks_in_queues(self) -> None:
        """Let what still waits at the end through egress, where marks are counted."""
        for time_ps, kind, node, port, _, payload in sorted(self._events):
            if kind == LEAVE:
                self._egress(time_ps, node, port, payload)

    def accounts(self) -> Accounts:
        """Return where all packets sent so far are; those in flight are counted one by one."""
        waiting = [event[5] for event in self._events if event[1] == LEAVE]
        in_flight = sum(event[1] == ARRIVE for event in self._events) + sum(
            not queued.is_lost for queued in waiting
        )
        return Accounts(
            self.sent,
            received=self.received,
            dropped=self.dropped,
            unrouted=self.unrouted,
            lost=self.lost,
            in_flight=in_flight,
        )

    def outcome(self, cpu_seconds: float) -> Outcome:
        """Return what the run has shown, up to now."""
        return Outcome(
            scenario=self.scenario,
            flows=tuple(self._flow_result(plan) for plan in self._plans),
            ports=tuple(self._port_results()),
            samples=QueueSamples(tuple(self._samples), tuple(self._samples.values())),
            accounts=self.accounts(),
            digest=self._log.hexdigest(),
            end_ps=self.clock.now_ps,
            hops=self.hops,
            freezes=sum(self.hosts[plan.source].sender(plan.flow).freezes for plan in self._plans),
            cpu_seconds=cpu_seconds,
        )

    def _flow_result(self, plan: FlowPlan) -> FlowResult:
        host = self.hosts[plan.source]
        sent = host.sender(plan.flow).transmissions
        ends = (plan.source, plan.destination, plan.packets)
        times = (plan.start_ps, host.started_ps(plan.flow), self.done_ps[plan.flow])

        return FlowResult(plan.flow, *ends, *times, sent)

    def _port_results(self) -> Iterator[PortResult]:
        end_ps = self.clock.now_ps
        ahead = self._queued_beyond_the_end()
        for switch, ports in enumerate(self.ports):
            for number, port in ports.items():
                mean = (port.queue_byte_ps - ahead.get(port, 0)) / max(end_ps, 1)
                counts = (
                    port.packets,
                    port.bytes,
                    port.queue.drops,
                    port.marks,
                    port.lost,
                    port.max_queue_bytes,
                )

                yield PortResult(switch, number, port.layer, *counts, mean)

    def _queued_beyond_the_end(self) -> dict[Port, int]:
        """Return the byte picoseconds that ports have counted for packets that have not left yet."""
        ahead: dict[Port, int] = {}
        for time_ps, kind, node, number, _, payload in self._events:
            if kind == LEAVE:
                port = self.ports[node][number]
                ahead[port] = ahead.get(port, 0) + payload.size * (time_ps - self.clock.now_ps)

        return ahead

    def _complaint(self) -> str:
        waiting = [flow for flow, done_ps in enumerate(self.done_ps) if done_ps == NEVER]
        named = ", ".join(_flow_name(self.tree, self._plans[flow]) for flow in waiting[:3])
        more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""

        return f"at {self.clock.now_ps / PS_PER_US:.3f} us, {len(waiting)} flows are not complete: {named}{more}"


def _flow_name(tree: FatTree, plan: FlowPlan) -> str:
    return f"{host_name(tree, plan.source)} to {host_name(tree, plan.destination)}"


def _ports(scenario: Scenario, switch: int, outages: dict[int, list[Outage]]) -> dict[int, Port]:
    tree = scenario.tree
    return {
        number: _port(scenario, tree, switch, number=number, outages=outages)
        for number in tree.ports(switch)
    }


def _port(
    scenario: Scenario, tree: FatTree, switch: int, number: int, outages: dict[int, list[Outage]]
) -> Port:
    layer = tree.layer_of(switch, number)
    far = tree.neighbour(switch, number)
    if far is None:
        return Port(
            scenario,
            layer,
            far=tree.switches + switch * tree.half + number - 1,
            far_port=0,
            outages=(),
        )

    return Port(
        scenario,
        layer,
        far=far.switch,
        far_port=far.port,
        outages=outages.get(link_of(tree, switch, number), ()),
    )


def link_of(tree: FatTree, switch: int, port: int) -> int:
    """Return the index of the inter-switch link behind a port."""
    far = tree.neighbour(switch, port)
    assert far is not None
    lower, uplink = (
        (switch, port) if port > tree.half and tree.tier(switch) is not Tier.CORE else far
    )

    return lower * tree.half + uplink - tree.half - 1
