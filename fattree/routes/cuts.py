"""Cuts: the load that slow, dead and few links carry by a time, and the time that flows need.

All data that leave or enter an edge or a pod cross links side by side; those of a host
cross its link. A slow link and a dead link differ in their rate alone, and that may change with
time. Of data that cross several links one after the other, no more come through than any of these
carries. ACKs are left out, as they may be lost on their way.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows, path_links
from fattree.experiment.model import Scenario
from fattree.routes.failures import FOREVER, Timeline, moves_between_planes, timeline
from fattree.routes.link_work import last_packets
from fattree.routes.rates import is_oversubscribed
from fattree.routes.slow_links import FULL, Pace, paces
from fattree.shape.topology import FatTree, Level
from fattree.units import PS_PER_SECOND

Int64 = NDArray[np.int64]
# Later than any run.
LATEST_PS = 2**60


class Kind(IntEnum):
    """Which links are side by side; a group is numbered by edge and agg position, agg, or host."""

    EDGE_UP = 0
    EDGE_DOWN = 1
    CORES_UP = 2
    CORES_DOWN = 3
    EDGES_UP = 4
    EDGES_DOWN = 5
    HOST_UP = 6
    HOST_DOWN = 7


class Rate(NamedTuple):
    """From `time_ps` on, a directed link carries so much."""

    time_ps: int
    bytes_per_ps: float


class Group(NamedTuple):
    """Links side by side, of one kind."""

    kind: Kind
    number: int


# All groups of a stage are side by side; the stages of a branch are crossed one after the other.
Stage: TypeAlias = tuple[Group, ...]
Branch: TypeAlias = tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """The load that links have carried by each of some times, and their rate from it on."""

    times_ps: list[int]
    bytes: list[float]
    bytes_per_ps: list[float]

    def by(self, time_ps: int) -> float:
        """Return how many bytes have crossed by a time at most."""
        index = max(bisect_right(self.times_ps, time_ps) - 1, 0)
        since_ps = max(time_ps - self.times_ps[index], 0)
        return self.bytes[index] + since_ps * self.bytes_per_ps[index]


@dataclass(frozen=True, slots=True)
class Crossing:
    """The flows across a cut: `bytes` of them, the first at `from_ps`.

    The last still have a way of `tail_ps` to go, there and back. They belong to a flow that starts
    at `latest_ps` at the latest. `hops` are the lengths of their paths.
    """

    number: int
    bytes: int
    from_ps: int
    tail_ps: int
    latest_ps: int
    hops: frozenset[int]


def cut_bound_ps(scenario: Scenario, flows: Flows, known_ps: int) -> int:
    """Return a lower bound of the completion time from slow, dead and few links.

    `known_ps` is another lower bound, which is returned where it is larger.
    """
    failures = scenario.failures
    is_changed = bool(failures.rate or failures.events or failures.degraded)
    if not flows.packets.any():
        return known_ps
    if not is_changed and not is_oversubscribed(scenario.tree, scenario.speeds):
        return known_ps

    links = Links(scenario, timeline(scenario, flows))
    by_machine = moves_between_planes(scenario)
    for branches, crossing in _cuts(scenario, flows, links.hosts, by_machine):
        # Most cuts say less than is known, and are asked once.
        offset_ps = crossing.tail_ps - crossing.latest_ps
        if links.have_carried(branches, crossing, known_ps - offset_ps):
            continue

        known_ps = links.needed_ps(branches, crossing, known_ps - offset_ps) + offset_ps

    return known_ps


class Links:
    """The links of a scenario in groups, and the groups' rates."""

    def __init__(self, scenario: Scenario, events: Timeline) -> None:
        self._scenario = scenario
        self._changed: dict[Group, list[list[Rate]]] = defaultdict(list)
        for number, is_up, level, rates in _changes(scenario, events):
            for group in _groups(scenario.tree, number, is_up, level):
                self._changed[group].append(rates)

        self._carried: Callable[[Group, int], Carried] = cache(self._carried_from)

    @property
    def hosts(self) -> set[int]:
        """Return the hosts with links that are slow or dead at times."""
        return {group.number for group in self._changed if group.kind >= Kind.HOST_UP}

    def have_carried(self, branches: tuple[Branch, ...], crossing: Crossing, by_ps: int) -> bool:
        """Return whether all that crosses may have crossed by a time."""
        carried = sum(
            min(
                sum(self._carried(group, crossing.from_ps).by(by_ps) for group in stage)
                for stage in branch
            )
            for branch in branches
        )
        # Sums of floating point are off by much less than a byte.
        return carried >= crossing.bytes - 1

    def needed_ps(self, branches: tuple[Branch, ...], crossing: Crossing, after_ps: int) -> int:
        """Return the first time after `after_ps` by which all may have crossed."""
        early_ps, late_ps = after_ps, max(2 * after_ps, 1)
        while not self.have_carried(branches, crossing, late_ps):
            early_ps, late_ps = late_ps, 2 * late_ps
            # A link that never comes up again carries nothing: such a run is refused elsewhere.
            if late_ps > LATEST_PS:
                return after_ps

        while late_ps - early_ps > 1:
            middle_ps = (early_ps + late_ps) // 2
            if self.have_carried(branches, crossing, middle_ps):
                late_ps = middle_ps
            else:
                early_ps = middle_ps

        return late_ps

    def _carried_from(self, group: Group, from_ps: int) -> Carried:
        """Return a group's rates from a time on."""
        scenario = self._scenario
        gap_bytes = scenario.packets.gap_bytes
        packet_bytes = float(scenario.data_bytes + gap_bytes)
        changed = self._changed.get(group, [])
        count = _size(scenario.tree, group.kind)
        whole = _bytes_per_ps(scenario, _LEVELS[group.kind], FULL)

        rate = (count - len(changed)) * whole
        steps: list[tuple[int, float, float]] = []
        for rates in changed:
            now: float = [
                link_rate.bytes_per_ps for link_rate in rates if link_rate.time_ps <= from_ps
            ][-1]
            rate += now
            for link_rate in rates:
                if link_rate.time_ps > from_ps:
                    # A packet that has begun before a link is slower or dead goes at the rate of
                    # before.
                    more = packet_bytes if link_rate.bytes_per_ps < now else 0.0
                    steps.append((link_rate.time_ps, link_rate.bytes_per_ps - now, more))
                    now = link_rate.bytes_per_ps

        # The gap behind the last packet on each link needs not have passed.
        times_ps, carried, speeds = [from_ps], [float(count * gap_bytes)], [rate]
        for time_ps, change, more in sorted(steps):
            before = carried[-1] + (time_ps - times_ps[-1]) * speeds[-1]
            times_ps.append(time_ps)
            carried.append(before + more)
            speeds.append(max(speeds[-1] + change, 0.0))

        return Carried(times_ps, carried, speeds)


_LEVELS = {
    Kind.EDGE_UP: Level.EDGE_AGG,
    Kind.EDGE_DOWN: Level.EDGE_AGG,
    Kind.CORES_UP: Level.AGG_CORE,
    Kind.CORES_DOWN: Level.AGG_CORE,
    Kind.EDGES_UP: Level.EDGE_AGG,
    Kind.EDGES_DOWN: Level.EDGE_AGG,
    Kind.HOST_UP: Level.HOST,
    Kind.HOST_DOWN: Level.HOST,
}


def _size(tree: FatTree, kind: Kind) -> int:
    """Return how many links a group has."""
    match kind:
        case Kind.EDGE_UP | Kind.EDGE_DOWN:
            return tree.edge_agg_links
        case Kind.CORES_UP | Kind.CORES_DOWN:
            return tree.agg_uplinks
        case Kind.EDGES_UP | Kind.EDGES_DOWN:
            return tree.edges_per_pod * tree.edge_agg_links
        case _:
            return 1


def _groups(tree: FatTree, number: int, is_up: bool, level: Level) -> Iterator[Group]:
    """Yield the groups of a directed link, which is numbered among those of its level."""
    if level == Level.HOST:
        yield Group(Kind.HOST_UP if is_up else Kind.HOST_DOWN, number)
    elif level == Level.AGG_CORE:
        yield Group(Kind.CORES_UP if is_up else Kind.CORES_DOWN, number // tree.agg_uplinks)
    else:
        edge, uplink = divmod(number, tree.edge_uplinks)
        position = uplink // tree.edge_agg_links
        agg = edge // tree.edges_per_pod * tree.aggs_per_pod + position
        of_edge, all_edges = (
            (Kind.EDGE_UP, Kind.EDGES_UP) if is_up else (Kind.EDGE_DOWN, Kind.EDGES_DOWN)
        )
        yield Group(of_edge, edge * tree.aggs_per_pod + position)
        yield Group(all_edges, agg)


def _bytes_per_ps(scenario: Scenario, level: Level, share: float) -> float:
    return scenario.link_bps(level, share) / 8 / PS_PER_SECOND


def _changes(scenario: Scenario, events: Timeline) -> Iterator[tuple[int, bool, Level, list[Rate]]]:
    """Yield the directed links that are not whole all the time: number, direction, level, rates."""
    down: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for change in events.changes:
        for links, is_alive in ((change.down, False), (change.up, True)):
            for link in links:
                down[link].append((change.time_ps, is_alive))

    hosts: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for host, down_ps, up_ps in events.hosts:
        hosts[host] += [(down_ps, False), *([(up_ps, True)] if up_ps != FOREVER else [])]

    slow = paces(scenario)
    edge_links = scenario.tree.edge_links
    for link, is_up in sorted({*slow.of_links, *((link, up) for link in down for up in (0, 1))}):
        is_low = link < edge_links
        level = Level.EDGE_AGG if is_low else Level.AGG_CORE
        steps = slow.of_links.get((link, bool(is_up)), ())
        rates = _rates(scenario, level, down.get(link, []), steps)
        yield link if is_low else link - edge_links, bool(is_up), level, rates

    for host, is_up in sorted({*slow.of_hosts, *((host, up) for host in hosts for up in (0, 1))}):
        steps = slow.of_hosts.get((host, bool(is_up)), ())
        rates = _rates(scenario, Level.HOST, hosts.get(host, []), steps)
        yield host, bool(is_up), Level.HOST, rates


def _rates(
    scenario: Scenario, level: Level, alive: list[tuple[int, bool]], steps: tuple[Pace, ...]
) -> list[Rate]:
    """Return a directed link's rate from each instant on at which it changes."""
    shares = dict(steps)
    is_alive = dict(alive)
    now, share = True, FULL
    rates = [Rate(0, _bytes_per_ps(scenario, level, FULL))]
    for time_ps in sorted({*shares, *is_alive}):
        now, share = is_alive.get(time_ps, now), shares.get(time_ps, share)
        carried = _bytes_per_ps(scenario, level, share) if now else 0.0
        rates.append(Rate(time_ps, carried))

    return rates


class _Place(NamedTuple):
    """The links of a stage on paths of one length: their position there, from 0, and their kind."""

    position: int
    kind: Kind


class _Family(NamedTuple):
    """Cuts of one kind: the number of each flow's cut, which flows cross a cut, and the stages.

    A stage has its place by the number of a path's links.
    """

    number: Int64
    is_crossing: NDArray[np.bool_]
    stages: tuple[Mapping[int, _Place], ...]


_EDGE_UP = {4: _Place(1, Kind.EDGE_UP), 6: _Place(1, Kind.EDGE_UP)}
_FROM_AGG = {4: _Place(2, Kind.EDGES_DOWN), 6: _Place(2, Kind.CORES_UP)}
_TO_AGG = {4: _Place(1, Kind.EDGES_UP), 6: _Place(3, Kind.CORES_DOWN)}
_EDGE_DOWN = {4: _Place(2, Kind.EDGE_DOWN), 6: _Place(4, Kind.EDGE_DOWN)}
_HOST_UP = {links: _Place(0, Kind.HOST_UP) for links in (2, 4, 6)}
_HOST_DOWN = {links: _Place(links - 1, Kind.HOST_DOWN) for links in (2, 4, 6)}
_OUT_OF_POD = ({6: _Place(1, Kind.EDGES_UP)}, {6: _Place(2, Kind.CORES_UP)})
_INTO_POD = ({6: _Place(3, Kind.CORES_DOWN)}, {6: _Place(4, Kind.EDGES_DOWN)})


def _families(tree: FatTree, flows: Flows, hosts: set[int], by_machine: bool) -> Iterator[_Family]:
    ends = flows.source, flows.destination
    edges = [end // tree.hosts_per_edge for end in ends]
    pods = [end // tree.hosts_per_pod for end in ends]
    is_sent = flows.packets > 0
    leaves_edge, leaves_pod = (is_sent & (sides[0] != sides[1]) for sides in (edges, pods))
    changed = np.array(sorted(hosts), dtype=np.int64)
    if by_machine:
        # Packets may leave their plane: only the links of all NICs together carry all of them.
        ends = flows.source % tree.machines, flows.destination % tree.machines
        changed %= tree.machines
        for machine, stage in zip(ends, (_HOST_UP, _HOST_DOWN), strict=True):
            yield _Family(machine, is_sent & np.isin(machine, changed), (stage,))

        return

    yield _Family(edges[0], leaves_edge, (_EDGE_UP, _FROM_AGG))
    yield _Family(edges[1], leaves_edge, (_TO_AGG, _EDGE_DOWN))
    yield _Family(pods[0], leaves_pod, _OUT_OF_POD)
    yield _Family(pods[1], leaves_pod, _INTO_POD)
    for host, stage in zip(ends, (_HOST_UP, _HOST_DOWN), strict=True):
        yield _Family(host, is_sent & np.isin(host, changed), (stage,))


def _cuts(
    scenario: Scenario, flows: Flows, hosts: set[int], by_machine: bool
) -> Iterator[tuple[tuple[Branch, ...], Crossing]]:
    tree = scenario.tree
    nics = tree.planes if by_machine else 1
    for family in _families(tree, flows, hosts, by_machine):
        for crossing in _crossings(scenario, flows, family):
            yield _branches(tree, family, crossing, nics), crossing


def _branches(tree: FatTree, family: _Family, crossing: Crossing, nics: int) -> tuple[Branch, ...]:
    """Return the branches of a cut, a branch for each agg; a host's links are those of its NICs."""
    stages = [sorted({stage[links].kind for links in crossing.hops}) for stage in family.stages]
    number = crossing.number
    if stages[0][0] >= Kind.HOST_UP:
        kind = stages[0][0]
        return ((tuple(Group(kind, number + nic * tree.machines) for nic in range(nics)),),)

    # Where an edge crosses, one stage is of its own links.
    edge_kinds = {Kind.EDGE_UP, Kind.EDGE_DOWN}
    is_edge = any(edge_kinds & {*kinds} for kinds in stages)
    first_agg = (number // tree.edges_per_pod if is_edge else number) * tree.aggs_per_pod
    return tuple(
        tuple(
            tuple(
                Group(
                    kind,
                    position + (number * tree.aggs_per_pod if kind in edge_kinds else first_agg),
                )
                for kind in kinds
            )
            for kinds in stages
        )
        for position in range(tree.aggs_per_pod)
    )


def _crossings(scenario: Scenario, flows: Flows, family: _Family) -> Iterator[Crossing]:
    """Yield the flows across each cut of a family."""
    chosen = np.flatnonzero(family.is_crossing)
    if not len(chosen):
        return

    # Both ways are those of the shortest packet.
    last_bytes = last_packets(scenario, flows)[chosen]
    least = int(last_bytes.min())
    hops = path_links(scenario.tree, flows)[chosen]
    first, tail = (np.zeros(7, dtype=np.int64) for _ in range(2))
    for links, first_links in family.stages[0].items():
        first[links] = _way_ps(scenario, least, links, 0, first_links.position)
        last = family.stages[-1][links].position
        tail[links] = (
            scenario.latencies_ps[_path(links)[last]]
            + _way_ps(scenario, least, links, last + 1, links)
            + scenario.path_ps(links, scenario.ack_bytes)
        )

    full = scenario.data_bytes + scenario.packets.gap_bytes
    sizes = (flows.packets[chosen] - 1) * full + last_bytes + scenario.packets.gap_bytes
    numbers, group = np.unique(family.number[chosen], return_inverse=True)
    group = group.ravel()
    columns = np.zeros((4, len(numbers)), dtype=np.int64)
    columns[1:3] = LATEST_PS
    np.add.at(columns[0], group, sizes)
    np.minimum.at(columns[1], group, flows.start_ps[chosen] + first[hops])
    np.minimum.at(columns[2], group, tail[hops])
    np.maximum.at(columns[3], group, flows.start_ps[chosen])
    pairs = np.unique(np.stack([group, hops]), axis=1).T.tolist()
    lengths: dict[int, set[int]] = defaultdict(set)
    for index, links in pairs:
        lengths[index].add(links)

    for index, number in enumerate(numbers.tolist()):
        size, from_ps, tail_ps, latest_ps = columns[:, index].tolist()
        yield Crossing(number, size, from_ps, tail_ps, latest_ps, frozenset(lengths[index]))


def _way_ps(scenario: Scenario, size: int, links: int, first: int, end: int) -> int:
    """Return how long a packet takes on the links of a path from `first` on, before `end`."""
    levels = _path(links)[first:end]
    return sum(scenario.tx_ps(size, level) + scenario.latencies_ps[level] for level in levels)


def _path(links: int) -> list[Level]:
    """Return the levels of a path's links, in order."""
    up = [Level(level) for level in range(links // 2)]
    return up + up[::-1]
