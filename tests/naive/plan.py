"""Routes up: weights, schedules, and which destinations share a pointer (appendix F).

A plan is made for the links that the controller knows to be down. With local repair, switches also
leave out those of their own uplinks that are down.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from fattree.experiment.model import Scenario
from tests.naive.draws import Purpose, number, scaled
from tests.naive.schemes import SCHEMES
from tests.naive.tree import Links, Tree

Schedule = list[int]
RESHUFFLE_ORDERS = 16
# Numbers between the first draws of two orders; h is at most 64.
ORDER_DRAWS = 256


@dataclass(frozen=True)
class Group:
    """The owner of a pointer: its number at the switch, its schedules, the starts of data and ACKs.

    With Switch Pkt it has 16 schedules, else 1.
    """

    number: int
    schedules: list[Schedule]
    starts: tuple[int, int]


def interleaved(weights: list[int], order: list[int]) -> Schedule:
    """Return the IWRR schedule: cycle c visits, in order, the uplinks of weight c and more."""
    cycles = range(1, max(weights) + 1)
    return [uplink for cycle in cycles for uplink in order if weights[uplink] >= cycle]


def simplified(weights: list[int]) -> list[int]:
    divisor = gcd(*weights) or 1
    return [weight // divisor for weight in weights]


def small(weights: list[int]) -> list[int]:
    """Return weights halved, rounding up, until none is above 64."""
    halved = simplified(weights)
    while max(halved) > 64:
        halved = [-(-weight // 2) for weight in halved]
    return halved


@dataclass(frozen=True)
class _Part:
    """A destination as a switch sees it: the pod of its shared order, and its uplinks.

    `weights` are the weights towards its pod, `reaches` the uplinks that lead to the destination;
    `spared` are other weights for destinations behind slow links.
    """

    pod: int
    weights: list[int]
    reaches: list[bool]
    spared: list[int] | None = None

    @property
    def own_weights(self) -> list[int]:
        if self.spared is not None:
            return self.spared
        return [weight * up for weight, up in zip(self.weights, self.reaches, strict=True)]

    @property
    def is_exception(self) -> bool:
        """Whether some uplink in use towards the pod does not reach this destination."""
        return self.spared is not None or self.own_weights != self.weights


class Plan:
    """The groups of every switch, made when the switch first asks."""

    def __init__(self, scenario: Scenario, routed: Links, actual: Links) -> None:
        self.scenario = scenario
        self.scheme = SCHEMES[scenario.policy]
        self.tree = Tree.of(scenario)
        self.links = routed
        self.actual = actual
        self.tables: dict[int, dict[int, Group]] = {}

    def group(self, switch: int, host: int) -> Group | None:
        """Return the group of packets to a host that is not below the switch, None without path."""
        if switch not in self.tables:
            self.tables[switch] = dict(self.repaired(switch))
        return self.tables[switch].get(self.column(switch, host))

    def pointers(self, level: str) -> str:
        """Return the destinations of a switch's pointers: as set, else its level, or hosts with
        bundles.
        """
        options = self.scenario.load_balancer
        told = options.edge_pointers if level == "edge" else options.agg_pointers
        return told or ("host" if max(self.tree.to_agg, self.tree.to_core) > 1 else level)

    def column(self, switch: int, host: int) -> int:
        """Return the part of a destination that a switch uses: pod, edge or host."""
        tree = self.tree
        level = "edge" if tree.is_edge(switch) else "pod"
        if self.scheme.rotates:
            pointer_level = self.pointers("edge" if tree.is_edge(switch) else "pod")

            # An edge that keeps a pointer per pod still needs to know which edge to skip for.
            level = "edge" if tree.is_edge(switch) and pointer_level == "pod" else pointer_level
        return {"pod": tree.pod_of(host), "edge": tree.edge_of(host), "host": host}[level]

    def repaired(self, switch: int) -> Iterator[tuple[int, Group]]:
        """Yield the groups by column, without dead uplinks under local repair."""
        for column, group in self.grouped(switch):
            if not self.scenario.failures.local_repair:
                yield column, group
                continue

            alive = [
                [uplink for uplink in schedule if self.actual.is_up(switch, uplink)]
                for schedule in group.schedules
            ]
            if alive[0]:
                data, ack = (start if start < len(alive[0]) else 0 for start in group.starts)
                yield column, Group(group.number, alive, (data, ack))

    def grouped(self, switch: int) -> Iterator[tuple[int, Group]]:
        if not self.scheme.rotates:
            yield from self.next_hop_sets(switch)
            return

        parts = self.parts(switch)
        level = "edge" if self.tree.is_edge(switch) else "pod"
        pointer_level = self.pointers(level)
        schedules = {target: self.rotation(switch, target, part) for target, part in parts.items()}
        served = [target for target, schedule in schedules.items() if schedule]

        if (level, pointer_level) == ("edge", "pod"):
            # One pointer per schedule: the pods' come first, then the exceptions'.
            owners = {
                target: (1, target) if parts[target].is_exception else (0, parts[target].pod)
                for target in served
            }
            numbers = sorted(set(owners.values()))
            for target in served:
                group_number = numbers.index(owners[target])
                yield target, self.made(switch, group_number, [schedules[target]])
            return

        inside = {"pod": 1, "edge": self.tree.edges_in_pod, "host": self.tree.hosts_in_pod}
        copies = inside[pointer_level] // inside[level]
        for target in served:
            for column in range(target * copies, (target + 1) * copies):
                yield column, self.made(switch, column, [schedules[target]])

    def parts(self, switch: int) -> dict[int, _Part]:
        """Return the destinations that are not below a switch: edges at an edge, pods at an agg."""
        tree, links = self.tree, self.links
        uplinks, own_pod = range(tree.uplinks(switch)), tree.pod(switch)
        if tree.is_edge(switch):
            return {edge: self.part(switch, edge) for edge in range(tree.edges) if edge != switch}

        return {
            pod: _Part(
                pod,
                self.used([links.over_core(switch, up, pod) for up in uplinks]),
                [True] * len(uplinks),
            )
            for pod in range(tree.pods)
            if pod != own_pod
        }

    def part(self, switch: int, edge: int) -> _Part:
        """Return another edge as an edge sees it."""
        links, pod = self.links, self.tree.pod(edge)
        uplinks = range(self.tree.uplinks(switch))
        to_pod = [links.to_pod(switch, pod, up) for up in uplinks]
        reaches = [links.leads_down(edge, up) for up in uplinks]
        to_edge = [links.to_edge(switch, edge, up) for up in uplinks]
        filtered = [weight * up for weight, up in zip(to_pod, reaches, strict=True)]
        is_spared = self.scheme.weighted and to_edge != filtered
        return _Part(pod, self.used(to_pod), reaches, self.used(to_edge) if is_spared else None)

    def used(self, carried: list[int]) -> list[int]:
        """Return the load balancer's weights from the paths' numbers, or from their capacities."""
        if not self.scheme.weighted:
            return [int(count > 0) for count in carried]
        return small(carried) if self.links.counts_eighths else carried

    def rotation(self, switch: int, place: int, part: _Part) -> Schedule:
        """Return the schedule towards a destination.

        All destinations of a pod share a schedule; an exception leaves out uplinks that do not
        reach it. Edges have separate schedules only with an order per pointer.
        """
        if self.scenario.load_balancer.schedule_orders == "per_pointer":
            return interleaved(simplified(part.own_weights), self.order(switch, place))

        if part.spared is not None:
            return interleaved(simplified(part.spared), self.order(switch, part.pod))

        schedule = interleaved(simplified(part.weights), self.order(switch, part.pod))
        return [uplink for uplink in schedule if part.reaches[uplink]]

    def next_hop_sets(self, switch: int) -> Iterator[tuple[int, Group]]:
        """Yield one group per distinct set of (uplink, weight), numbered as they are needed."""
        numbers: dict[tuple[int, ...], int] = {}
        for target, part in self.parts(switch).items():
            weights = simplified(part.own_weights)
            if any(weights):
                group_number = numbers.setdefault(tuple(weights), len(numbers))
                schedules = [interleaved(weights, order) for order in self.orders(switch)]
                yield target, self.made(switch, group_number, schedules)

    def made(self, switch: int, group: int, schedules: list[Schedule]) -> Group:
        """Return a group with its random starts, half a schedule apart (our choice)."""
        length = len(schedules[0])
        draw = number(self.scenario.seed, Purpose.START, switch, group)
        data = scaled(draw, length)
        return Group(group, schedules, (data, (data + length // 2) % length))

    def orders(self, switch: int) -> list[list[int]]:
        """Return the orders of a next-hop set's schedules.

        Switch Pkt's orders are rotations of random ones, as evenly spaced as possible, so that each
        slot has each uplink equally often.
        """
        if self.scheme.chooser != "reshuffled":
            return [self.order(switch, 0)]

        uplinks = self.tree.uplinks(switch)
        step = max(1, uplinks // RESHUFFLE_ORDERS)
        rotations = []
        for count in range(RESHUFFLE_ORDERS):
            base, turn = self.order(switch, count // uplinks), count % uplinks * step % uplinks
            rotations.append(base[turn:] + base[:turn])
        return rotations

    def order(self, switch: int, which: int) -> list[int]:
        """Return a random order of the uplinks: it depends on the seed, never on failures."""
        uplinks = range(self.tree.uplinks(switch))
        if not self.scheme.shuffled:
            return list(uplinks)

        draws = [
            number(self.scenario.seed, Purpose.ORDER, switch, which * ORDER_DRAWS + uplink)
            for uplink in uplinks
        ]
        return sorted(uplinks, key=draws.__getitem__)
