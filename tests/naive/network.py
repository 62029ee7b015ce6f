"""One heap of events: packets travel, links fail, routes follow."""

from collections import defaultdict
from dataclasses import replace
from functools import cache, partial
from heapq import heapify, heappop, heappush
from typing import Any

from fattree.experiment.model import Scenario
from tests.naive import draws, failures, traffic
from tests.naive.balancers import Balancer, HostPointers
from tests.naive.events import Kind
from tests.naive.host import Flow, Host
from tests.naive.label_rules import label_rule, lasts
from tests.naive.labels import LabelRule, Watch
from tests.naive.packet import ACK, DATA, Packet
from tests.naive.plan import Plan
from tests.naive.planes import Planes
from tests.naive.port import Passage, Port
from tests.naive.schemes import SCHEMES
from tests.naive.senders import recovery
from tests.naive.sharing import Memory
from tests.naive.standstill import Standstill, moved_ps
from tests.naive.tree import Down, Links, Place, Tree
from tests.naive.wire import NEVER, PS_PER_NS, Wire

NOTHING: Down = frozenset()


class Network:
    """One run of a scenario: `run` it once, then read its flows, ports, hosts and counts."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.tree = Tree.of(scenario)
        self.wire = Wire(scenario)
        self.cables = self.tree.cables()

        self.messages = traffic.messages(scenario)
        self.changes = failures.changes(scenario, self.messages)
        self.slow, self.slow_hosts = failures.slow(scenario)
        self.hosts = [
            Host(host, Port(self.wire, self.slow_wires(self.slow_hosts, 0, host, up=True)))
            for host in range(self.tree.hosts)
        ]
        machines = self.tree.hosts // (scenario.fabric.planes or 1)
        for host in self.hosts:
            host.nics = self.hosts[host.number % machines :: machines]
        self.flows = self._flows()
        self._pace_nics()
        self.unfinished = {flow.number for flow in self.flows}

        self.balancers = [Balancer(scenario, switch) for switch in range(self.tree.switches)]
        self.host_pointers = HostPointers(scenario)
        wires = [Wire(scenario, level) for level in range(3)]
        self.ports = {
            (switch, port): Port(wires[self.tree.level(switch, port)], self.slow_at(switch, port))
            for switch in range(self.tree.switches)
            for port in range(1, self.tree.first_uplink(switch) + self.tree.uplinks(switch))
        }
        self.beside: defaultdict[int, list[Place]] = defaultdict(list)
        for switch_port in self.ports:
            self.beside[switch_port[0]].append(switch_port)
        # Of the scenario, by its bytes.
        self.memory = cache(partial(Memory.of, scenario))
        # The number of each outgoing link among those of all switches.
        self.directed = {switch_port: number for number, switch_port in enumerate(self.ports)}

        self.host_outages = failures.host_outages(scenario)
        if scenario.fabric.plane_use == "draw":
            Planes.give(scenario, self.hosts[:machines], self.host_outages)
        self.link_losses, self.host_losses = failures.losses(scenario)
        self.sent = self.received = self.unrouted = 0
        self.events: list[tuple[int, int, int, int, int, Any]] = []
        self.pushed = 0
        self.now_ps = self.learnt_ps = 0
        self.standstill = Standstill()
        self.failed = NOTHING
        self.lags = failures.lags(scenario)
        # The last change that the switches with each lag have followed.
        self.routed = dict.fromkeys(self.lags, failures.Change(0, NOTHING))
        self.route()

    def _flows(self) -> list[Flow]:
        """Return the scenario's flows, and give each to its host."""
        paces = traffic.paces(self.scenario, self.messages, self.links_at_start())

        flows = []
        of_pairs: dict[tuple[int, int], LabelRule] = {}
        for number, (message, pace) in enumerate(zip(self.messages, paces, strict=True)):
            hops = self.tree.hops(message.source, message.destination)
            packets = len(message.payloads)
            sender = recovery(self.scenario, number, packets, pace.gap_ps, hops)
            labels = label_rule(self.scenario, number, sender)
            if lasts(self.scenario):
                pair = message.source, message.destination
                labels = of_pairs.setdefault(pair, labels)
            flow = Flow(
                number=number,
                source=message.source,
                destination=message.destination,
                payloads=message.payloads,
                payload_bytes=self.scenario.packets.payload_bytes,
                phase_ps=pace.phase_ps,
                sender=sender,
                labels=labels,
                watch=Watch(sender.memory, sender.timer),
                waits_for=set(message.waits_for),
                reports_holdings=self.scenario.transport.recovery == "sack",
                in_order=self.scenario.transport.recovery == "go_back_n",
                keeps=self.scenario.transport.reorder_packets,
                patience_ps=round(
                    self.scenario.transport.reorder_timeout_rtt
                    * Wire(self.scenario).zero_load_rtt_ps
                ),
                is_in_graph=bool(self.scenario.jobs) or self.scenario.collective.is_graph,
                compute_ps=message.compute_ps,
                packets_per_ack=self.scenario.transport.packets_per_ack,
                tells_share=traffic.tells_shares(self.scenario),
                round_trip_ps=Wire(self.scenario).zero_load_rtt_ps,
            )
            is_active = traffic.is_active(self.scenario)
            sender.pacer.is_whole = message.is_whole and is_active
            flows.append(flow)
            self.hosts[message.source].flows.append(flow)
        return flows

    def _pace_nics(self) -> None:
        links = self.links_at_start()
        sizes = {self.wire.data_bytes, self.wire.ack_bytes}
        sizes |= {self.wire.size(m.payloads[-1]) for m in self.messages if m.payloads}
        for host in self.hosts:
            host.kept_ps = {size: traffic.kept_ps(self.scenario, size) for size in sizes}
            host.between_ps = {
                size: traffic.between_ps(self.scenario, self.messages, links, size)
                for size in sizes
            }

    def links_at_start(self) -> Links:
        at_start = [change.down for change in self.changes if change.time_ps == 0]
        return Links(self.tree, at_start[0] if at_start else NOTHING)

    @property
    def end_ps(self) -> int:
        """Return when the last flow was done, NEVER while a flow is not."""
        return NEVER if self.unfinished else max(flow.done_ps for flow in self.flows)

    @property
    def cct_ps(self) -> int:
        """Return the collective's completion time, from each flow's planned start."""
        ends = zip(self.flows, self.messages, strict=True)
        return NEVER if self.unfinished else max(f.done_ps - m.start_ps for f, m in ends)

    @property
    def in_flight(self) -> int:
        return sum(event[1] is Kind.ARRIVE for event in self.events)

    def run(self, horizon_ps: int = NEVER, gives_up: bool = True) -> "Network":
        """Run until the last flow is done, all of that instant included.

        Raises TimeoutError if that is not by the horizon, or if it stands still for good.
        """
        for change in self.changes:
            self.at(change.time_ps, Kind.LINKS, 0, 0, change.down)
        for change in failures.routes(self.scenario, self.changes):
            # Routes that are known at the start are there at all switches.
            for lag_ps in {*self.lags}:
                time_ps = change.time_ps + (lag_ps if change.time_ps else 0)
                self.at(time_ps, Kind.ROUTES, 0, 0, (change, lag_ps))
        for flow in self.flows:
            if not flow.waits_for:
                self.hosts[flow.source].start(flow, self.messages[flow.number].start_ps)
        for host in self.hosts:
            self.wake(host, 0)

        while self.events and self.events[0][0] <= min(self.end_ps, horizon_ps):
            self.happen(*heappop(self.events))
            if gives_up and self.stands_still(self.now_ps):
                raise TimeoutError(f"no progress since {moved_ps(self)} ps")
        if self.end_ps > horizon_ps or self.end_ps == NEVER:
            raise TimeoutError(f"{len(self.unfinished)} flows are not done")
        return self

    def stands_still(self, now_ps: int) -> bool:
        """Return whether the run is stuck for good."""
        return self.standstill.is_there(self, now_ps)

    def at(self, time_ps: int, kind: int, node: int, port: int = 0, subject: Any = None) -> None:
        """Schedule an event; events at equal times happen in the order of kind, node and port."""
        self.pushed += 1
        heappush(self.events, (time_ps, kind, node, port, self.pushed, subject))

    def happen(
        self, now_ps: int, kind: int, node: int, _port: int, _pushed: int, subject: Any
    ) -> None:
        self.now_ps = now_ps
        if kind is Kind.ARRIVE:
            # It may have given way since this was foreseen.
            packet, passage, latency_ps = subject
            if passage.departure_ps + latency_ps > now_ps:
                self.at(passage.departure_ps + latency_ps, kind, node, _port, subject)
                return
            subject = packet
        match kind:
            case Kind.LINKS:
                self.failed = subject
                self.route()
            case Kind.ROUTES:
                change, lag_ps = subject
                self.routed[lag_ps] = change
                self.route()
            case Kind.ARRIVE if node < self.tree.switches:
                self.forward(node, subject, now_ps)
            case Kind.ARRIVE:
                self.receive(self.hosts[node - self.tree.switches], subject, now_ps)
            case Kind.SEND:
                self.send(self.hosts[node], now_ps)

    def route(self) -> None:
        """Plan for the links that are known to be down."""
        actual = Links(self.tree, self.failed)
        self.plans = {}
        for lag_ps, change in self.routed.items():
            routed = Links(self.tree, change.down, dict(change.slow))
            if SCHEMES[self.scenario.policy].chooser == "segments":
                routed = Links(self.tree, NOTHING)
            self.plans[lag_ps] = Plan(self.scenario, routed, actual)

    def plan_of(self, switch: int) -> Plan:
        return self.plans[self.lags[switch]]

    @property
    def plan_of_hosts(self) -> Plan:
        """Return the plan of hosts that choose paths: they learn with the last switch."""
        return self.plans[max(self.lags)]

    def slow_at(self, switch: int, port: int) -> list[tuple[int, Wire]]:
        """Return the rates of a slow link behind a switch's port, each with its time."""
        near, level = (switch, port), self.tree.level(switch, port)
        if near not in self.cables:
            return self.slow_wires(self.slow_hosts, level, self.host_at(near), up=False)
        is_up = port >= self.tree.first_uplink(switch)
        return self.slow_wires(self.slow, level, self.tree.link(near, self.cables[near]), up=is_up)

    def slow_wires(
        self, shares: failures.Shares, level: int, number: int, up: bool
    ) -> list[tuple[int, Wire]]:
        steps = shares.get((number, up), [])
        return [(since, Wire(self.scenario, level, share)) for since, share in steps]

    def wake(self, host: Host, now_ps: int) -> None:
        wake_ps = host.wake_ps(now_ps)
        if wake_ps != NEVER:
            self.at(wake_ps, Kind.SEND, host.number)

    def wake_all(self, host: Host, now_ps: int) -> None:
        """Wake a machine: an end at any of its NICs may start flows at others."""
        if host.planes:
            next_ps = host.planes.next_ps(now_ps)
            if next_ps < NEVER:
                self.at(next_ps, Kind.SEND, host.nics[0].number)
            return
        for nic in host.nics:
            self.wake(nic, now_ps)

    def send(self, host: Host, now_ps: int) -> None:
        """Put a packet on a host's link, if the link is free and a packet is ready.

        Computations that are over by now end before.
        """
        before = len(self.unfinished)
        while over := [flow for nic in host.nics for flow in nic.finish(now_ps)]:
            self.unfinished -= {flow.number for flow in over}
            if host.planes:
                host.planes.event_ps = now_ps

        host, packet = self.next_of(host, now_ps)
        if packet is None:
            if len(self.unfinished) < before:
                self.wake_all(host, now_ps)
            return

        self.sent += 1
        passage = host.link.put(now_ps, self.size(packet))
        edge, index = divmod(host.number, self.tree.hosts_at_edge)
        waypoint = self.host_pointers.waypoint(self.plan_of_hosts.links, packet)
        packet = replace(packet, waypoint=waypoint)
        threshold = self.host_losses.get(host.number, 0)
        unlucky = self.is_unlucky(host.link, threshold, self.uplink(host))
        if unlucky or self.is_cut(host.number, passage.start_ps):
            host.link.lost += 1
        else:
            self.arrive_later((edge, index + 1), packet, passage, self.wire.latency_ps)
        self.wake_all(host, now_ps)

    def next_of(self, host: Host, now_ps: int) -> tuple[Host, Packet | None]:
        """Return the packet that leaves now, None if none does, and its NIC."""
        if not host.planes:
            return host, host.next_packet(now_ps) if host.idle_ps <= now_ps else None
        before = host.planes.moves
        nic, packet = host.planes.next_packet(now_ps)
        # A flow has moved, and its next packet may wait for another NIC now.
        if packet is None and host.planes.moves > before:
            self.wake_all(host, now_ps)
        return nic, packet

    def receive(self, host: Host, packet: Packet, now_ps: int) -> None:
        self.received += 1
        flow = self.flows[packet.flow]
        before = flow.sender.acked
        if host.planes:
            host.planes.event_ps = now_ps
        host.take(packet, flow, now_ps)
        if flow.sender.acked > before:
            self.learnt_ps = now_ps
        if flow.done_ps != NEVER:
            self.unfinished.discard(flow.number)
        self.wake_all(host, now_ps)

    def arrive_later(self, place: Place, packet: Packet, passage: Passage, latency_ps: int) -> None:
        foreseen_ps = passage.departure_ps + latency_ps
        self.at(foreseen_ps, Kind.ARRIVE, *place, (packet, passage, latency_ps))

    def foresee_anew(self) -> None:
        """Move arrivals to an earlier time where packets leave earlier than computed before."""
        # A packet that gives way at a slow link may be sent when it is fast again. Later arrivals
        # see to that themselves (`happen`).
        for number, (time_ps, kind, *rest, subject) in enumerate(self.events):
            if kind is Kind.ARRIVE:
                _, passage, latency_ps = subject
                time_ps = min(time_ps, passage.departure_ps + latency_ps)
                self.events[number] = (time_ps, kind, *rest, subject)
        heapify(self.events)

    def size(self, packet: Packet) -> int:
        is_long = packet.kind == DATA and not packet.trimmed
        return self.wire.size(packet.payload) if is_long else self.wire.ack_bytes

    def forward(self, switch: int, packet: Packet, now_ps: int) -> None:
        """Send a packet down where its destination is below, else up as the balancer chooses."""
        plan = self.plan_of(switch)
        port = plan.links.port_down(switch, packet.destination)
        if port is None:
            uplink = self.balancers[switch].uplink(plan, packet, self.queues(switch, now_ps))
            if uplink is None:
                self.unrouted += 1
                return
            port = self.tree.first_uplink(switch) + uplink
        self.enqueue((switch, port), packet, now_ps)

    def queues(self, switch: int, now_ps: int) -> list[int]:
        """Return the bytes at a switch's uplinks, as old as the scenario sets."""
        first = self.tree.first_uplink(switch)
        uplinks = [
            self.ports[switch, first + uplink] for uplink in range(self.tree.uplinks(switch))
        ]
        stale_ps = round(self.scenario.load_balancer.queue_staleness_ns * PS_PER_NS)
        if not stale_ps:
            return [port.bytes_at(now_ps) for port in uplinks]
        return [port.stale_bytes_at(now_ps // stale_ps * stale_ps) for port in uplinks]

    def enqueue(self, place: Place, packet: Packet, now_ps: int) -> None:
        """Drop or trim, mark, queue and transmit a packet at a switch's port."""
        port = self.ports[place]
        waiting = port.bytes_at(now_ps)
        can_be = packet.size_class == DATA and not packet.marked
        is_marked = can_be and self.marks(place[0], waiting)
        is_full = waiting + self.size(packet) > self.room(place, now_ps)
        # A packet that is no longer than a cut packet cannot be cut.
        is_long = self.size(packet) > self.wire.ack_bytes
        is_cut = is_full and is_long and self.scenario.transport.trimming
        is_first = packet.kind == ACK and self.scenario.transport.acks_first
        hurries = packet.trimmed or is_cut or is_first
        if hurries:
            # Cut packets, and NACKs of them, have a queue of their own, as long as the other.
            is_full = port.hurried_bytes_at(now_ps) + self.wire.ack_bytes > self.wire.queue_bytes
        if is_cut:
            port.trims += not is_full
            packet = replace(packet, trimmed=True)
        if is_full:
            port.drops += 1
            return

        if is_marked:
            port.marks += 1
            packet = replace(packet, marked=True)
        size = self.size(packet)
        passage = port.hurry(now_ps, size) if hurries else port.put(now_ps, size)
        if hurries and port.is_ahead:
            self.foresee_anew()
        unlucky = self.is_unlucky(port, self.threshold(place), self.directed[place])
        if unlucky or self.is_down(place, passage.start_ps):
            port.lost += 1
            return

        far = self.cables.get(place, (self.tree.switches + self.host_at(place), 0))
        self.arrive_later(far, packet, passage, port.wire.latency_ps)

    def room(self, place: Place, now_ps: int) -> int:
        """Return how many bytes may wait at a port."""
        if self.scenario.fabric.buffer == "static":
            return self.wire.queue_bytes
        beside = self.beside[place[0]]
        memory = self.memory(len(beside) * self.wire.queue_bytes)
        held = sum(self.ports[port].bytes_at(now_ps) for port in beside)
        return memory.most(self.ports[place].bytes_at(now_ps), held)

    def marks(self, switch: int, waiting: int) -> bool:
        """Return whether a switch marks a data packet at this queue length, perhaps by a draw."""
        if waiting <= self.wire.ecn_bytes:
            return False
        if waiting > self.wire.full_ecn_bytes:
            return True
        return self.balancers[switch].draw(16) < self.wire.chance(waiting)

    def is_down(self, place: Place, start_ps: int) -> bool:
        """Return whether the link behind a port is down when a transmission starts."""
        if place not in self.cables:
            return self.is_cut(self.host_at(place), start_ps)
        before = [change.down for change in self.changes if change.time_ps <= start_ps]
        return bool(before) and self.tree.link(place, self.cables[place]) in before[-1]

    def is_cut(self, host: int, start_ps: int) -> bool:
        """Return whether a host's link is down when a transmission starts."""
        return any(
            of == host and since <= start_ps < until for of, since, until in self.host_outages
        )

    def host_at(self, place: Place) -> int:
        switch, number = place
        return switch * self.tree.hosts_at_edge + number - 1

    def threshold(self, place: Place) -> int:
        """Return how many of 2**32 packets the link behind a port loses."""
        if place in self.cables:
            return self.link_losses.get(self.tree.link(place, self.cables[place]), 0)
        return self.host_losses.get(self.host_at(place), 0)

    def is_unlucky(self, port: Port, threshold: int, directed: int) -> bool:
        """Return whether the packet that a port has accepted last is lost at random."""
        if threshold == 0:
            return False
        count = port.packets - 1
        drawn = draws.number(self.scenario.seed, draws.Purpose.LOSS, directed, count)
        return drawn < threshold

    def uplink(self, host: Host) -> int:
        """Return the number of a host's outgoing link, after those of all switches."""
        return len(self.ports) + host.number


def run(scenario: Scenario, horizon_ps: int = NEVER, gives_up: bool = True) -> Network:
    """Run a scenario to its end; raises TimeoutError where that is not by the horizon."""
    return Network(scenario).run(horizon_ps, gives_up)
