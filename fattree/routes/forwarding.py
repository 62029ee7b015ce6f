"""Every switch's groups and schedules as arrays, from (tree, links, policy, seed).

The controller's plan turns these arrays into table entries and the simulator walks them directly,
so weights, schedules, random starts and orders are written once. `fattree.routes.groups` computes
the groups and schedules of one switch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import offsets
from fattree.draws import Stream, below, component, mix
from fattree.experiment.failures import Weights
from fattree.experiment.model import Scenario
from fattree.policies import RESHUFFLE_ORDERS, Chooser, Policy
from fattree.routes.bgp import AnnouncedPaths
from fattree.routes.groups import (
    NONE,
    OF_HOSTS,
    OFAN,
    Consolidation,
    Int32,
    Int64,
    Slots,
    SwitchGroups,
    consolidated,
    next_hop_sets,
    rotation,
    rotation_per_pointer,
    seen_below,
    weights_of,
)
from fattree.routes.wecmp import LinkState, Paths, reach
from fattree.shape.topology import FatTree

ScheduleOrders = Literal["per_pod", "per_pointer"]
# Groups at a time: results for so many stay in the processor's cache.
CACHED = 1 << 15
# The number of switches with orders drawn at once.
TOGETHER = 16


@dataclass(frozen=True, slots=True, eq=False)
class Forwarding:
    """The northbound state of all edges and aggs, the first switches.

    Southbound routes follow from the addresses, and from `links` where there are parallel ones
    (`routes.southbound`).

    edge_group (edges, edges) and agg_group (aggs, pods): local group of a destination edge or pod,
    NONE without a path; with a finer consolidation `columns` defines a column (edges', aggs'), down
    to a host; first_group (switches + 1): a switch's groups are first_group[switch] + local group;
    group_schedule (groups,): local schedule of a group, NONE where it is unused; group_start
    (groups, 2): where the pointers of data and ACKs start; first_schedule (switches + 1),
    schedule_offset (schedules + 1,), slots: flat schedules. A group of a RESHUFFLED policy owns
    `orders` (16) consecutive schedules of one length, else a single schedule.
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
    """The random orders and starts of one scenario, drawn once as they do not depend on links."""

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


def _switches(
    tree: FatTree,
    links: LinkState,
    policy: Policy,
    seed: int,
    schedule_orders: ScheduleOrders,
    consolidation: Consolidation,
    drawn: Drawn,
    weights: Weights,
) -> Iterator[SwitchGroups]:
    build = builder(policy, schedule_orders)
    paths: Paths | AnnouncedPaths
    if weights == "bgp":
        links = links.at_full_rates
        paths = AnnouncedPaths(tree, links)
    else:
        paths = Paths(tree, links)

    carried = paths.to_pods()
    to_pods = weights_of(policy, carried, links)
    through_cores = weights_of(policy, paths.through_cores(), links).reshape(
        tree.aggs, tree.pods, tree.agg_uplinks
    )
    reaches = reach(tree, links)
    for edge, orders in edge_orders(tree, policy, seed, schedule_orders, drawn):
        below = seen_below(paths, links, policy, edge, carried[edge], reaches)
        state = build(to_pods[edge], below, orders, edge)
        yield consolidated(tree, state, "edge", consolidation.edge)

    for agg, orders in agg_orders(tree, policy, seed, drawn):
        pod = tree.position(tree.first_agg + agg)[0]
        state = build(through_cores[agg], None, orders, pod)
        yield consolidated(tree, state, "pod", consolidation.agg)


def builder(policy: Policy, schedule_orders: ScheduleOrders) -> Callable[..., SwitchGroups]:
    """Return the function that makes a switch's groups for a load balancer."""
    if not policy.per_destination:
        return next_hop_sets

    return rotation_per_pointer if schedule_orders == "per_pointer" else rotation


def edge_orders(
    tree: FatTree, policy: Policy, seed: int, schedule_orders: ScheduleOrders, drawn: Drawn
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield every edge with its orders.

    An order for each pod or pointer of a rotation, else an order for all groups of a switch (16 for
    Switch Pkt).
    """
    blocks = tree.pods if policy.per_destination else order_count(policy)
    if policy.per_destination and schedule_orders == "per_pointer":
        blocks = tree.edges

    return _orders_of(policy, seed, np.arange(tree.edges), tree.edge_uplinks, blocks, drawn)


def agg_orders(
    tree: FatTree, policy: Policy, seed: int, drawn: Drawn
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield every agg, from 0, with its orders."""
    blocks = tree.pods if policy.per_destination else order_count(policy)
    aggs = np.arange(tree.first_agg, tree.first_core)
    return _orders_of(policy, seed, aggs, tree.agg_uplinks, blocks, drawn)


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
    """Return how many schedules a group owns: 16 random orders for Switch Pkt, else 1."""
    return RESHUFFLE_ORDERS if policy.chooser is Chooser.RESHUFFLED else 1


def forwarding(
    tree: FatTree,
    links: LinkState,
    policy: Policy,
    seed: int,
    schedule_orders: ScheduleOrders = "per_pod",
    consolidation: Consolidation = OFAN,
    drawn: Drawn | None = None,
    weights: Weights = "exact",
) -> Forwarding:
    """Compute groups, schedules and starts of all edges and aggs for one state of the links.

    Only rotations have these options: `schedule_orders`, one shuffled order per destination pod
    (appendix F) or per pointer (section 7), and `consolidation`; pods at edges need an order per
    pod. `drawn` keeps the random draws for further calls that differ only in `links`. `weights`:
    the paper's W-ECMP, or those that BGP gives (`fattree.routes.bgp`).
    """
    levels = consolidation if policy.per_destination else OFAN
    drawn = drawn or Drawn()
    states = list(
        _switches(
            tree,
            links,
            policy,
            seed=seed,
            schedule_orders=schedule_orders,
            consolidation=levels,
            drawn=drawn,
            weights=weights,
        )
    )

    return assembled(tree, links, policy, seed, states=states, levels=levels, drawn=drawn)


def assembled(
    tree: FatTree,
    links: LinkState,
    policy: Policy,
    seed: int,
    *,
    states: Sequence[SwitchGroups],
    levels: Consolidation,
    drawn: Drawn,
) -> Forwarding:
    """Return the forwarding of the groups of all edges, then of all aggs."""
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
        columns=levels._replace(edge="host" if levels.edge == "host" else "edge"),
    )


def consolidation(scenario: Scenario) -> Consolidation:
    """Return the destinations with pointers: as set in the scenario, else as the fabric needs."""
    options = scenario.load_balancer
    usual = OF_HOSTS if scenario.tree.has_parallel_links else OFAN
    return Consolidation(options.edge_pointers or usual.edge, options.agg_pointers or usual.agg)


def scenario_forwarding(
    scenario: Scenario, links: LinkState, drawn: Drawn | None = None
) -> Forwarding:
    """Compute a scenario's forwarding for one state of the links.

    Callers that compute several states pass the same `drawn`.
    """
    return forwarding(
        scenario.tree,
        links,
        policy=scenario.scheme,
        seed=scenario.seed,
        schedule_orders=scenario.load_balancer.schedule_orders,
        consolidation=consolidation(scenario),
        drawn=drawn,
        weights=scenario.controller.weights,
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
        schedule = first_schedule[switch[here]] + np.maximum(group_schedule[here], 0)
        length = np.where(used, lengths[schedule], 1)
        starts[here, 0] = data = below(draws[here].astype(np.int64), length)
        starts[here, 1] = (data + length // 2) % length

    return starts


def _start_draws(seed: int, switch: Int32, first_group: Int64) -> Int64:
    local = np.arange(len(switch)) - first_group[switch]
    draws: Int64 = mix(seed, component(Stream.START, 0) + switch.astype(np.int64), local)
    return draws
