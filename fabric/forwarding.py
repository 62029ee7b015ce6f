"""Every switch's groups and schedules as arrays, from (tree, links, policy, seed).

The controller's plan turns these arrays into table entries and the simulator walks them directly, so weights, schedules,
random starts and orders are written once. A group is what owns a pointer: a destination edge (at edges) or pod (at aggs)
for Ofan, a distinct set of (uplink, weight) for everyone else. Schedules are sequences of uplinks (from 0).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabric.draws import Stream, below, component, mix
from fabric.iwrr import interleave, simplify
from fabric.policies import RESHUFFLE_ORDERS, Chooser, Policy
from fabric.topology import FatTree
from fabric.wecmp import LinkState, agg_weights, pod_weights

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Slots = NDArray[np.uint8]
ScheduleOrders = Literal["per_pod", "per_pointer"]
NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Forwarding:
    """The northbound state of all edges and aggs (switches 0 .. 2 E - 1); southbound routes follow from the addresses.

    edge_group (E, E) and agg_group (E, k): local group of a destination edge or pod, NONE without a path;
    first_group (2 E + 1): a switch's groups are first_group[switch] + local group;
    group_schedule (groups,): local schedule of a group, NONE where it is unused; group_start (groups, 2): where the
    pointers of data and ACKs start; first_schedule (2 E + 1), schedule_offset (schedules + 1,), slots: flat schedules.
    A group of a RESHUFFLED policy owns `orders` (16) consecutive schedules of one length, else one.
    """

    tree: FatTree
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

    def schedule(self, switch: int, schedule: int) -> Slots:
        """Return the uplinks of a switch's local schedule."""
        index = self.first_schedule[switch] + schedule
        return self.slots[self.schedule_offset[index] : self.schedule_offset[index + 1]]

    def groups(self, switch: int) -> range:
        """Return the global group indices of a switch."""
        return range(int(self.first_group[switch]), int(self.first_group[switch + 1]))

    def group_of(self, switch: int, destination: int) -> int:
        """Return the local group of a destination edge (at an edge) or pod (at an agg), NONE without one."""
        edges = self.tree.edges
        return int(self.edge_group[switch, destination] if switch < edges else self.agg_group[switch - edges, destination])


def hash_multiplier(seed: int, switch: int) -> int:
    """Return the odd 32-bit multiplier of a switch's ECMP hash (design, decision 12)."""
    return int(mix(seed, component(Stream.MULTIPLIER, 0), switch)) | 1


def port_orders(tree: FatTree, policy: Policy, seed: int, switches: NDArray[np.int64], blocks: int) -> Int64:
    """Return orders[switch, block, h]: a random permutation of the uplinks each, or the plain order if not shuffled.

    They depend on the seed only, never on failures (design, decision 8).
    """
    if not policy.shuffled:
        return np.broadcast_to(np.arange(tree.half), (len(switches), blocks, tree.half))
    numbers = (np.arange(blocks) * 256)[:, None] + np.arange(tree.half)
    draws = mix(seed, component(Stream.ORDER, 0) + switches[:, None, None], numbers)
    return np.argsort(draws, axis=2, kind="stable")


@dataclass(slots=True)
class _Switch:
    """The groups and schedules of one switch while they are collected."""

    schedules: list[Slots]
    group_schedule: list[int]
    groups: list[int]


def _weights_of(policy: Policy, weights: Int64) -> Int64:
    return weights if policy.weighted else (weights > 0).astype(np.int64)


def _interleave(weights: Int64, order: Int64) -> Slots:
    if weights[0] > 0 and (weights == weights[0]).all():
        return order.astype(np.uint8)
    return interleave(np.array(simplify(weights.tolist())), order)


def _rotation(weights: Int64, reach: NDArray[np.bool_] | None, orders: Int64, own: int) -> _Switch:
    """Give every destination a group; destinations of one pod share its schedule unless they must skip uplinks.

    weights (pods, h); reach (destinations, h) tells which uplinks' aggs reach a destination edge, None at aggs.
    """
    schedules = [_interleave(row, order) for row, order in zip(weights, orders, strict=False)]
    if reach is None:
        chosen = [NONE if pod == own or not len(schedule) else pod for pod, schedule in enumerate(schedules)]
        return _Switch(schedules, chosen, [NONE if schedule == NONE else pod for pod, schedule in enumerate(chosen)])
    half = reach.shape[1]
    chosen = np.repeat(np.arange(len(schedules)), half).tolist()
    for destination in np.flatnonzero(~reach.all(axis=1)):
        shared = schedules[destination // half]
        kept = shared[reach[destination][shared]]
        if len(kept) < len(shared):
            chosen[destination] = len(schedules)
            schedules.append(kept)
    chosen = [NONE if index == own or not len(schedules[slot]) else slot for index, slot in enumerate(chosen)]
    return _Switch(schedules, chosen, [NONE if slot == NONE else index for index, slot in enumerate(chosen)])


def _rotation_per_pointer(weights: Int64, reach: NDArray[np.bool_] | None, orders: Int64, own: int) -> _Switch:
    """Give every destination a group with a schedule and an order of its own (section 6's reading)."""
    rows = weights if reach is None else np.repeat(weights, reach.shape[1], axis=0) * reach
    schedules = [_interleave(row, order) for row, order in zip(rows, orders, strict=True)]
    chosen = [NONE if index == own or not len(schedule) else index for index, schedule in enumerate(schedules)]
    return _Switch(schedules, chosen, chosen)


def _next_hop_sets(weights: Int64, reach: NDArray[np.bool_] | None, orders: Int64, own: int) -> _Switch:
    """Give every distinct set of (uplink, weight) a group, numbered as destinations first need it."""
    rows = weights if reach is None else np.repeat(weights, reach.shape[1], axis=0) * reach
    state = _Switch([], [], [])
    seen: dict[bytes, int] = {}
    for index, row in enumerate(rows):
        key = (row // max(np.gcd.reduce(row), 1)).tobytes()
        if index == own or not row.any():
            state.groups.append(NONE)
            continue
        if key not in seen:
            seen[key] = len(state.group_schedule)
            state.group_schedule.append(len(state.schedules))
            state.schedules.extend(_interleave(row, order) for order in orders)
        state.groups.append(seen[key])
    return state


def _switches(tree: FatTree, links: LinkState, policy: Policy, seed: int, schedule_orders: ScheduleOrders) -> Iterator[_Switch]:
    edges, pods = np.arange(tree.edges), tree.k
    build = _rotation if policy.per_destination else _next_hop_sets
    edge_blocks = agg_blocks = pods if policy.per_destination else order_count(policy)
    if policy.per_destination and schedule_orders == "per_pointer":
        build, edge_blocks = _rotation_per_pointer, tree.edges
    to_pods = _weights_of(policy, pod_weights(tree, links))
    orders = port_orders(tree, policy, seed, edges, edge_blocks)
    for edge in edges:
        yield build(to_pods[edge], links.edge_agg, orders[edge], int(edge))
    through_cores = _weights_of(policy, agg_weights(tree, links)).reshape(tree.edges, pods, tree.half)
    orders = port_orders(tree, policy, seed, tree.edges + edges, agg_blocks)
    for agg in edges:
        yield build(through_cores[agg], None, orders[agg], int(agg) // tree.half)


def order_count(policy: Policy) -> int:
    """Return how many schedules a group owns: 16 random orders for Switch Pkt, one for everyone else."""
    return RESHUFFLE_ORDERS if policy.chooser is Chooser.RESHUFFLED else 1


def forwarding(
    tree: FatTree, links: LinkState, policy: Policy, seed: int, schedule_orders: ScheduleOrders = "per_pod"
) -> Forwarding:
    """Compute groups, schedules and starts of all edges and aggs for one state of the links.

    `schedule_orders` is Ofan's: one shuffled order per destination pod (appendix F) or per pointer (section 6).
    """
    states = list(_switches(tree, links, policy, seed, schedule_orders))
    schedules = [schedule for state in states for schedule in state.schedules]
    lengths = np.fromiter(map(len, schedules), dtype=np.int64, count=len(schedules))
    first_group = _offsets(np.array([len(state.group_schedule) for state in states]))
    first_schedule = _offsets(np.array([len(state.schedules) for state in states]))
    group_schedule = np.array([s for state in states for s in state.group_schedule], dtype=np.int32)
    groups_of = [np.array(state.groups, dtype=np.int32) for state in states]
    return Forwarding(
        tree=tree,
        policy=policy,
        orders=order_count(policy),
        edge_group=np.stack(groups_of[: tree.edges]),
        agg_group=np.stack(groups_of[tree.edges :]),
        first_group=first_group,
        group_schedule=group_schedule,
        group_start=_starts(policy, seed, first_group, first_schedule, group_schedule, lengths),
        first_schedule=first_schedule,
        schedule_offset=_offsets(lengths),
        slots=np.concatenate(schedules) if schedules else np.empty(0, dtype=np.uint8),
    )


def _offsets(lengths: NDArray[np.int64]) -> Int64:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _starts(policy: Policy, seed: int, first_group: Int64, first_schedule: Int64, group_schedule: Int32, lengths: Int64) -> Int32:
    """Return random starts (groups, 2); the ACKs' start is half a schedule after the data's (load balancers, Ofan)."""
    counts = np.diff(first_group)
    switch = np.repeat(np.arange(len(counts)), counts)
    local = np.arange(len(group_schedule)) - np.repeat(first_group[:-1], counts)
    used = group_schedule != NONE
    length = np.where(used, lengths[first_schedule[switch] + np.maximum(group_schedule, 0)], 1)
    data = below(mix(seed, component(Stream.START, 0) + switch, local), length)
    return np.stack([data, (data + length // 2) % length], axis=1).astype(np.int32)
