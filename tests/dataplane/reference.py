"""Every load balancer's rule as plainly as can be: the reference for the P4 programs."""

from dataclasses import dataclass, field
from fractions import Fraction
from zlib import crc32

from controller.plan import bin_thresholds
from fattree.draws import Stream, component, mix
from fattree.experiment.model import Scenario
from fattree.policies import Chooser
from fattree.routes.forwarding import Forwarding, hash_multiplier
from fattree.routes.groups import NONE
from tests.fattree.lookups import group_of


@dataclass(slots=True)
class Reference:
    """One switch; `state` may be replaced by that of a re-plan at any time.

    A destination is an edge or, at an agg, a pod.
    """

    scenario: Scenario
    switch: int
    state: Forwarding
    draws: int = 0
    cells: dict[tuple[int, int], int] = field(default_factory=dict)
    orders: dict[tuple[int, int], int] = field(default_factory=dict)
    wraps: dict[tuple[int, int], int] = field(default_factory=dict)

    def uplink(
        self, destination: int, kind: int, five_tuple: bytes, psn: int, queues: list[int]
    ) -> int | None:
        """Return the uplink of a packet of a class, None where the destination has no path."""
        group = group_of(self.state, self.switch, destination)
        if group == NONE:
            return None
        chooser = self.scenario.scheme.chooser
        slots = self.schedule(group, 0)
        match chooser:
            case Chooser.HASH:
                scaled = (
                    crc32(five_tuple) * hash_multiplier(self.scenario.seed, self.switch) % 2**32
                )
                return slots[(scaled >> 16) * len(slots) >> 16]
            case Chooser.NUMBERED:
                path = ((crc32(five_tuple) >> 8) + psn) % 2**24
                tree = self.scenario.tree
                digit = path if self.switch < tree.edges else path // tree.edge_uplinks
                return slots[digit % len(slots)]
            case Chooser.RANDOM:
                return slots[self.draw(16) * len(slots) >> 16]
            case Chooser.SHORTEST:
                return self.shortest({u: slots.count(u) for u in sorted({*slots})}, queues)
            case Chooser.BINNED:
                return self.lowest_bin(slots, queues)
            case Chooser.RESHUFFLED:
                return self.reshuffled(group)
            case Chooser.ROUND_ROBIN if self.scenario.load_balancer.rr_pointer == "shared":
                kind = 0
            case Chooser.ROTATION_SHORTEST_START if not self.cells.get((group, kind)):
                first = self.shortest(dict.fromkeys(sorted({*slots}), 1), queues)
                return self.walk(group, kind, slots, slots.index(first))
        return self.walk(group, kind, slots, self.position(group, kind, slots))

    def draw(self, bits: int) -> int:
        number = int(mix(self.scenario.seed, component(Stream.SWITCH, self.switch), self.draws))
        self.draws += 1
        return number >> (32 - bits)

    def schedule(self, group: int, order: int) -> list[int]:
        first = self.state.first_group[self.switch] + group
        return list(
            map(
                int, self.state.schedule(self.switch, int(self.state.group_schedule[first]) + order)
            )
        )

    def position(self, group: int, kind: int, slots: list[int]) -> int:
        cell = self.cells.get((group, kind), 0)
        if cell == 0:
            return int(self.state.group_start[self.state.first_group[self.switch] + group, kind])
        return cell - 1 if cell <= len(slots) else 0

    def walk(self, group: int, kind: int, slots: list[int], position: int) -> int:
        self.cells[group, kind] = (position + 1) % len(slots) + 1
        return slots[position]

    def reshuffled(self, group: int) -> int:
        """Both classes share one pointer, that of data."""
        cell = group, 0
        if not self.cells.get(cell) or self.wraps[cell] == 5:
            self.orders[cell], self.wraps[cell] = self.draw(4), 0
        slots = self.schedule(group, self.orders[cell])
        position = self.position(*cell, slots)
        self.wraps[cell] += position + 1 == len(slots)
        return self.walk(*cell, slots, position)

    def shortest(self, weights: dict[int, int], queues: list[int]) -> int:
        relative = {uplink: Fraction(queues[uplink], weight) for uplink, weight in weights.items()}
        ties = [uplink for uplink in relative if relative[uplink] == min(relative.values())]
        return ties[self.draw(16) * len(ties) >> 16]

    def lowest_bin(self, slots: list[int], queues: list[int]) -> int:
        bins = {u: sum(queues[u] >= t for t in bin_thresholds(self.scenario)) for u in {*slots}}
        candidates = sorted(u for u in slots if bins[u] == min(bins.values()))
        return candidates[self.draw(16) * len(candidates) >> 16]
