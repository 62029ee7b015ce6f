"""The lag of each switch: how long after G it has its new routes (`controller.spread_rtt`).

A switch keeps its lag through a run, so its routes change in the order of the links' changes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from fattree.demand.flows import offsets
from fattree.draws import Stream, below, component, mix
from fattree.experiment.model import Scenario
from fattree.routes.forwarding import Forwarding
from fattree.routes.groups import Int64

T = TypeVar("T")


class Lags(NamedTuple):
    """The distinct lags in increasing order, and the index of each switch's lag (switches,)."""

    times_ps: tuple[int, ...]
    of_switch: Int64

    @classmethod
    def of(cls, scenario: Scenario) -> "Lags":
        """Draw a lag for each switch from those of the scenario; without any, all are 0."""
        lags_ps = scenario.lags_ps or (0,)
        switches = np.arange(scenario.tree.switches)
        draws = mix(scenario.seed, component(Stream.LAG, 0), switches)
        times_ps, index = np.unique(lags_ps, return_inverse=True)
        of_switch = index[below(draws, len(lags_ps))]

        # A lag that no switch has is no time at which routes change.
        used, of_switch = np.unique(of_switch, return_inverse=True)
        return cls(tuple(times_ps[used].tolist()), of_switch)

    def deal(self, rows: Sequence[T], switch: int) -> T:
        """Return the row of the lag of a switch."""
        return rows[int(self.of_switch[switch])]


def merged(tables: Sequence[Forwarding], lags: Lags) -> Forwarding:
    """Return the forwarding in which each switch has the rows of its lag's table.

    `links` are those of the greatest lag.
    """
    first = tables[-1]
    if all(table is first for table in tables):
        return first

    switches = range(len(first.first_group) - 1)
    dealt = [lags.deal(tables, switch) for switch in switches]
    groups = [table.groups(switch) for switch, table in enumerate(dealt)]
    schedules = [
        slice(int(table.first_schedule[switch]), int(table.first_schedule[switch + 1]))
        for switch, table in enumerate(dealt)
    ]
    lengths = [
        np.diff(table.schedule_offset)[rows] for table, rows in zip(dealt, schedules, strict=True)
    ]

    return replace(
        first,
        edge_group=np.stack([dealt[edge].edge_group[edge] for edge in range(first.tree.edges)]),
        agg_group=np.stack(
            [dealt[first.tree.edges + agg].agg_group[agg] for agg in range(first.tree.aggs)]
        ),
        first_group=offsets(np.array([len(rows) for rows in groups])),
        group_schedule=np.concatenate(
            [table.group_schedule[rows] for table, rows in zip(dealt, groups, strict=True)]
        ),
        group_start=np.concatenate(
            [table.group_start[rows] for table, rows in zip(dealt, groups, strict=True)]
        ),
        first_schedule=offsets(np.array([rows.stop - rows.start for rows in schedules])),
        schedule_offset=offsets(np.concatenate(lengths)),
        slots=np.concatenate(
            [
                table.slots[table.schedule_offset[rows.start] : table.schedule_offset[rows.stop]]
                for table, rows in zip(dealt, schedules, strict=True)
            ]
        ),
    )
