"""The run model as plainly as it can be written: one heap of events, packets and queues as objects,
no arrays, no windows.

What is decided before a run (traffic, failures, forwarding) comes from `fabric`, what a sender does
from `hostagent`'s rules; load balancers are `tests.naive_balancers`. The simulator must agree with
`run` to the picosecond.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fractions import Fraction
from heapq import heappop, heappush
from math import floor
from types import SimpleNamespace
from typing import Any

import numpy as np

from fattree import traffic
from fattree.experiment import Scenario
from fattree.failures import timeline
from fattree.forwarding import scenario_forwarding
from fattree.local_repair import repaired
from fattree.rates import rho_max
from fattree.topology import FatTree, LinkEnd, Tier
from fattree.units import PS_PER_NS
from fattree.wecmp import LinkState
from hostagent import labels, transport
from hostagent.rules import rules
from hostagent.state import NEVER, PACKET, SENDER, Recovery, Rules, blank
from tests.naive_balancers import ACK, DATA, Balancer, HostPointers, Packet


class Kind(IntEnum):
    """What happens first at equal times; packets leave queues before all of these."""

    LINKS = 0
    ROUTES = 1
    ARRIVE = 2
    SEND = 3


@dataclass(slots=True)
class Port:
    """An output queue and its link.

    `log` has (enqueued, last bit left, bytes) of every packet that was accepted.
    """

    scenario: Scenario
    free_ps: int = 0
    max_bytes: int = 0
    drops: int = 0
    marks: int = 0
    lost: int = 0
    log: list[tuple[int, int, int]] = field(default_factory=list)

    def bytes_at(self, now_ps: int) -> int:
        """Return the bytes of the packets that have not completely left."""
        total = 0
        for _, departure_ps, size in reversed(self.log):
            if departure_ps <= now_ps:
                break
            total += size
        return total

    def stale_bytes_at(self, then_ps: int) -> int:
        """Return what `bytes_at` said at an instant in the past, before anything arrived at that
        instant.
        """
        return sum(
            size
            for enqueued_ps, departure_ps, size in self.log
            if enqueued_ps < then_ps < departure_ps
        )

    def put(self, now_ps: int, size: int) -> tuple[int, int]:
        """Accept a packet; return when its transmission starts and when its last bit has left."""
        start_ps = max(self.free_ps, now_ps)
        departure_ps = start_ps + self.scenario.tx_ps(size)
        self.free_ps = start_ps + self.scenario.tx_ps(size + self.scenario.packets.gap_bytes)
        self.log.append((now_ps, departure_ps, size))
        self.max_bytes = max(self.max_bytes, self.bytes_at(now_ps))
        return start_ps, departure_ps

    @property
    def load_bytes(self) -> int:
        """Return the bytes of all packets that were accepted."""
        return sum(size for _, _, size in self.log)

    def byte_ps(self, end_ps: int) -> int:
        """Return the integral of the occupancy from 0 to `end_ps`."""
        return sum(
            size * (min(departure_ps, end_ps) - enqueued_ps)
            for enqueued_ps, departure_ps, size in self.log
        )


@dataclass(slots=True)
class Flow:
    """Both ends of a flow: the sender's state and what the receiver has.

    `waits_for` are flows that must be complete first.
    """

    number: int
    source: int
    destination: int
    packets: int
    gap_ps: int
    phase_ps: int
    hops: int
    waits_for: set[int]
    outstanding: list[SimpleNamespace]
    sender: SimpleNamespace = field(default_factory=lambda: blank(SENDER))
    started_ps: int = NEVER
    received: set[int] = field(default_factory=set)

    @property
    def done_ps(self) -> int:
        return NEVER if self.started_ps == NEVER else int(self.sender.done_ps)


@dataclass(slots=True)
class Host:
    """The flows that begin here, the ACKs that wait, and the one link."""

    number: int
    rules: Rules
    link: Port
    flows: list[Flow] = field(default_factory=list)
    acks: deque[Packet] = field(default_factory=deque)
    last_was_ack: bool = True

    def start(self, flow: Flow, now_ps: int) -> None:
        """Let a flow begin; it is due a phase later."""
        flow.started_ps = now_ps
        due_ps = now_ps + flow.phase_ps
        transport.start(
            flow.sender, self.rules, flow.number, flow.packets, flow.gap_ps, due_ps, flow.hops
        )
        labels.start(flow.sender, self.rules)

    def first_ready(self) -> tuple[int, int]:
        """Return the ready time and the number of the flow that may send first, NEVER and 0 if none
        will.
        """
        active = [flow for flow in self.flows if flow.started_ps != NEVER == flow.done_ps]
        ready = [
            (transport.ready_ps(flow.sender, self.rules, flow.outstanding), flow.number)
            for flow in active
        ]
        return min(ready, default=(NEVER, 0))

    def wake_ps(self, now_ps: int) -> int:
        """Return when the host can send again if nothing arrives until then."""
        return max(now_ps, self.link.free_ps, 0 if self.acks else self.first_ready()[0])

    def next_packet(self, now_ps: int) -> Packet | None:
        """Return what the link takes now: data and ACKs in turn while both wait, data first."""
        ready_ps, number = self.first_ready()
        if self.acks and not (ready_ps <= now_ps and self.last_was_ack):
            self.last_was_ack = True
            return self.acks.popleft()
        if ready_ps > now_ps:
            return None
        self.last_was_ack = False
        flow = next(flow for flow in self.flows if flow.number == number)
        label = labels.next_label(flow.sender, self.rules, flow.outstanding, now_ps)
        psn = transport.next_psn(flow.sender, self.rules, flow.outstanding, label, now_ps)
        return Packet(number, psn, flow.source, flow.destination, DATA, label)

    def take(self, packet: Packet, flow: Flow, now_ps: int) -> None:
        """Take in a packet, and start what waited for the flow if that is complete here now."""
        is_complete = (
            self.take_data(packet, flow)
            if packet.kind == DATA
            else self.take_ack(packet, flow, now_ps)
        )
        for waiting in self.flows if is_complete else ():
            if flow.number in waiting.waits_for:
                waiting.waits_for.remove(flow.number)
                if not waiting.waits_for:
                    self.start(waiting, now_ps)

    def take_data(self, packet: Packet, flow: Flow) -> bool:
        is_new = packet.psn not in flow.received
        flow.received.add(packet.psn)
        held = frozenset(flow.received if self.rules.recovery == Recovery.SACK else ())
        self.acks.append(
            Packet(
                flow.number,
                packet.psn,
                flow.destination,
                flow.source,
                ACK,
                packet.label,
                packet.marked,
                held,
            )
        )
        return is_new and len(flow.received) == flow.packets

    def take_ack(self, packet: Packet, flow: Flow, now_ps: int) -> bool:
        labels.on_ack(flow.sender, self.rules, packet.label, packet.marked, now_ps)
        for psn in sorted(packet.held):
            transport.acknowledge(flow.sender, flow.outstanding, psn)
        return bool(transport.on_ack(flow.sender, self.rules, flow.outstanding, packet.psn, now_ps))


class Network:
    """One run of a scenario: `run` it once, then read its flows, ports, hosts and counts."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.tree, shared = scenario, scenario.tree, rules(scenario)
        self.traffic = traffic.flows(scenario)
        self.timeline = timeline(scenario, self.traffic)
        self.hosts = [Host(number, shared, Port(scenario)) for number in range(self.tree.hosts)]
        self.flows = self._flows(shared)
        self.unfinished = {flow.number for flow in self.flows}
        self.balancers = [Balancer(scenario, switch) for switch in range(self.tree.switches)]
        self.host_pointers = HostPointers(scenario)
        self.ports = {
            (switch, port): Port(scenario)
            for switch in range(self.tree.switches)
            for port in self.tree.ports(switch)
        }
        self.link_of = {
            end: link for link in range(self.tree.links) for end in self.tree.link_ends(link)
        }
        percent = scenario.load_balancer.ecn_percent or scenario.scheme.ecn_percent
        self.ecn_bytes = (
            floor(scenario.threshold_bytes * Fraction(str(percent)) / 100) if percent else NEVER
        )
        self.sent = self.received = self.unrouted = 0
        self.events: list[tuple[int, Kind, int, int, int, Any]] = []
        self.pushed = 0
        self.failed: frozenset[int] = frozenset()
        self.routed = self.timeline.first_routes
        self.route()

    def _flows(self, shared: Rules) -> list[Flow]:
        """Return the scenario's flows, and tell each to its host."""
        links = LinkState.without(self.tree, self.timeline.down_at_start)
        gaps = traffic.gaps(self.scenario, self.traffic, rho_max(self.tree, links, self.traffic))
        phases = traffic.phases(self.scenario, self.traffic, gaps)
        columns = np.stack(
            [self.traffic.source, self.traffic.destination, self.traffic.packets, gaps, phases],
            axis=1,
        )
        flows = []
        for number, (source, destination, packets, gap_ps, phase_ps) in enumerate(columns.tolist()):
            waits_for = set(self.traffic.waits_for(number).tolist())
            outstanding = [
                blank(PACKET) for _ in range(transport.ring_length(shared, packets, gap_ps))
            ]
            hops = self.tree.hops(source, destination)
            flows.append(
                Flow(
                    number,
                    source,
                    destination,
                    packets,
                    gap_ps,
                    phase_ps,
                    hops,
                    waits_for,
                    outstanding,
                )
            )
            self.hosts[source].flows.append(flows[-1])
        return flows

    @property
    def end_ps(self) -> int:
        """Return when the last flow was done, NEVER while one is not."""
        return NEVER if self.unfinished else max(flow.done_ps for flow in self.flows)

    @property
    def cct_ps(self) -> int:
        """Return the collective's completion time."""
        starts_ps: list[int] = self.traffic.start_ps.tolist()
        return max(
            flow.done_ps - start_ps for flow, start_ps in zip(self.flows, starts_ps, strict=True)
        )

    @property
    def in_flight(self) -> int:
        return sum(event[1] is Kind.ARRIVE for event in self.events)

    def run(self, horizon_ps: int = NEVER) -> "Network":
        """Run until the last flow is done, all of that instant included.

        Raises TimeoutError if that is not by the horizon.
        """
        for change in self.timeline.changes:
            self.at(change.time_ps, Kind.LINKS, 0, 0, change)
        for reaction in self.timeline.routes:
            self.at(reaction.time_ps, Kind.ROUTES, 0, 0, reaction.failed)
        for flow, start_ps in zip(self.flows, self.traffic.start_ps.tolist(), strict=True):
            if not flow.waits_for:
                self.hosts[flow.source].start(flow, start_ps)
        for host in self.hosts:
            self.wake(host, 0)
        while self.events and self.events[0][0] <= min(self.end_ps, horizon_ps):
            self.happen(*heappop(self.events))
        if self.end_ps > horizon_ps or self.end_ps == NEVER:
            raise TimeoutError(f"{len(self.unfinished)} flows are not done")
        return self

    def at(self, time_ps: int, kind: Kind, node: int, port: int = 0, subject: Any = None) -> None:
        """Let something happen at a time; at equal times in the order of kind, node and port."""
        self.pushed += 1
        heappush(self.events, (time_ps, kind, node, port, self.pushed, subject))

    def happen(
        self, now_ps: int, kind: Kind, node: int, _port: int, _pushed: int, subject: Any
    ) -> None:
        match kind:
            case Kind.LINKS:
                self.failed = self.failed - subject.up | subject.down
                self.route()
            case Kind.ROUTES:
                self.routed = subject
                self.route()
            case Kind.ARRIVE if node < self.tree.switches:
                self.forward(node, subject, now_ps)
            case Kind.ARRIVE:
                self.receive(self.hosts[node - self.tree.switches], subject, now_ps)
            case Kind.SEND:
                self.send(self.hosts[node], now_ps)

    def route(self) -> None:
        """Plan for the links that are known to be down.

        With local repair, switches also leave their own dead uplinks.
        """
        self.links = LinkState.without(self.tree, self.routed)
        self.plan = scenario_forwarding(self.scenario, self.links)
        if self.scenario.failures.local_repair:
            self.plan = repaired(self.plan, LinkState.without(self.tree, self.failed))

    def wake(self, host: Host, now_ps: int) -> None:
        wake_ps = host.wake_ps(now_ps)
        if wake_ps != NEVER:
            self.at(wake_ps, Kind.SEND, host.number)

    def send(self, host: Host, now_ps: int) -> None:
        """Put a packet on a host's link, if the link is free and there is one."""
        packet = host.next_packet(now_ps) if host.link.free_ps <= now_ps else None
        if packet is None:
            return
        self.sent += 1
        _, departure_ps = host.link.put(now_ps, self.size(packet))
        edge, index = divmod(host.number, self.tree.half)
        packet = replace(packet, waypoint=self.host_pointers.waypoint(self.links, packet))
        self.at(departure_ps + self.scenario.latency_ps, Kind.ARRIVE, edge, index + 1, packet)
        self.wake(host, now_ps)

    def receive(self, host: Host, packet: Packet, now_ps: int) -> None:
        self.received += 1
        flow = self.flows[packet.flow]
        host.take(packet, flow, now_ps)
        if flow.done_ps != NEVER:
            self.unfinished.discard(flow.number)
        self.wake(host, now_ps)

    def size(self, packet: Packet) -> int:
        return self.scenario.data_bytes if packet.kind == DATA else self.scenario.ack_bytes

    def forward(self, switch: int, packet: Packet, now_ps: int) -> None:
        """Send a packet down where its destination is below, else up by the load balancer's choice."""
        number = southbound(self.tree, switch, packet.destination)
        if number is None:
            uplink = self.balancers[switch].uplink(self.plan, packet, self.queues(switch, now_ps))
            if uplink is None:
                self.unrouted += 1
                return
            number = self.tree.uplink_port(uplink)
        self.enqueue(LinkEnd(switch, number), packet, now_ps)

    def queues(self, switch: int, now_ps: int) -> list[int]:
        """Return the bytes at a switch's uplinks, as old as the scenario says."""
        uplinks = [
            self.ports[switch, self.tree.uplink_port(uplink)] for uplink in range(self.tree.half)
        ]
        stale_ps = round(self.scenario.load_balancer.queue_staleness_ns * PS_PER_NS)
        if not stale_ps:
            return [port.bytes_at(now_ps) for port in uplinks]
        return [port.stale_bytes_at(now_ps // stale_ps * stale_ps) for port in uplinks]

    def enqueue(self, place: LinkEnd, packet: Packet, now_ps: int) -> None:
        """Drop, mark, queue and transmit a packet at a switch's port."""
        port, size, capacity = (
            self.ports[place],
            self.size(packet),
            self.scenario.fabric.queue_bytes,
        )
        waiting = port.bytes_at(now_ps)
        if capacity and waiting + size > capacity:
            port.drops += 1
            return
        if packet.kind == DATA and not packet.marked and waiting > self.ecn_bytes:
            port.marks += 1
            packet = replace(packet, marked=True)
        start_ps, departure_ps = port.put(now_ps, size)
        if self.is_down(place, start_ps):
            port.lost += 1
            return
        host = self.tree.switches + place.switch * self.tree.half + place.port - 1
        far = self.tree.neighbour(*place) or LinkEnd(host, 0)
        self.at(departure_ps + self.scenario.latency_ps, Kind.ARRIVE, far.switch, far.port, packet)

    def is_down(self, place: LinkEnd, start_ps: int) -> bool:
        """Return whether the link behind a port is down when a transmission starts."""
        link, is_down = self.link_of.get(place), False
        for change in self.timeline.changes:
            if change.time_ps <= start_ps:
                is_down = (is_down or link in change.down) and link not in change.up
        return is_down


def southbound(tree: FatTree, switch: int, host: int) -> int | None:
    """Return the port towards a host below a switch, None where it is not below."""
    match tree.tier(switch):
        case Tier.CORE:
            return tree.pod_of_host(host) + 1
        case Tier.AGG if tree.position(switch)[0] == tree.pod_of_host(host):
            return tree.edge_of_host(host) % tree.half + 1
        case Tier.EDGE if switch == tree.edge_of_host(host):
            return host % tree.half + 1
    return None


def run(scenario: Scenario, horizon_ps: int = NEVER) -> Network:
    """Run a scenario to its end; raises TimeoutError where that is not by the horizon."""
    return Network(scenario).run(horizon_ps)
