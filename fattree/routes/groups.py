"""One switch's groups: which destinations share a schedule or pointer, from weights and orders.

A group has its own pointer. For Ofan a group is a destination edge (at edges) or pod (at aggs), for
all other load balancers the destinations with the same set of (uplink, weight). Schedules are
sequences of uplinks (from 0).
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.policies import Policy
from fattree.routes.bgp import AnnouncedPaths
from fattree.routes.iwrr import interleave, simplify
from fattree.routes.wecmp import LinkState, Paths, small
from fattree.shape.topology import FatTree

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Slots = NDArray[np.uint8]
Bools = NDArray[np.bool_]
PointerLevel = Literal["pod", "edge", "host"]
LEVELS: tuple[PointerLevel, ...] = ("pod", "edge", "host")
NONE = -1


class Consolidation(NamedTuple):
    """The kinds of destinations for which a rotation has pointers, in edges and in aggs.

    Ofan's kinds are the highest (appendix F).
    """

    edge: PointerLevel = "edge"
    agg: PointerLevel = "pod"


OFAN = Consolidation()
# Parallel links down are dealt out to hosts (`routes.southbound`): one pointer for two hosts may
# give each of them one uplink, and so all that the one receives to one link of a bundle.
OF_HOSTS = Consolidation("host", "host")


def weights_of(policy: Policy, weights: Int64, links: LinkState) -> Slots:
    """Return the weights that a policy uses, each a byte (`fattree.routes.wecmp`)."""
    if not policy.weighted:
        return (weights > 0).astype(np.uint8)

    # Numbers of paths fit, their capacities may not.
    return (weights if links.units == 1 else small(weights)).astype(np.uint8)


class Below(NamedTuple):
    """Whether each uplink's agg reaches the edges below: reach (destinations, uplinks).

    For edges `apart` an edge has other weights than for their pod: `weights` (edges, uplinks). They
    are behind slow links, or behind failed links under BGP's weights.
    """

    reach: Bools
    apart: Int64
    weights: Slots


def seen_below(
    paths: Paths | AnnouncedPaths,
    links: LinkState,
    policy: Policy,
    edge: int,
    to_pods: Int64,
    reach: Bools,
) -> Below:
    """Return the `Below` of an edge with `to_pods` as its weights to pods."""
    edges = paths.apart
    if not policy.weighted or not len(edges):
        return Below(reach, np.zeros(0, dtype=np.int64), to_pods[:0].astype(np.uint8))

    weights = paths.to_edges(edge, edges)
    # If such a link is left out anyhow, as a link before or behind it is dead, nothing differs.
    pods = edges * len(to_pods) // len(reach)
    differ = (weights != to_pods[pods] * reach[edges]).any(axis=1) & (edges != edge)
    return Below(reach, edges[differ], weights_of(policy, weights[differ], links))


@dataclass(frozen=True, slots=True)
class SwitchGroups:
    """One switch: its schedules one after the other, their lengths, and which group uses which.

    `group_schedule` is each group's schedule, `groups` each destination's group.
    """

    slots: Slots
    lengths: Int64
    group_schedule: Int32
    groups: Int32


def rotation(weights: Slots, below: Below | None, orders: Int64, own_column: int) -> SwitchGroups:
    """Give every destination a group.

    Destinations of one pod share its schedule unless they must skip uplinks, or use them less.

    weights (pods, uplinks); `below` is None at aggs.
    """
    rows = simplify(weights)
    used = np.arange(len(weights))
    if below is not None:
        apart, used = _apart(rows, below)

        # Filtered after the division: the same sequence as the pod's with slots left out.
        rows = np.concatenate([rows, _own_rows(rows, below, apart)])
        orders = np.concatenate([orders, orders[apart * len(weights) // len(below.reach)]])

    # Destinations below the switch itself go down, and need no group.
    slots, lengths = interleave(rows, orders)
    used[own_column] = NONE
    used[lengths[used] == 0] = NONE

    return SwitchGroups(
        slots,
        lengths,
        used.astype(np.int32),
        np.where(used == NONE, NONE, np.arange(len(used))).astype(np.int32),
    )


def _apart(rows: Slots, below: Below) -> tuple[Int64, Int64]:
    """Return the destination edges that need separate rows, and each destination's row.

    These are edges that an uplink in use does not reach, and `below.apart`. rows (pods, uplinks)
    are the weights towards pods; the separate rows follow them, in the order of the edges.
    """
    # If no path to the pod leads through an agg, the loss of the link to it makes no edge skip.
    reach = below.reach
    in_pod = len(reach) // len(rows)
    of_destination = np.repeat(np.arange(len(rows)), in_pod)
    missing = np.flatnonzero(~reach.all(axis=1))
    skipping = missing[((rows[missing // in_pod] > 0) & ~reach[missing]).any(axis=1)]
    apart = np.union1d(skipping, below.apart)
    of_destination[apart] = len(rows) + np.arange(len(apart))

    return apart, of_destination


def _own_rows(rows: Slots, below: Below, apart: Int64) -> Slots:
    """Return the weights of the destination edges with separate rows."""
    separate: Slots = rows[apart * len(rows) // len(below.reach)] * below.reach[apart]
    separate[np.searchsorted(apart, below.apart)] = simplify(below.weights)
    return separate


def rotation_per_pointer(
    weights: Slots, below: Below | None, orders: Int64, own_column: int
) -> SwitchGroups:
    """Give every destination a group with a schedule and an order of its own (the paper's text)."""
    slots, lengths = interleave(simplify(_of_destinations(weights, below)), orders)
    chosen = np.where(lengths > 0, np.arange(len(lengths)), NONE).astype(np.int32)
    chosen[own_column] = NONE

    return SwitchGroups(slots, lengths, chosen, chosen)


def _of_destinations(weights: Slots, below: Below | None) -> Slots:
    if below is None:
        return weights

    rows: Slots = np.repeat(weights, len(below.reach) // len(weights), axis=0) * below.reach
    rows[below.apart] = below.weights
    return rows


def next_hop_sets(
    weights: Slots, below: Below | None, orders: Int64, own_column: int
) -> SwitchGroups:
    """Give every distinct set of (uplink, weight) a group, numbered as first needed."""
    rows = weights
    of_destination = np.arange(len(weights))
    if below is not None:
        apart, of_destination = _apart(rows, below)
        rows = np.concatenate([rows, _own_rows(rows, below, apart)])

    # Simplified after the filter, unlike a rotation's: sets are equal when their shares are.
    of_destination[own_column] = NONE
    rows = simplify(rows)
    group_of_row, groups = _number(rows, of_destination)
    sets = np.repeat(rows[groups], len(orders), axis=0)
    slots, lengths = interleave(sets, np.tile(orders, (len(groups), 1)))

    return SwitchGroups(
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
    # NONE, -1, finds the additional column at the end.
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


def consolidated(
    tree: FatTree, state: SwitchGroups, level: PointerLevel, target_level: PointerLevel
) -> SwitchGroups:
    """Regroup a switch from columns of `level` to `target_level`; merged columns stay."""
    if target_level == level:
        return state

    # How many columns of `target_level` are in a column of the switch's, below 1 if it is coarser.
    copies = destinations(tree, target_level) // destinations(tree, level)
    is_finer = LEVELS.index(target_level) > LEVELS.index(level)
    return _split(state, copies) if is_finer else _merged(state)


def _split(state: SwitchGroups, copies: int) -> SwitchGroups:
    """Give each of a destination's `copies` parts a separate group, on the same schedule."""
    numbers = state.groups[:, None] * copies + np.arange(copies)
    groups = np.where(state.groups[:, None] == NONE, NONE, numbers).ravel().astype(np.int32)
    return replace(state, group_schedule=np.repeat(state.group_schedule, copies), groups=groups)


def _merged(state: SwitchGroups) -> SwitchGroups:
    """Give all destinations with the same schedule, those of a pod, one group."""
    schedules = np.where(state.groups == NONE, NONE, state.group_schedule[state.groups])
    used, numbers = np.unique(schedules[schedules != NONE], return_inverse=True)
    groups = np.full_like(state.groups, NONE)
    groups[schedules != NONE] = numbers

    return replace(state, group_schedule=used.astype(np.int32), groups=groups)


def destinations(tree: FatTree, level: PointerLevel) -> int:
    """Return how many destinations of a level there are."""
    return {"pod": tree.pods, "edge": tree.edges, "host": tree.hosts}[level]
