"""Every switch's groups and schedules as arrays, from (tree, links, policy, seed).

The controller's plan turns these arrays into table entries and the simulator walks them directly,
so weights, schedules, random starts and orders are written once. A group is what owns a pointer: a
destination edge (at edges) or pod (at aggs) for Ofan, a distinct set of (uplink, weight) for
everyone else. Schedules are sequences of uplinks (from 0).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.draws import Stream, below, component, mix
from fattree.experiment import Scenario
from fattree.flows import offsets
from fattree.iwrr import interleave, simplify
from fattree.policies import RESHUFFLE_ORDERS, Chooser, Policy
from fattree.topology import FatTree
from fattree.wecmp import LinkState, Paths, agg_weights, reach, small

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Slots = NDArray[np.uint8]
Bools = NDArray[np.bool_]
ScheduleOrders = Literal["per_pod", "per_pointer"]
PointerLevel = Literal["pod", "edge", "host"]
LEVELS: tuple[PointerLevel, ...] = ("pod", "edge", "host")
NONE = -1
# Groups at a time: what is computed for so many stays in the processor's cache.
CACHED = 1 << 15
# Switches whose orders are drawn at once.
TOGETHER = 16


class Consolidation(NamedTuple):
    """For what kind of destination a rotation keeps a pointer in edges and in aggs.

    Ofan's are the highest (appendix F).
    """

    edge: PointerLevel = "edge"
    agg: PointerLevel = "pod"


OFAN = Consolidation()
# Parallel links down are dealt out to hosts (`fattree.southbound`): one pointer for two hosts may
# give each of them one uplink, and so all that the one receives to one link of a bundle.
OF_HOSTS = Consolidation("host", "host")


@dataclass(frozen=True, slots=True, eq=False)
class Forwarding:
    """The northbound state of all edges and aggs, the first switches.

    Southbound routes follow from the addresses, and from `links` where there are parallel ones
    (`fattree.southbound`).

    edge_group (edges, edges) and agg_group (aggs, pods): local group of a destination edge or pod,
    NONE without a path; with a finer consolidation a column is what `columns` says (edges', aggs'),
    down to a host; first_group (switches + 1): a switch's groups are first_group[switch] + local
    group; group_schedule (groups,): local schedule of a group, NONE where it is unused; group_start
    (groups, 2): where the pointers of data and ACKs start; first_schedule (switches + 1),
    schedule_offset (schedules + 1,), slots: flat schedules. A group of a RESHUFFLED policy owns
    `orders` (16) consecutive schedules of one length, else one.
    """

    tree: FatTree
    links: LinkState
    policy: Policy
    orders: int
    edge_group: Int32
    agg_group: Int32
    first_group: Int64
    group_schedule: Int32
    group_start: Int32
    first_schedule: Int64
    schedule_offset: Int64
    slots: Slots
    columns: Consolidation = OFAN

    def schedule(self, switch: int, schedule: int) -> Slots:
        """Return the uplinks of a switch's local schedule."""
        index = self.first_schedule[switch] + schedule
        return self.slots[self.schedule_offset[index] : self.schedule_offset[index + 1]]

    def groups(self, switch: int) -> range:
        """Return the global group indices of a switch."""
        return range(int(self.first_group[switch]), int(self.first_group[switch + 1]))


class Drawn:
    """The random orders and starts of one scenario, drawn once as they depend on no link."""

    def __init__(self) -> None:
        self._orders: dict[int, Slots] = {}
        self._starts: tuple[bytes, NDArray[np.uint32]] = b"", np.zeros(0, dtype=np.uint32)

    def orders(self, first: int, draw: Callable[[], Int64]) -> Slots:
        """Return the port orders of a run of switches that begins with `first`."""
        if first not in self._orders:
            self._orders[first] = draw().astype(np.uint8)

        return self._orders[first]

    def starts(self, counts: Int64, draw: Callable[[], Int64]) -> NDArray[np.uint32]:
        """Return a draw for each group of switches that have so many groups."""
        # A start is a share of its schedule, whatever its length: only another number of groups, as
        # failures may bring, needs other draws.
        layout = counts.tobytes()
        if self._starts[0] != layout:
            self._starts = layout, draw().astype(np.uint32)

        return self._starts[1]


def hash_multiplier(seed: int, switch: int) -> int:
    """Return the odd 32-bit multiplier of a switch's ECMP hash (design, decision 12)."""
    return int(mix(seed, component(Stream.MULTIPLIER, 0), switch)) | 1


def port_orders(
    policy: Policy, seed: int, switches: NDArray[np.int64], uplinks: int, blocks: int
) -> Int64:
    """Return orders[switch, block, uplink]: permutations of the uplinks, plain if not shuffled.

    They depend on the seed only, never on failures (design, decision 8). The 16 orders of a
    RESHUFFLED policy are rotations of as few random ones as possible: each slot then meets each
    uplink (nearly) equally often, where 16 independent draws would favour some uplink in each slot
    for ever and keep flows that always meet the same slot together.
    """
    if not policy.shuffled or uplinks == 0:
        return np.broadcast_to(np.arange(uplinks), (len(switches), blocks, uplinks))

    rotates = policy.chooser is Chooser.RESHUFFLED
    base = np.arange(blocks) // uplinks if rotates else np.arange(blocks)

    # 256 numbers to a block, of which no switch has the uplinks to use all.
    numbers = (base * 256)[:, None] + np.arange(uplinks)
    draws = mix(seed, component(Stream.ORDER, 0) + switches[:, None, None], numbers)
    orders = np.argsort(draws, axis=2, kind="stable")

    if not rotates:
        return orders

    # With more uplinks than orders the rotations of the one random order are spread out evenly.
    shift = (np.arange(blocks) % uplinks * max(1, uplinks // blocks))[:, None]
    return np.take_along_axis(orders, ((np.arange(uplinks) + shift) % uplinks)[None], axis=2)


def _weights_of(policy: Policy, weights: Int64, links: LinkState) -> Slots:
    """Return the weights that a policy uses, each a byte (`fattree.wecmp`)."""
    if not policy.weighted:
        return (weights > 0).astype(np.uint8)

    # Numbers of paths fit, what they carry may not.
    return (weights if links.units == 1 else small(weights)).astype(np.uint8)


class _Below(NamedTuple):
    """What leads down to edges: whether each uplink's agg does, reach (destinations, uplinks).

    To `slow` edges, as slow links lead there, an edge has other weights than to their pod:
    `weights` (slow edges, uplinks).
    """

    reach: Bools
    slow: Int64
    weights: Slots


def _below(
    paths: Paths, links: LinkState, policy: Policy, edge: int, to_pods: Int64, reach: Bools
) -> _Below:
    """Return what leads down as one edge sees it, of whose weights `to_pods` are those to pods."""
    edges = paths.behind_slow_links
    if not policy.weighted or not len(edges):
        return _Below(reach, np.zeros(0, dtype=np.int64), to_pods[:0].astype(np.uint8))

    weights = paths.to_edges(edge, edges)
    # Where a slow link is left out anyhow, as what is before or behind it is dead, nothing differs.
    pods = edges * len(to_pods) // len(reach)
    differ = (weights != to_pods[pods] * reach[edges]).any(axis=1) & (edges != edge)
    return _Below(reach, edges[differ], _weights_of(policy, weights[differ], links))


@dataclass(frozen=True, slots=True)
class _Switch:
    """One switch: its schedules in a row and their lengths, and who uses which.

    `group_schedule` is each group's schedule, `groups` each destination's group.
    """

    slots: Slots
    lengths: Int64
    group_schedule: Int32
    groups: Int32


def _rotation(weights: Slots, below: _Below | None, orders: Int64, own: int) -> _Switch:
    """Give every destination a group.

    Destinations of one pod share its schedule unless they must skip uplinks, or spare them.

    weights (pods, uplinks); `below` is None at aggs.
    """
    rows = simplify(weights)
    used = np.arange(len(weights))
    if below is not None:
        apart, used = _apart(rows, below)

        # Filtered after the division: the same sequence as the pod's with slots left out.
        rows = np.concatenate([rows, _own_rows(rows, below, apart)])
        orders = np.concatenate([orders, orders[apart * len(weights) // len(below.reach)]])

    # What is below the switch itself goes down, and needs no group.
    slots, lengths = interleave(rows, orders)
    used[own] = NONE
    used[lengths[used] == 0] = NONE

    return _Switch(
        slots,
        lengths,
        used.astype(np.int32),
        np.where(used == NONE, NONE, np.arange(len(used))).astype(np.int32),
    )


def _apart(rows: Slots, below: _Below) -> tuple[Int64, Int64]:
    """Return the destination edges that have rows of their own, and each destination's row.

    Those are what some uplink in use does not reach, and `below.slow`. rows (pods, uplinks) are the
    weights towards pods; rows of their own follow the pods' in that order.
    """
    # Where no path to the pod leads through an agg, losing the link to it makes nobody skip.
    reach = below.reach
    in_pod = len(reach) // len(rows)
    of_destination = np.repeat(np.arange(len(rows)), in_pod)
    missing = np.flatnonzero(~reach.all(axis=1))
    skipping = missing[((rows[missing // in_pod] > 0) & ~reach[missing]).any(axis=1)]
    apart = np.union1d(skipping, below.slow)
    of_destination[apart] = len(rows) + np.arange(len(apart))

    return apart, of_destination


def _own_rows(rows: Slots, below: _Below, apart: Int64) -> Slots:
    """Return the weights of destination edges that have rows of their own."""
    found: Slots = rows[apart * len(rows) // len(below.reach)] * below.reach[apart]
    found[np.searchsorted(apart, below.slow)] = simplify(below.weights)
    return found


def _rotation_per_pointer(weights: Slots, below: _Below | None, orders: Int64, own: int) -> _Switch:
    """Give every destination a group with a schedule and an order of its own (the paper's text)."""
    slots, lengths = interleave(simplify(_of_destinations(weights, below)), orders)
    chosen = np.where(lengths > 0, np.arange(len(lengths)), NONE).astype(np.int32)
    chosen[own] = NONE

    return _Switch(slots, lengths, chosen, chosen)


def _split(state: _Switch, copies: int) -> _Switch:
    """Give each of a destination's `copies` parts a group of its own, on the same schedule."""
    numbers = state.groups[:, None] * copies + np.arange(copies)
    groups = np.where(state.groups[:, None] == NONE, NONE, numbers).ravel().astype(np.int32)
    return replace(state, group_schedule=np.repeat(state.group_schedule, copies), groups=groups)


def _merged(state: _Switch) -> _Switch:
    """Give all destinations that walk one schedule, those of a pod, one group."""
    schedules = np.where(state.groups == NONE, NONE, state.group_schedule[state.groups])
    used, numbers = np.unique(schedules[schedules != NONE], return_inverse=True)
    groups = np.full_like(state.groups, NONE)
    groups[schedules != NONE] = numbers

    return replace(state, group_schedule=used.astype(np.int32), groups=groups)


def _consolidated(
    tree: FatTree, state: _Switch, own: PointerLevel, wanted: PointerLevel
) -> _Switch:
    """Regroup a switch whose columns are of the level `own`; merged columns stay."""
    if wanted == own:
        return state

    # How many columns of the level wanted are in one of the switch's, below 1 where it is coarser.
    copies = destinations(tree, wanted) // destinations(tree, own)
    is_finer = LEVELS.index(wanted) > LEVELS.index(own)
    return _split(state, copies) if is_finer else _merged(state)


def destinations(tree: FatTree, level: PointerLevel) -> int:
    """Return how many destinations of a level there are."""
    return {"pod": tree.pods, "edge": tree.edges, "host": tree.hosts}[level]


def _of_destinations(weights: Slots, below: _Below | None) -> Slots:
    if below is None:
        return weights

    rows: Slots = np.repeat(weights, len(below.reach) // len(weights), axis=0) * below.reach
    rows[below.slow] = below.weights
    return rows


def _next_hop_sets(weights: Slots, below: _Below | None, orders: Int64, own: int) -> _Switch:
    """Give every distinct set of (uplink, weight) a group, numbered as first needed."""
    rows = weights
    of_destination = np.arange(len(weights))
    if below is not None:
        apart, of_destination = _apart(rows, below)
        rows = np.concatenate([rows, _own_rows(rows, below, apart)])

    # Simplified after the filter, unlike a rotation's: sets are equal when their shares are.
    of_destination[own] = NONE
    rows = simplify(rows)
    group_of_row, groups = _number(rows, of_destination)
    sets = np.repeat(rows[groups], len(orders), axis=0)
    slots, lengths = interleave(sets, np.tile(orders, (len(groups), 1)))

    return _Switch(
        slots,
        lengths,
        np.arange(0, len(sets), len(orders), dtype=np.int32),
        group_of_row[of_destination],
    )


def _number(rows: Slots, of_destination: Int64) -> tuple[Int32, list[int]]:
    """Number the distinct rows as destinations first need them.

    Return the group of each row (NONE where it is zero or not needed, and once more at the end) and
    a row of each group.
    """
    needed, first = np.unique(of_destination[of_destination != NONE], return_index=True)
    # The one more at the end is what NONE, -1, finds.
    groups: dict[bytes, int] = {}
    group_of_row = np.full(len(rows) + 1, NONE, dtype=np.int32)
    row_of_group: list[int] = []

    for row in needed[np.argsort(first)].tolist():
        if rows[row].any():
            group = groups.setdefault(rows[row].tobytes(), len(groups))
            if group == len(row_of_group):
                row_of_group.append(row)

            group_of_row[row] = group

    return group_of_row, row_of_group


def _switches(
    tree: FatTree,
    links: LinkState,
    policy: Policy,
    seed: int,
    schedule_orders: ScheduleOrders,
    wanted: Consolidation,
    drawn: Drawn,
) -> Iterator[_Switch]:
    # A block is an order: one for each pod or pointer of a rotation, else one for all groups of a
    # switch (16 for Switch Pkt).
    build = _rotation if policy.per_destination else _next_hop_sets
    edge_blocks = agg_blocks = tree.pods if policy.per_destination else order_count(policy)
    if policy.per_destination and schedule_orders == "per_pointer":
        build = _rotation_per_pointer
        edge_blocks = tree.edges

    paths = Paths(tree, links)
    carried = paths.to_pods()
    to_pods = _weights_of(policy, carried, links)
    through_cores = _weights_of(policy, agg_weights(tree, links), links).reshape(
        tree.aggs, tree.pods, tree.agg_uplinks
    )
    reaches = reach(tree, links)
    edges, aggs = np.arange(tree.edges), np.arange(tree.first_agg, tree.first_core)
    for edge, orders in _orders_of(policy, seed, edges, tree.edge_uplinks, edge_blocks, drawn):
        below = _below(paths, links, policy, edge, carried[edge], reaches)
        state = build(to_pods[edge], below, orders, edge)
        yield _consolidated(tree, state, "edge", wanted.edge)

    for agg, orders in _orders_of(policy, seed, aggs, tree.agg_uplinks, agg_blocks, drawn):
        pod = tree.position(tree.first_agg + agg)[0]
        state = build(through_cores[agg], None, orders, pod)
        yield _consolidated(tree, state, "pod", wanted.agg)


def _orders_of(
    policy: Policy, seed: int, tier: Int64, uplinks: int, blocks: int, drawn: Drawn
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield every switch of a tier, from 0, with its orders.

    Drawn some switches at a time, which bounds the memory.
    """
    for first in range(0, len(tier), TOGETHER):
        switches = tier[first : first + TOGETHER]
        orders = drawn.orders(
            int(switches[0]), partial(port_orders, policy, seed, switches, uplinks, blocks)
        )
        yield from zip(range(first, first + TOGETHER), orders, strict=False)


def order_count(policy: Policy) -> int:
    """Return how many schedules a group owns: 16 random orders for Switch Pkt, else one."""
    return RESHUFFLE_ORDERS if policy.chooser is Chooser.RESHUFFLED else 1


def forwarding(
    tree: FatTree,
    links: LinkState,
    policy: Policy,
    seed: int,
    schedule_orders: ScheduleOrders = "per_pod",
    consolidation: Consolidation = OFAN,
    drawn: Drawn | None = None,
) -> Forwarding:
    """Compute groups, schedules and starts of all edges and aggs for one state of the links.

    Rotations alone have these options: `schedule_orders`, one shuffled order per destination pod
    (appendix F) or per pointer (section 6), and `consolidation`; pods at edges need an order per
    pod. `drawn` remembers what the links do not change, for calls that differ in `links` only.
    """
    wanted = consolidation if policy.per_destination else OFAN
    drawn = drawn or Drawn()
    states = list(
        _switches(
            tree,
            links,
            policy,
            seed=seed,
            schedule_orders=schedule_orders,
            wanted=wanted,
            drawn=drawn,
        )
    )

    lengths = np.concatenate([state.lengths for state in states])
    first_group = offsets(np.array([len(state.group_schedule) for state in states]))
    first_schedule = offsets(np.array([len(state.lengths) for state in states]))
    group_schedule = np.concatenate([state.group_schedule for state in states])

    return Forwarding(
        tree=tree,
        links=links,
        policy=policy,
        orders=order_count(policy),
        edge_group=np.stack([state.groups for state in states[: tree.edges]]),
        agg_group=np.stack([state.groups for state in states[tree.edges :]]),
        first_group=first_group,
        group_schedule=group_schedule,
        group_start=_starts(
            seed,
            first_group,
            first_schedule,
            group_schedule=group_schedule,
            lengths=lengths,
            drawn=drawn,
        ),
        first_schedule=first_schedule,
        schedule_offset=offsets(lengths),
        slots=np.concatenate([state.slots for state in states]),
        columns=wanted._replace(edge="host" if wanted.edge == "host" else "edge"),
    )


def consolidation(scenario: Scenario) -> Consolidation:
    """Return for what rotations keep pointers: as a scenario says, else what its fabric needs."""
    options = scenario.load_balancer
    usual = OF_HOSTS if scenario.tree.has_parallel_links else OFAN
    return Consolidation(options.edge_pointers or usual.edge, options.agg_pointers or usual.agg)


def scenario_forwarding(
    scenario: Scenario, links: LinkState, drawn: Drawn | None = None
) -> Forwarding:
    """Compute a scenario's forwarding for one state of the links.

    `drawn` is kept by who computes several.
    """
    return forwarding(
        scenario.tree,
        links,
        policy=scenario.scheme,
        seed=scenario.seed,
        schedule_orders=scenario.load_balancer.schedule_orders,
        consolidation=consolidation(scenario),
        drawn=drawn,
    )


def _starts(
    seed: int,
    first_group: Int64,
    first_schedule: Int64,
    group_schedule: Int32,
    lengths: Int64,
    drawn: Drawn,
) -> Int32:
    """Return random starts (groups, 2).

    The ACKs' start is half a schedule after the data's (load balancers, Ofan).
    """
    # An unused group's length is taken as 1, which makes its starts 0.
    counts = np.diff(first_group)
    switch = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    draws = drawn.starts(counts, partial(_start_draws, seed, switch, first_group))
    starts = np.empty((len(switch), 2), dtype=np.int32)

    for first in range(0, len(switch), CACHED):
        here = slice(first, first + CACHED)
        used = group_schedule[here] != NONE
        own = first_schedule[switch[here]] + np.maximum(group_schedule[here], 0)
        length = np.where(used, lengths[own], 1)
        starts[here, 0] = data = below(draws[here].astype(np.int64), length)
        starts[here, 1] = (data + length // 2) % length

    return starts


def _start_draws(seed: int, switch: Int32, first_group: Int64) -> Int64:
    local = np.arange(len(switch)) - first_group[switch]
    draws: Int64 = mix(seed, component(Stream.START, 0) + switch.astype(np.int64), local)
    return draws
