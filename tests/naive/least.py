"""The least time of a run: the bytes on links, worked out link by link and instant by instant.

All data of a host cross its link, all data that leave an edge or a pod its uplinks, and all that
come to it the same links downwards. From a host go the ACKs of the data it gets, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from fattree.experiment.model import Scenario
from tests.naive import failures, traffic
from tests.naive.tree import Tree
from tests.naive.wire import NEVER, Wire


@dataclass(frozen=True)
class Link:
    """A directed link: of a host, or between switches."""

    number: int
    is_up: bool
    level: int
    is_host: bool = False


class Least:
    """A scenario's links, and the least time that its messages need on them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.tree = Tree.of(scenario)
        self.messages = [message for message in traffic.messages(scenario) if message.payloads]
        self.changes = failures.changes(scenario, self.messages)
        self.slow_links, self.slow_hosts = failures.slow(scenario)
        self.outages = failures.host_outages(scenario)

    def cct_ps(self) -> int:
        """Return the least completion time of the collective."""
        return max(self.needed_ps(*cut) for cut in self.cuts())

    def cuts(self) -> Iterator[tuple[str, int, list[Link]]]:
        """Yield who is behind a cut ("host", "edge" or "pod"), its number, and its links up."""
        tree = self.tree
        for host in range(tree.hosts):
            yield "host", host, [Link(host, True, 0, is_host=True)]
        for edge in range(tree.edges):
            yield "edge", edge, self.uplinks(edge)
        for pod in range(tree.pods):
            aggs = [tree.agg(pod, position) for position in range(tree.aggs_in_pod)]
            yield "pod", pod, [link for agg in aggs for link in self.uplinks(agg)]

    def uplinks(self, switch: int) -> list[Link]:
        level = 1 if self.tree.is_edge(switch) else 2
        count = self.tree.uplinks(switch)
        return [Link(self.tree.link_of(switch, up), True, level) for up in range(count)]

    def needed_ps(self, kind: str, number: int, links: list[Link]) -> int:
        """Return the later of when all has left, and of when all has come."""
        behind = {
            "host": lambda host: host,
            "edge": self.tree.edge_of,
            "pod": self.tree.pod_of,
        }[kind]
        ends = [(behind(flow.source), behind(flow.destination)) for flow in self.messages]
        crossing = [number in pair and pair[0] != pair[1] for pair in ends]
        times_ps = [0]
        for is_up in (True, False):
            chosen = [
                message
                for message, pair, does in zip(self.messages, ends, crossing, strict=True)
                if does and pair[0 if is_up else 1] == number
            ]
            turned = [Link(link.number, is_up, link.level, link.is_host) for link in links]
            if chosen:
                times_ps.append(self.carried_ps(chosen, turned))
        return max(times_ps)

    def carried_ps(self, messages: list[traffic.Message], links: list[Link]) -> int:
        """Return when the last message is acknowledged if links carry all they can."""
        wire = Wire(self.scenario)
        packet = wire.data_bytes + wire.gap_bytes
        times = sorted(time for time in {t for link in links for t in self.times(link)} if time > 0)
        # The gap behind the last packet on each link needs not pass, and a packet under way when a
        # link changes goes as before.
        headers = wire.data_bytes - self.scenario.packets.payload_bytes + wire.gap_bytes
        sizes = [size for message in messages for size in message.payloads]
        bytes_left = Fraction(sum(sizes) + len(sizes) * headers)
        before, after = self.ways_ps(messages, links[0])
        answered = self.answered(links[0])
        if answered:
            bytes_left += self.acks(answered) * (wire.ack_bytes + wire.gap_bytes)
            # The last one may be an ACK.
            after = min(after, sum(self.latencies(self.shortest(answered))))
        bytes_left -= len(links) * (wire.gap_bytes + packet * len(times))
        if links[0].is_host and links[0].is_up and self.scenario.transport.rate_limit:
            # A limit spaces the beginnings of packets: the last packet passes at the full rate.
            bytes_left -= wire.data_bytes - self.scenario.packets.payload_bytes + max(sizes)
        starts = [message.start_ps for message in [*messages, *answered]]
        now = Fraction(min(starts) + before)
        for until in [*times, NEVER]:
            rate = sum((self.rate(link, int(now)) for link in links), Fraction(0))
            if until > now and rate and bytes_left <= rate * (until - now):
                break
            if until > now:
                bytes_left -= rate * (until - now)
                now = Fraction(until)
        return int(now + max(bytes_left, Fraction(0)) / rate) + after - max(starts)

    def answered(self, link: Link) -> list[traffic.Message]:
        """Return the messages with ACKs that surely cross a link: a host's that never changes."""
        if not (link.is_host and link.is_up) or self.times(link):
            return []
        return [message for message in self.messages if message.destination == link.number]

    def acks(self, messages: list[traffic.Message]) -> int:
        """Return how many ACKs there are at least: a NIC in order may report all it has kept."""
        transport = self.scenario.transport
        packets_per_ack = transport.packets_per_ack + transport.reorder_packets
        return sum(-(-len(message.payloads) // packets_per_ack) for message in messages)

    def ways_ps(self, messages: list[traffic.Message], link: Link) -> tuple[int, int]:
        """Return the shortest ways to a cut, and from it to the last ACK, latencies alone."""
        hops = self.shortest(messages)
        latencies = self.latencies(hops)
        position = link.level if link.is_up else hops - 1 - link.level
        return sum(latencies[:position]), sum(latencies[position:]) + sum(latencies)

    def shortest(self, messages: list[traffic.Message]) -> int:
        return min(self.tree.hops(message.source, message.destination) for message in messages)

    def latencies(self, hops: int) -> list[int]:
        """Return the latencies of a path's links, in order."""
        levels = [min(hop, hops - 1 - hop) for hop in range(hops)]
        return [Wire(self.scenario, level).latency_ps for level in levels]

    def times(self, link: Link) -> list[int]:
        """Return when a link changes."""
        if link.is_host:
            spans = [span[1:] for span in self.outages if span[0] == link.number]
            times = [time for span in spans for time in span if time != NEVER]
        else:
            downs = [False, *(link.number in change.down for change in self.changes)]
            times = [
                change.time_ps
                for change, before, now in zip(self.changes, downs, downs[1:], strict=False)
                if before != now
            ]
        return times + [time for time, _ in self.steps(link)]

    def steps(self, link: Link) -> list[tuple[int, float]]:
        slow = self.slow_hosts if link.is_host else self.slow_links
        return slow.get((link.number, link.is_up), [])

    def rate(self, link: Link, now: int) -> Fraction:
        """Return a link's rate at a time, in bytes a picosecond."""
        share = Fraction(str([1.0, *(s for time, s in self.steps(link) if time <= now)][-1]))
        if link.is_host:
            down = any(host == link.number and a <= now < b for host, a, b in self.outages)
            limit = self.scenario.transport.rate_limit
            if link.is_up and limit:
                share = min(share, Fraction(str(limit)))
        else:
            states = [change.down for change in self.changes if change.time_ps <= now]
            down = bool(states) and link.number in states[-1]
        full = Fraction(Wire(self.scenario, link.level).rate_bps, 8 * 10**12)
        return Fraction(0) if down else full * share
