"""Every load balancer's rule as plainly as it can be written, for `tests.naive`: how a switch or a
host chooses a packet's path.

Groups, schedules and starts come from `fattree.forwarding`; how a packet gets its slot is written
here again.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from zlib import crc32

from fattree.addressing import host_ip
from fattree.draws import Stream, below, component, mix
from fattree.experiment import Scenario
from fattree.forwarding import NONE, Forwarding, hash_multiplier
from fattree.policies import Chooser
from fattree.topology import FatTree, Tier
from fattree.wecmp import LinkState

DATA, ACK = 0, 1
UDP, ROCE_PORT = 17, 4791
Waypoint = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Packet:
    """`held`: with SACK, the packet numbers that the receiver holds.

    `waypoint`: Host DR's (agg position, core index).
    """

    flow: int
    psn: int
    source: int
    destination: int
    kind: int
    label: int
    marked: bool = False
    held: frozenset[int] = frozenset()
    waypoint: Waypoint | None = None


@dataclass(slots=True)
class Pointer:
    """A round-robin pointer: not used yet, or at the next slot.

    Switch Pkt's has an order, drawn again after 5 wraparounds.
    """

    next: int | None = None
    order: int = 0
    wraps: int = 5

    def take(self, start: int, length: int) -> int:
        """Return the slot to use, and advance.

        A pointer beyond the end of a new schedule restarts at 0.
        """
        slot = start if self.next is None else self.next
        if slot >= length:
            slot = 0
        self.next = (slot + 1) % length
        return slot


@dataclass(slots=True)
class Balancer:
    """The load balancer of one switch: its pointers by (local group, class) and its random numbers."""

    scenario: Scenario
    switch: int
    draws: int = 0
    pointers: dict[tuple[int, int], Pointer] = field(default_factory=dict)

    def uplink(self, plan: Forwarding, packet: Packet, queues: list[int]) -> int | None:
        """Return the uplink of a packet that must go up, None without a path.

        `queues` are the bytes at the uplinks.
        """
        if self.scenario.scheme.chooser is Chooser.WAYPOINT:
            is_edge = self.scenario.tree.tier(self.switch) is Tier.EDGE
            return packet.waypoint[0 if is_edge else 1] if packet.waypoint else None
        group = plan.group_towards(self.switch, packet.destination)
        return None if group == NONE else self.choose(plan, group, packet, queues)

    def choose(self, plan: Forwarding, group: int, packet: Packet, queues: list[int]) -> int:
        slots = self.schedule(plan, group)
        match self.scenario.scheme.chooser:
            case Chooser.HASH:
                return slots[self.hashed(packet) * len(slots) >> 16]
            case Chooser.RANDOM:
                return slots[self.draw(16) * len(slots) >> 16]
            case Chooser.SHORTEST:
                return self.shortest({uplink: slots.count(uplink) for uplink in slots}, queues)
            case Chooser.BINNED:
                return self.lowest_bin(slots, queues)
            case Chooser.RESHUFFLED:
                return self.reshuffled(plan, group)
            case Chooser.ROTATION_SHORTEST_START if (group, packet.kind) not in self.pointers:
                start = slots.index(self.shortest(dict.fromkeys(slots, 1), queues))
            case _:
                start = self.start(plan, group, packet.kind)
        return slots[self.pointer(group, packet.kind).take(start, len(slots))]

    def schedule(self, plan: Forwarding, group: int, order: int = 0) -> list[int]:
        schedule = plan.group_schedule[plan.groups(self.switch)[group]]
        return [int(uplink) for uplink in plan.schedule(self.switch, schedule + order)]

    def start(self, plan: Forwarding, group: int, kind: int) -> int:
        return int(plan.group_start[plan.groups(self.switch)[group], kind])

    def pointer(self, group: int, kind: int) -> Pointer:
        return self.pointers.setdefault((group, kind), Pointer())

    def draw(self, bits: int) -> int:
        """Return the upper bits of the switch's next random number."""
        number = mix(self.scenario.seed, component(Stream.SWITCH, self.switch), self.draws)
        self.draws += 1
        return int(number) >> (32 - bits)

    def hashed(self, packet: Packet) -> int:
        """Return the upper 16 bits of the CRC of the five-tuple times the switch's odd number."""
        source, destination = (
            host_ip(self.scenario.tree, host) for host in (packet.source, packet.destination)
        )
        fields = ((source, 4), (destination, 4), (UDP, 1), (packet.label, 2), (ROCE_PORT, 2))
        five_tuple = b"".join(value.to_bytes(size, "big") for value, size in fields)
        return crc32(five_tuple) * hash_multiplier(self.scenario.seed, self.switch) % 2**32 >> 16

    def shortest(self, weights: dict[int, int], queues: list[int]) -> int:
        """Return the uplink with the fewest bytes per weight, ties at random."""
        loads = {uplink: Fraction(queues[uplink], weight) for uplink, weight in weights.items()}
        ties = sorted(uplink for uplink in loads if loads[uplink] == min(loads.values()))
        return ties[self.draw(16) * len(ties) >> 16]

    def lowest_bin(self, slots: list[int], queues: list[int]) -> int:
        """Return the uplink of a random slot among those whose queue has reached the fewest
        thresholds.
        """
        shares = [
            Fraction(str(percent)) / 100 for percent in self.scenario.load_balancer.bins_percent
        ]
        thresholds = [ceil(self.scenario.threshold_bytes * share) for share in shares]
        reached = {
            uplink: sum(queues[uplink] >= threshold for threshold in thresholds) for uplink in slots
        }
        tickets = sorted(uplink for uplink in slots if reached[uplink] == min(reached.values()))
        return tickets[self.draw(16) * len(tickets) >> 16]

    def reshuffled(self, plan: Forwarding, group: int) -> int:
        """Walk one of 16 orders, one pointer for both classes."""
        pointer = self.pointer(group, DATA)
        if pointer.wraps >= 5:
            pointer.order, pointer.wraps = self.draw(4), 0
        slots = self.schedule(plan, group, pointer.order)
        slot = pointer.take(self.start(plan, group, DATA), len(slots))
        pointer.wraps += slot + 1 == len(slots)
        return slots[slot]


@dataclass(slots=True)
class HostPointers:
    """Host DR: one pointer per (source host, destination host, class) over the waypoints between
    them.
    """

    scenario: Scenario
    pointers: dict[tuple[int, int, int], Pointer] = field(default_factory=dict)

    def waypoint(self, links: LinkState, packet: Packet) -> Waypoint | None:
        """Return the waypoint of a packet, None where it needs none or has no path."""
        steps = waypoints(self.scenario.tree, links, packet.source, packet.destination)
        if self.scenario.scheme.chooser is not Chooser.WAYPOINT or not steps:
            return None
        start = below(
            mix(self.scenario.seed, component(Stream.WAYPOINT, packet.source), packet.destination),
            len(steps),
        )
        if packet.kind == ACK:
            start = (start + len(steps) // 2) % len(steps)
        pointer = self.pointers.setdefault(
            (packet.source, packet.destination, packet.kind), Pointer()
        )
        return steps[pointer.take(start, len(steps))]


def waypoints(tree: FatTree, links: LinkState, source: int, destination: int) -> list[Waypoint]:
    """Return the (agg position, core index) that join two hosts, in order.

    Inside a pod the index says nothing.
    """
    h, edges = tree.half, (tree.edge_of_host(source), tree.edge_of_host(destination))
    if edges[0] == edges[1]:
        return []
    if edges[0] // h == edges[1] // h:
        return [(agg, 0) for agg in range(h) if all(links.edge_agg[edge, agg] for edge in edges)]
    steps = [(step % h, step // h) for step in range(h * h)]
    return [
        (agg, core)
        for agg, core in steps
        if all(reaches(links, h, edge, agg, core) for edge in edges)
    ]


def reaches(links: LinkState, h: int, edge: int, agg: int, core: int) -> bool:
    return bool(links.edge_agg[edge, agg] and links.agg_core[edge // h * h + agg, core])
