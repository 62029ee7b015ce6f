"""Every load balancer's rule, as plainly as possible: how switch or host chooses a path."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from zlib import crc32

from fattree.experiment.model import Scenario
from tests.naive.draws import WORD, Purpose, number, scaled
from tests.naive.packet import ACK, DATA, Packet, Waypoint
from tests.naive.plan import Group, Plan
from tests.naive.schemes import SCHEMES
from tests.naive.tree import Links, Tree
from tests.naive.wire import Wire

UDP, ROCE_PORT = 17, 4791
RESHUFFLE_WRAPS = 5


@dataclass(slots=True)
class Pointer:
    """A round-robin pointer: not used yet, or at the next slot.

    Switch Pkt's pointer has an order, drawn again after 5 wraparounds.
    """

    next: int | None = None
    order: int = 0
    wraps: int = RESHUFFLE_WRAPS

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
    """The load balancer of one switch: its pointers by (group, class) and its random numbers."""

    scenario: Scenario
    switch: int
    draws: int = 0
    pointers: dict[tuple[int, int], Pointer] = field(default_factory=dict)

    def uplink(self, plan: Plan, packet: Packet, queues: list[int]) -> int | None:
        """Return the uplink of a packet that must go up, None without a path.

        `queues` are the bytes at the uplinks.
        """
        if plan.scheme.chooser in ("waypoint", "segments"):
            is_edge = plan.tree.is_edge(self.switch)
            return packet.waypoint[0 if is_edge else 1] if packet.waypoint else None
        group = plan.group(self.switch, packet.destination)
        return self.choose(group, packet, queues) if group else None

    def choose(self, group: Group, packet: Packet, queues: list[int]) -> int:
        """Choose an uplink of a group's schedule."""
        slots = group.schedules[0]
        start = group.starts[packet.size_class]
        options = self.scenario.load_balancer
        match SCHEMES[self.scenario.policy].chooser:
            case "hash":
                return slots[self.hashed(packet) * len(slots) >> 16]
            case "number":
                return slots[self.path_digit(packet) % len(slots)]
            case "random":
                return slots[self.draw(16) * len(slots) >> 16]
            case "shortest":
                return self.shortest({uplink: slots.count(uplink) for uplink in slots}, queues)
            case "bins":
                return self.lowest_bin(slots, queues)
            case "reshuffled":
                return self.reshuffled(group)
            case "round robin" if options.rr_pointer == "shared":
                # One pointer for both classes, which starts where data does.
                return slots[self.pointer(group, DATA).take(group.starts[DATA], len(slots))]
            case "rotation from the shortest" if not self.has_pointer(group, packet.size_class):
                start = slots.index(self.shortest(dict.fromkeys(slots, 1), queues))
        return slots[self.pointer(group, packet.size_class).take(start, len(slots))]

    def has_pointer(self, group: Group, kind: int) -> bool:
        return (group.number, kind) in self.pointers

    def pointer(self, group: Group, kind: int) -> Pointer:
        return self.pointers.setdefault((group.number, kind), Pointer())

    def draw(self, bits: int) -> int:
        """Return the upper bits of the switch's next random number."""
        drawn = number(self.scenario.seed, Purpose.SWITCH, self.switch, self.draws)
        self.draws += 1
        return drawn >> (32 - bits)

    def hashed(self, packet: Packet) -> int:
        """Return the upper 16 bits of the flow's hash times the switch's odd number."""
        multiplier = number(self.scenario.seed, Purpose.MULTIPLIER, 0, self.switch) | 1
        return self.flow_hash(packet) * multiplier % WORD >> 16

    def flow_hash(self, packet: Packet) -> int:
        """Return the CRC of the five-tuple."""
        tree = Tree.of(self.scenario)
        five_tuple = b"".join(
            (
                address(tree, packet.source),
                address(tree, packet.destination),
                UDP.to_bytes(1, "big"),
                packet.label.to_bytes(2, "big"),
                ROCE_PORT.to_bytes(2, "big"),
            )
        )
        return crc32(five_tuple)

    def path_digit(self, packet: Packet) -> int:
        """Themis: return the digit of a path's number that a tier uses.

        An agg leaves out the edges' digit, which has as many values as an edge has uplinks.
        """
        tree = Tree.of(self.scenario)
        path = (self.flow_hash(packet) // 2**8 + packet.psn) % 2**24
        return path if tree.is_edge(self.switch) else path // tree.uplinks(0)

    def shortest(self, weights: dict[int, int], queues: list[int]) -> int:
        """Return the uplink with the fewest bytes per weight, ties at random."""
        loads = {uplink: Fraction(queues[uplink], weight) for uplink, weight in weights.items()}
        ties = sorted(uplink for uplink in loads if loads[uplink] == min(loads.values()))
        return ties[self.draw(16) * len(ties) >> 16]

    def lowest_bin(self, slots: list[int], queues: list[int]) -> int:
        """Return the uplink of a random slot among the slots with a queue in the lowest bin."""
        options = self.scenario.load_balancer
        shares = [Fraction(str(percent)) / 100 for percent in options.bins_percent]
        thresholds = [ceil(Wire(self.scenario).buffer_bytes * share) for share in shares]
        reached = {
            uplink: sum(queues[uplink] >= threshold for threshold in thresholds) for uplink in slots
        }
        tickets = sorted(uplink for uplink in slots if reached[uplink] == min(reached.values()))
        return tickets[self.draw(16) * len(tickets) >> 16]

    def reshuffled(self, group: Group) -> int:
        """Return the next uplink of a random order, of 16; both classes share the pointer."""
        pointer = self.pointer(group, DATA)
        if pointer.wraps >= RESHUFFLE_WRAPS:
            pointer.order, pointer.wraps = self.draw(4), 0
        slots = group.schedules[pointer.order]
        slot = pointer.take(group.starts[DATA], len(slots))
        pointer.wraps += slot + 1 == len(slots)
        return slots[slot]


def address(tree: Tree, host: int) -> bytes:
    """Return a host's IPv4 address, 10.pod.edge.(2 + index)."""
    edge = tree.edge_of(host) % tree.edges_in_pod
    return bytes((10, tree.pod_of(host), edge, 2 + host % tree.hosts_at_edge))


@dataclass(slots=True)
class HostPointers:
    """Host DR: one pointer per (source host, destination host, class) over the paths between them.

    Between pods a path is named by its core, in a pod by its agg, under one edge there is none.
    """

    scenario: Scenario
    pointers: dict[tuple[int, int, int], Pointer] = field(default_factory=dict)

    def waypoint(self, links: Links, packet: Packet) -> Waypoint | None:
        """Return the waypoint of a packet, None where it needs none or has no path."""
        chooser = SCHEMES[self.scenario.policy].chooser
        if chooser == "segments":
            return label_path(links.tree, packet.label)
        if chooser != "waypoint":
            return None

        tree, ends = links.tree, (packet.source, packet.destination)
        steps = links.paths(tree.edge_of(ends[0]), tree.edge_of(ends[1]))
        if not steps:
            return None

        draw = number(self.scenario.seed, Purpose.WAYPOINT, *ends)
        start = scaled(draw, len(steps))
        if packet.kind == ACK:
            start = (start + len(steps) // 2) % len(steps)
        pointer = self.pointers.setdefault((*ends, packet.kind), Pointer())
        return steps[pointer.take(start, len(steps))]


def label_path(tree: Tree, label: int) -> Waypoint:
    """MRC over SRv6: labels in a row count through an edge's uplinks, then through an agg's."""
    over_edge, over_agg = tree.uplinks(0), max(tree.uplinks(tree.edges), 1)
    paths = [(up, over) for over in range(over_agg) for up in range(over_edge)]
    return paths[label % len(paths)]
