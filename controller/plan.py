"""The entries of every switch, from `fattree.routes.forwarding`: routes, schedules and settings.

A plan names schedules by their place in the forwarding arrays; `reconcile` chooses their ids on the
switch. A program gets entries only for its own tables, so a user's program needs no change here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.entries import Call, Entries, Key, Prefix
from controller.errors import PlanError
from controller.pipeline import Pipeline
from controller.routes import (
    destination_prefix,
    southbound,
    southbound_count,
    waypoint_count,
    ways_to_waypoints,
)
from fattree.experiment.model import Scenario
from fattree.policies import RESHUFFLE_WRAPS, Chooser
from fattree.routes.forwarding import Forwarding, hash_multiplier
from fattree.routes.groups import NONE, PointerLevel, destinations
from fattree.routes.southbound import has_choice
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import switch_name, waypoint_addresses
from fattree.shape.segments import BLOCK, DECAPSULATION, adjacency
from fattree.shape.topology import Tier

# IEEE 802's local experimental EtherType 1, of probes of links (`controller.liveness`).
PROBE_ETHERTYPE = 0x88B5
# The number of aggs and cores among edges (include/between_edges.p4).
NO_EDGE = 0xFFFF
# The `scheme` of adaptive.p4's set_quanta; the other programs have no table for it.
SCHEMES = {Chooser.RANDOM: 0, Chooser.SHORTEST: 1, Chooser.BINNED: 2}

# The schedules that a group walks, one sequence of uplinks each, as bytes: they are compared and
# looked up by content, and an uplink fits into a byte.
Block: TypeAlias = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The target of a northbound prefix: two pointers, their block of schedules, their starts."""

    number: int
    block: int
    data_start: int
    ack_start: int


@dataclass(frozen=True, slots=True, eq=False)
class SwitchPlan:
    """The entries that one switch should have, made from the forwarding arrays on demand.

    Plans of one switch are equal if their rows of the forwarding are equal.
    """

    planner: "Planner"
    forwarding: Forwarding
    switch: int

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SwitchPlan)
            and (self.planner.scenario is other.planner.scenario and self.switch == other.switch)
            and (
                self.forwarding is other.forwarding
                or (
                    (not self.is_balancing or _same_rows(self, other))
                    and (not self.has_moving_ports or self.ports == other.ports)
                )
            )
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_balancing(self) -> bool:
        """Return whether the switch has a choice to make."""
        # A core or a spine has one way to each host, and a header that hosts put in front names the
        # way.
        return (
            self.planner.tree.uplinks(self.switch) > 0
            and not self.planner.scenario.scheme.outer_bytes
        )

    @property
    def has_moving_ports(self) -> bool:
        """Return whether failures change `ports`: those of parallel links down."""
        return has_choice(self.planner.tree, self.switch) and not self.is_static

    @property
    def is_static(self) -> bool:
        """Return whether failures change nothing: hosts find out about them (MRC over SRv6)."""
        return self.planner.scenario.scheme.chooser is Chooser.SEGMENTS

    @property
    def ports(self) -> Mapping[Prefix, int]:
        """Return the routes that lead to a port: south, and to waypoints."""
        tree = self.planner.tree
        links = LinkState.without(tree) if self.is_static else self.forwarding.links
        ports = dict(southbound(tree, links, self.switch))
        if self.planner.scenario.scheme.chooser is Chooser.WAYPOINT:
            ports.update(ways_to_waypoints(tree, self.switch))

        return ports

    @property
    def port_count(self) -> int:
        """Return how many `ports` there are."""
        # Counted, not made: whether a plan fits is asked for every switch at every re-plan.
        tree = self.planner.tree
        south = southbound_count(tree, self.switch)
        if self.planner.scenario.scheme.chooser is not Chooser.WAYPOINT:
            return south

        return south + waypoint_count(tree, self.switch)

    @property
    def groups(self) -> Mapping[Prefix, Group]:
        """Return the routes that lead north."""
        pairs = zip(self.prefixes, self.group_rows().T.tolist(), strict=True)
        return {prefix: Group(*row) for prefix, row in pairs if row[0] != NONE}

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Return the groups' blocks: a schedule each, or 16 of equal length for Switch Pkt."""
        return _blocks(self.forwarding, self.switch) if self.is_balancing else ()

    @property
    def settings(self) -> Entries:
        """Return all other entries."""
        return self.planner.settings(self.switch)

    @property
    def prefixes(self) -> tuple[Prefix, ...]:
        """Return the prefix of each destination that `group_rows` has."""
        if not self.is_balancing:
            return ()

        columns = self.forwarding.columns
        return self.planner.prefixes(
            columns.edge if self.switch < self.planner.tree.edges else columns.agg
        )

    def group_rows(self) -> NDArray[np.int32]:
        """Return (number, block, data start, ACK start) of each destination's group.

        The shape is (4, destinations); a destination without a group has NONE.
        """
        state = self.forwarding
        edges = self.planner.tree.edges
        if not self.is_balancing:
            return np.zeros((4, 0), dtype=np.int32)

        local = (
            state.edge_group[self.switch]
            if self.switch < edges
            else state.agg_group[self.switch - edges]
        )

        # A switch that reaches no host through its uplinks has no groups, and `take` no row.
        first, last = state.first_group[self.switch : self.switch + 2].tolist()
        if first == last:
            return np.full((4, len(local)), NONE, dtype=np.int32)

        # A block's schedules are consecutive, so the number of the first schedule gives the block.
        block = state.group_schedule[first:last] // state.orders
        of_groups = np.stack(
            [np.arange(last - first, dtype=np.int32), block, *state.group_start[first:last].T]
        )

        # NONE is -1: clipped to some group for now, and put back in the next line.
        rows: NDArray[np.int32] = of_groups.take(local, axis=1, mode="clip")
        rows[:, local == NONE] = NONE

        return rows


def _same_rows(first: SwitchPlan, second: SwitchPlan) -> bool:
    pairs = zip(
        _rows(first.forwarding, first.switch), _rows(second.forwarding, second.switch), strict=True
    )
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def _rows(state: Forwarding, switch: int) -> Iterator[NDArray[Any]]:
    """Yield all rows of a forwarding for one edge or agg, the cheapest first."""
    # Comparing ends at the first difference, and a lost link nearly always shows in the lengths.
    first, last = state.first_schedule[switch : switch + 2].tolist()
    offsets = state.schedule_offset[first : last + 1]
    yield np.diff(offsets)
    yield state.slots[offsets[0] : offsets[-1]]
    edges = len(state.edge_group)
    yield state.edge_group[switch] if switch < edges else state.agg_group[switch - edges]
    groups = slice(*state.first_group[switch : switch + 2].tolist())
    yield state.group_schedule[groups]
    yield state.group_start[groups]


class Planner:
    """Makes the plans of a scenario's switches for one program.

    Raises PlanError if the program's tables are too small.
    """

    def __init__(self, scenario: Scenario, pipeline: Pipeline) -> None:
        self.scenario = scenario
        self.tree = scenario.tree
        self._tables = frozenset(pipeline.tables)
        self._pipeline = pipeline
        self.max_uplinks = pipeline.max_uplinks
        self._prefixes: dict[PointerLevel, tuple[Prefix, ...]] = {}
        self._shared_settings = dict(_shared_settings(scenario))
        most_uplinks = self.tree.most_uplinks

        # P4 has no loops: a program that compares queues is written out for so many uplinks.
        if self.max_uplinks is not None and self.max_uplinks < most_uplinks:
            raise PlanError(
                f"the program compares {self.max_uplinks} uplinks, "
                f"{self.tree.label} has {most_uplinks}:"
                f" compile it with -D MAX_UPLINKS={1 << (most_uplinks - 1).bit_length()}"
            )

    def plan(self, forwarding: Forwarding, switch: int) -> SwitchPlan:
        """Return the plan of a switch under `forwarding`."""
        return SwitchPlan(self, forwarding, switch)

    def prefixes(self, level: PointerLevel) -> tuple[Prefix, ...]:
        """Return the prefixes of all pods, edges or hosts."""
        if level not in self._prefixes:
            self._prefixes[level] = tuple(
                destination_prefix(self.tree, level, number)
                for number in range(destinations(self.tree, level))
            )

        return self._prefixes[level]

    def entries(self, plan: SwitchPlan, ids: Sequence[int]) -> dict[tuple[str, Key], Call]:
        """Return a plan's table entries; `ids[block]` is the id of the block's first schedule."""
        entries: dict[tuple[str, Key], Call] = {}
        blocks = plan.blocks
        for block, first in zip(blocks, ids, strict=True):
            for order, uplinks in enumerate(block):
                entries.update(self.schedule(plan.switch, first + order, uplinks))

        for prefix, port in plan.ports.items():
            entries["routes", (prefix,)] = "to_port", (port,)

        for prefix, group in plan.groups.items():
            length = len(blocks[group.block][0])
            arguments = group.number, ids[group.block], length, group.data_start, group.ack_start
            entries["routes", (prefix,)] = "to_group", arguments

        entries.update(plan.settings)
        return entries

    def rows(self, length: int) -> int:
        """Return how many entries a schedule of so many slots has."""
        return length * ("schedule" in self._tables) + (self.max_uplinks is not None)

    def schedule(
        self, switch: int, schedule: int, uplinks: bytes
    ) -> Iterator[tuple[tuple[str, Key], Call]]:
        """Yield the entries of a switch's schedule: its slots, and the weights of its uplinks."""
        first = self.tree.uplink_port(switch, 0)
        if "schedule" in self._tables:
            for slot, uplink in enumerate(uplinks):
                yield ("schedule", (schedule, slot)), ("take_port", (first + uplink,))

        # An uplink's weight is how often it occurs. Ofan's start at the shortest queue asks only
        # which uplinks there are (ofan_jsq_start.p4).
        if self.max_uplinks is not None:
            weights = np.bincount(
                np.frombuffer(uplinks, dtype=np.uint8), minlength=self.max_uplinks
            )
            if self.scenario.scheme.chooser is Chooser.ROTATION_SHORTEST_START:
                weights = np.minimum(weights, 1)

            yield (
                ("uplinks_of", (schedule,)),
                ("weigh", (first, *weights.tolist())),
            )

    def settings(self, switch: int) -> dict[tuple[str, Key], Call]:
        """Return the entries that no failure changes."""
        calls = dict(self._shared_settings)
        calls["hashing", ()] = "multiply_by", (hash_multiplier(self.scenario.seed, switch),)
        calls["digits", ()] = "divide_by", (_reciprocal(self._divisor(switch)),)
        number = switch if self.tree.tier(switch) is Tier.EDGE else NO_EDGE
        calls["edge_numbers", ()] = "set_edge", (number, self.tree.edges_per_pod)
        if (
            self.scenario.scheme.chooser is Chooser.WAYPOINT
            and self.tree.tier(switch) is not Tier.EDGE
        ):
            for address in waypoint_addresses(self.tree, switch):
                calls["waypoint", (address,)] = "unwrap", ()

        for port in self.tree.ports(switch):
            calls["segments", (BLOCK, adjacency(port))] = "cross", (port,)

        calls["segments", (BLOCK, DECAPSULATION)] = "decapsulate", ()
        # A program of the user's has the tables that it needs, and gets entries for no others.
        return {match: call for match, call in calls.items() if match[0] in self._tables}

    def _divisor(self, switch: int) -> int:
        """Return how many of Themis's paths the tiers below a switch tell apart."""
        return self.tree.edge_uplinks if self.tree.tier(switch) is Tier.AGG else 1

    def check(self, plan: SwitchPlan, lengths: Sequence[int], groups: NDArray[np.int32]) -> None:
        """Raise PlanError if these schedules or groups do not fit into the program's tables."""
        name = switch_name(self.tree, plan.switch)

        # Default entries (no key) take no room: P4Runtime's `size` counts the others.
        counts = Counter(table for table, key in plan.settings if key)
        counts["routes"] += plan.port_count + int((groups != NONE).sum())

        if "schedule" in self._tables:
            counts["schedule"] += sum(lengths)

        if self.max_uplinks is not None:
            counts["uplinks_of"] += len(lengths)

        self._pipeline.check_counts(name, counts)
        self.check_pointers(plan.switch, groups)

    def check_pointers(self, switch: int, groups: NDArray[np.int32]) -> None:
        """Raise PlanError if the program has too few pointers for a switch's groups."""
        name = switch_name(self.tree, switch)
        # A cell is group ++ class (pointer.p4), so two cells belong to each group.
        cells = self._pipeline.registers.get("pointers")
        highest = int(groups.max(initial=0))

        if cells is not None and 2 * highest + 1 >= cells.size:
            raise PlanError(
                f"{name}: register pointers has {cells.size} cells, "
                f"group {highest} needs two of its own"
            )


def _shared_settings(scenario: Scenario) -> Iterator[tuple[tuple[str, Key], Call]]:
    """Yield the settings that are the same on all switches, for any program."""
    chooser = scenario.scheme.chooser
    yield ("ecn", ()), _marks(scenario)
    yield ("orders", ()), _round_robin(scenario)
    yield ("quanta", ()), ("set_quanta", (SCHEMES.get(chooser, 0), *bin_thresholds(scenario)))
    if scenario.controller.detection == "probe":
        yield ("punt", (PROBE_ETHERTYPE,)), ("to_controller", ())


def _reciprocal(divisor: int) -> int:
    """Return the factor by which themis.p4 multiplies, before a shift by 40 bits, to divide."""
    return -(-(1 << 40) // divisor)


def _round_robin(scenario: Scenario) -> Call:
    """Return which classes share a pointer of round_robin.p4, and after how many rounds orders
    change.

    `rr_pointer` is Simple RR's option: Switch Pkt's classes always share a pointer.
    """
    match scenario.scheme.chooser:
        case Chooser.RESHUFFLED:
            return "reshuffle_after", (RESHUFFLE_WRAPS,)
        case Chooser.ROUND_ROBIN if scenario.load_balancer.rr_pointer == "shared":
            return "share_pointer", ()
        case _:
            return "reshuffle_after", (0,)


def _marks(scenario: Scenario) -> Call:
    """Return the bytes above which data is marked, 0 for never, or the two bounds and the slope."""
    marking = scenario.marking
    if marking is None:
        return "mark_above", (0,)

    return ("mark_between", marking) if marking.slope else ("mark_above", (marking.least,))


def bin_thresholds(scenario: Scenario) -> tuple[int, ...]:
    """Return the bytes at which the second, third and fourth bin begin."""
    # Queues are whole bytes: a bin begins at the ceiling of its share.
    return tuple(ceil(_share(scenario, percent)) for percent in scenario.load_balancer.bins_percent)


def _share(scenario: Scenario, percent: float) -> Fraction:
    # As decimal fractions: the user wrote 0.1 %, not the nearest binary number.
    return scenario.threshold_bytes * Fraction(str(percent)) / 100


def _blocks(forwarding: Forwarding, switch: int) -> tuple[Block, ...]:
    first, last = forwarding.first_schedule[switch : switch + 2].tolist()
    schedules = [forwarding.schedule(switch, index).tobytes() for index in range(last - first)]
    orders = forwarding.orders

    return tuple(
        tuple(schedules[start : start + orders]) for start in range(0, len(schedules), orders)
    )
