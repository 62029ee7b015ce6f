"""Routes as arrays, and when they change: groups, schedules, Host DR's waypoints."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows as Traffic
from fattree.experiment.model import Scenario
from fattree.policies import Chooser
from fattree.routes.failures import RouteChange, Timeline
from fattree.routes.forwarding import Drawn, Forwarding, scenario_forwarding
from fattree.routes.lags import Lags, merged
from fattree.routes.local_repair import repaired
from fattree.routes.southbound import Bundles, agg_bundles, core_bundles
from fattree.routes.waypoints import starts, waypoints
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from sim.kernels.records import GROUP, Records, records
from sim.kernels.state import Int64, Routes

# These compare uplinks, so they look weights up; to the others a schedule's repetitions are enough.
WEIGHED = (Chooser.SHORTEST, Chooser.BINNED, Chooser.ROTATION_SHORTEST_START)


def waypoint_routes(scenario: Scenario, flows: Traffic, links: LinkState) -> Routes:
    """Return the routes of Host DR's hosts for a state of the links; of other schemes, none."""
    row, start, offset, steps = _waypoints(scenario, links, Pairs.of(scenario.tree, flows))
    empty = np.zeros(0, dtype=np.int64)

    return Routes(
        groups=empty.astype(np.int32),
        first_group=empty,
        group_table=records(0, GROUP),
        slots=empty.astype(np.uint8),
        weights=np.zeros((0, scenario.tree.most_uplinks), dtype=np.uint8),
        waypoint_row=row,
        waypoint_start=start,
        waypoint_offset=offset,
        waypoints=steps,
        agg_members=np.zeros((0, 1), dtype=np.uint8),
        agg_counts=empty.astype(np.int32),
        core_members=np.zeros((0, 1), dtype=np.uint8),
        core_counts=empty.astype(np.int32),
    )


class Phase(NamedTuple):
    """From `time_ps` on switches route for the state `routed` of their lag, from the least lag on.

    With local repair they leave their own links that are not `up`.
    """

    time_ps: int
    routed: tuple[LinkState, ...]
    up: LinkState

    @property
    def of_hosts(self) -> LinkState:
        """Return the state that hosts which choose paths know: that of the last switches."""
        return self.routed[-1]


def phases(scenario: Scenario, events: Timeline) -> Iterator[Phase]:
    """Yield the states of the links that switches route for, in order."""
    tree = scenario.tree
    lags_ps = Lags.of(scenario).times_ps
    # Micro-segments are static, and so are their meanings: hosts detect failures.
    if scenario.scheme.chooser is Chooser.SEGMENTS:
        whole = LinkState.without(tree)
        yield Phase(0, (whole,) * len(lags_ps), whole)
        return

    is_local = scenario.failures.local_repair
    failed = frozenset[int]()
    changes = [RouteChange(0, events.first_routes, events.first_slow), *events.routes]
    times_ps = [change.time_ps for change in changes]
    states = [LinkState.without(tree, change.failed, change.slow) for change in changes]
    late_ps = {change.time_ps + lag_ps for change in events.routes for lag_ps in lags_ps}
    # Without local repair a link's state changes no route before G has passed.
    link_changes = {change.time_ps: change for change in events.changes} if is_local else {}

    for time_ps in sorted({0, *late_ps, *link_changes}):
        if time_ps in link_changes:
            failed = failed - link_changes[time_ps].up | link_changes[time_ps].down

        yield Phase(
            time_ps,
            tuple(states[max(0, bisect_right(times_ps, time_ps - lag) - 1)] for lag in lags_ps),
            LinkState.without(tree, failed),
        )


class Tables:
    """The forwarding of a scenario's switches in its phases, which come in order.

    A state of the links that two phases share is worked out once.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.lags = Lags.of(scenario)
        self._scenario = scenario
        self._drawn = Drawn()
        self._tables: dict[LinkState, Forwarding] = {}

    def by_lag(self, phase: Phase) -> list[Forwarding]:
        """Return the forwarding of the switches with each lag, from the least lag on."""
        self._tables = {state: self._table(state) for state in phase.routed}
        if not self._scenario.failures.local_repair:
            return [self._tables[state] for state in phase.routed]

        tables = {state: repaired(table, phase.up) for state, table in self._tables.items()}
        return [tables[state] for state in phase.routed]

    def forwarding(self, phase: Phase) -> Forwarding:
        """Return the forwarding of all switches."""
        return merged(self.by_lag(phase), self.lags)

    def _table(self, state: LinkState) -> Forwarding:
        return self._tables.get(state) or scenario_forwarding(self._scenario, state, self._drawn)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The distinct (source, destination) hosts, which own Host DR's pointers, and flows' pairs."""

    source: Int64
    destination: Int64
    of_flow: Int64

    @classmethod
    def of(cls, tree: FatTree, flows: Traffic) -> "Pairs":
        keys, of_flow = np.unique(
            flows.source * tree.hosts + flows.destination, return_inverse=True
        )
        return cls(*np.divmod(keys, tree.hosts), of_flow)


def routes_of(
    scenario: Scenario, table: Forwarding, phase: Phase, pairs: Pairs, lags: Int64
) -> Routes:
    """Return the routes among which switches and Host DR's hosts choose.

    `lags` are the indices of the switches' lags.
    """
    tree = scenario.tree
    row, start, offset, steps = _waypoints(scenario, phase.of_hosts, pairs)
    below_aggs = Bundles.picked(
        [agg_bundles(tree, links) for links in phase.routed],
        np.repeat(lags[tree.first_agg : tree.first_core], tree.edges_per_pod),
    )
    below_cores = Bundles.picked(
        [core_bundles(tree, links) for links in phase.routed],
        np.repeat(lags[tree.first_core :], tree.pods_per_plane),
    )

    return Routes(
        groups=np.concatenate([table.edge_group.ravel(), table.agg_group.ravel()]),
        first_group=table.first_group,
        group_table=_group_table(tree, table),
        slots=table.slots,
        weights=_schedule_weights(table),
        waypoint_row=row,
        waypoint_start=start,
        waypoint_offset=offset,
        waypoints=steps,
        agg_members=below_aggs.members,
        agg_counts=below_aggs.counts,
        core_members=below_cores.members,
        core_counts=below_cores.counts,
    )


def _group_table(tree: FatTree, table: Forwarding) -> Records:
    """Return all switches' groups; values of unused groups mean nothing."""
    # From a switch's own numbers to those of all switches.
    switch = np.repeat(np.arange(tree.first_core), np.diff(table.first_group))
    schedule = table.first_schedule[switch] + table.group_schedule
    groups = records(len(schedule), GROUP)
    groups.schedule = schedule
    groups.first = table.schedule_offset[schedule]
    groups.length = table.schedule_offset[schedule + 1] - groups.first
    groups.start_data, groups.start_ack = table.group_start.T

    return groups


def _schedule_weights(table: Forwarding) -> NDArray[np.uint8]:
    """Return how often each uplink occurs in each schedule, (schedules, most uplinks of a switch).

    That is its weight: schedules are interleaved from weights. Empty if no rule needs them.
    """
    uplinks = table.tree.most_uplinks
    count = len(table.schedule_offset) - 1
    if table.policy.chooser not in WEIGHED:
        return np.zeros((0, uplinks), dtype=np.uint8)

    schedule = np.repeat(np.arange(count), np.diff(table.schedule_offset))
    weights = np.bincount(schedule * uplinks + table.slots, minlength=count * uplinks)
    return weights.reshape(count, uplinks).astype(np.uint8)


def _waypoints(
    scenario: Scenario, links: LinkState, pairs: Pairs
) -> tuple[NDArray[np.int32], NDArray[np.int32], Int64, NDArray[np.uint8]]:
    """Return every pair's rows of waypoints and the starts of its pointers, and the rows (CSR).

    Both have a column for data and a column for ACKs, which take other ways: uplinks that have
    failed are an edge's own.
    """
    tree = scenario.tree
    if scenario.scheme.chooser is not Chooser.WAYPOINT:
        nothing = np.zeros(0, dtype=np.int32)
        return (
            nothing.reshape(0, 2),
            nothing.reshape(0, 2),
            np.zeros(1, dtype=np.int64),
            np.zeros((0, 2), dtype=np.uint8),
        )

    source_edge = pairs.source // tree.hosts_per_edge
    destination_edge = pairs.destination // tree.hosts_per_edge
    both = np.stack(
        [
            _canonical(tree, links, source_edge, destination_edge),
            _canonical(tree, links, destination_edge, source_edge),
        ],
        axis=1,
    )
    keys, inverse = np.unique(both, return_inverse=True)
    row = inverse.reshape(both.shape)
    ways = waypoints(tree, links, *np.divmod(keys, tree.edges))
    length = np.diff(ways.offset)[row]
    data, _ = starts(scenario.seed, pairs.source, pairs.destination, length[:, 0])
    _, ack = starts(scenario.seed, pairs.destination, pairs.source, length[:, 1])

    return (
        row.astype(np.int32),
        np.stack([data, ack], axis=1).astype(np.int32),
        ways.offset,
        ways.steps,
    )


def _canonical(
    tree: FatTree, links: LinkState, source_edge: Int64, destination_edge: Int64
) -> Int64:
    """Return source_edge * edges + destination_edge.

    Where all links are whole, one pair stands for all of its kind, as their steps are the same.
    """
    if not links.is_whole:
        return source_edge * tree.edges + destination_edge

    same_pod = source_edge // tree.edges_per_pod == destination_edge // tree.edges_per_pod
    kind = np.where(source_edge == destination_edge, 0, np.where(same_pod, 1, tree.edges - 1))
    return kind.astype(np.int64)
