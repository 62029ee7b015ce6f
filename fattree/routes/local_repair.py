"""Local repair: a switch leaves its own dead uplinks at once, before the routes converge.

It is an option, off by default (design, decision 8). Its schedules keep their order without the
dead slots. Groups left without a slot have no path. Pointers stay; a start beyond the shorter
schedule's end is 0. The same rule on one switch's table entries is `controller.local_repair`, which
has the reason for two.
"""

from dataclasses import replace

import numpy as np

from fattree.routes.forwarding import Forwarding
from fattree.routes.groups import NONE
from fattree.routes.wecmp import LinkState


def repaired(table: Forwarding, links: LinkState) -> Forwarding:
    """Return the forwarding of routes that may be stale, without each switch's dead uplinks."""
    # Switches are edges, then aggs, and the rows of both arrays of links follow their lower ends.
    switches = len(table.first_schedule) - 1
    uplinks = table.tree.most_uplinks
    up = np.concatenate(
        [
            np.pad(rows, ((0, 0), (0, uplinks - rows.shape[1])))
            for rows in (links.edge_agg, links.agg_core)
        ]
    )
    schedule = np.repeat(np.arange(len(table.schedule_offset) - 1), np.diff(table.schedule_offset))
    owner = np.repeat(np.arange(switches), np.diff(table.first_schedule))
    kept = up[owner[schedule], table.slots]
    lengths = np.bincount(schedule[kept], minlength=len(owner))
    switch_of_group = np.repeat(np.arange(switches), np.diff(table.first_group))
    length_of_group = lengths[
        table.first_schedule[switch_of_group] + np.maximum(table.group_schedule, 0)
    ]
    is_empty = (table.group_schedule == NONE) | (length_of_group == 0)
    edges = table.tree.edges

    return replace(
        table,
        slots=table.slots[kept],
        schedule_offset=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        group_start=np.where(
            table.group_start < length_of_group[:, None], table.group_start, 0
        ).astype(np.int32),
        edge_group=_without(table.edge_group, table.first_group[:edges], is_empty),
        agg_group=_without(table.agg_group, table.first_group[edges:-1], is_empty),
    )


def _without(groups: np.ndarray, first: np.ndarray, is_empty: np.ndarray) -> np.ndarray:
    """Return local groups (switches, destinations) with NONE in place of the empty ones."""
    if not len(is_empty):
        return groups

    # NONE, -1, is looked up as group 0, which is as good as any: it stays NONE in the result unless
    # group 0 is empty, and then it is NONE as well. A last switch without groups has no group 0.
    index = np.minimum(np.maximum(groups, 0) + first[:, None], len(is_empty) - 1)
    return np.where(is_empty[index], NONE, groups).astype(np.int32)
