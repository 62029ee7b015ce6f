"""Whole tables of many switches at once, from the arrays of a forwarding to the switches' memory.

The controller writes changes as P4Runtime messages, at k = 32 a million of them. This module writes
the same entries of `controller.plan` as arrays, for runs without observers. A test compares both.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.entries import Prefix
from controller.plan import Planner, SwitchPlan
from fattree.policies import Chooser
from fattree.routes.groups import NONE
from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.native.indexes import NativeIndex, Rows
from ofan_p4.softswitch.state.tables import Table

Int64 = NDArray[np.int64]


class Piece(NamedTuple):
    """Entries of one table with one action, by the last parts of their names."""

    table: str
    action: str
    matches: Int64
    arguments: Int64


class Loader:
    """Fills the tables of switches that run one program."""

    def __init__(self, planner: Planner, pipeline: Pipeline) -> None:
        self._planner = planner
        self._uplinks = planner.tree.most_uplinks
        specs = [table.spec for table in pipeline.tables]
        actions = pipeline.program.actions
        self._tables = {_last(spec.name): number for number, spec in enumerate(specs)}
        self._actions = {
            (_last(spec.name), _last(actions[number].name)): number
            for spec in specs
            for number in spec.actions
        }
        self._prefixes: dict[int, Int64] = {}

    def load(self, pipeline: Pipeline, plan: SwitchPlan) -> None:
        """Let a switch hold a plan, and nothing else."""
        rows: dict[str, list[Rows]] = {table: [] for table in ("routes", "schedule", "uplinks_of")}
        for piece in self._pieces(plan):
            if piece.table in self._tables:
                rows[piece.table].append(
                    Rows(
                        self._actions[piece.table, piece.action],
                        piece.matches,
                        piece.arguments,
                    )
                )

        for table, columns in rows.items():
            if table in self._tables:
                fill(pipeline.tables[self._tables[table]], columns)

    def settle(self, pipeline: Pipeline, switch: int) -> None:
        """Write the settings of a switch, which no failure changes."""
        for (name, key), (action, arguments) in self._planner.settings(switch).items():
            table = pipeline.tables[self._tables[name]]
            number = self._actions[name, action]
            if key:
                match = tuple((part, 0) if isinstance(part, int) else part for part in key)
                table.insert(match, 0, number, arguments)
            else:
                table.set_default(number, arguments)

    def _pieces(self, plan: SwitchPlan) -> Iterator[Piece]:
        ports = plan.ports
        yield Piece(
            "routes",
            "to_port",
            _matches(list(ports)),
            np.array(list(ports.values()), dtype=np.int64).reshape(-1, 1),
        )
        if plan.is_balancing:
            yield from self._balancing(plan)

    def _balancing(self, plan: SwitchPlan) -> Iterator[Piece]:
        state = plan.forwarding
        first, last = state.first_schedule[plan.switch : plan.switch + 2].tolist()
        offsets = state.schedule_offset[first : last + 1]
        lengths = np.diff(offsets)
        uplinks = state.slots[offsets[0] : offsets[-1]].astype(np.int64)
        # A schedule's id is its place on the switch: a block's schedules are consecutive.
        first_uplink = self._planner.tree.uplink_port(plan.switch, 0)
        schedule = np.repeat(np.arange(last - first), lengths)
        slot = np.arange(len(uplinks)) - (offsets[:-1] - offsets[0])[schedule]
        yield Piece(
            "schedule",
            "take_port",
            _exact(schedule, slot),
            (first_uplink + uplinks)[:, None],
        )
        yield self._weights(schedule, uplinks, last - first, first_uplink)

        rows = plan.group_rows()
        # Machine code would use the cells of other groups.
        self._planner.check_pointers(plan.switch, rows[0])
        number, block, *starts = rows.astype(np.int64)
        has_group = number != NONE
        schedules = block[has_group] * state.orders
        yield Piece(
            "routes",
            "to_group",
            self._prefixes_of(plan)[has_group],
            np.stack(
                [
                    number[has_group],
                    schedules,
                    lengths[schedules],
                    *(start[has_group] for start in starts),
                ],
                1,
            ),
        )

    def _weights(self, schedule: Int64, uplinks: Int64, count: int, first_uplink: int) -> Piece:
        width = self._planner.max_uplinks or self._uplinks
        counted = np.bincount(schedule * width + uplinks, minlength=count * width)
        weights = counted.reshape(count, width)
        if self._planner.scenario.scheme.chooser is Chooser.ROTATION_SHORTEST_START:
            weights = np.minimum(weights, 1)

        first = np.full((count, 1), first_uplink)
        return Piece(
            "uplinks_of", "weigh", _exact(np.arange(count)), np.concatenate([first, weights], 1)
        )

    def _prefixes_of(self, plan: SwitchPlan) -> Int64:
        # The same tuple for all switches of a tier.
        prefixes = plan.prefixes
        if id(prefixes) not in self._prefixes:
            self._prefixes[id(prefixes)] = _matches(list(prefixes))

        return self._prefixes[id(prefixes)]


def fill(table: Table, rows: list[Rows]) -> None:
    """Put rows in the place of a table's entries."""
    index = table.index
    if isinstance(index, NativeIndex):
        index.fill(rows)
        return

    for _, _, record in list(table):
        table.delete(record.match, record.priority)

    for action, matches, arguments in rows:
        for match, data in zip(matches.tolist(), arguments.tolist(), strict=True):
            table.insert(tuple(map(tuple, match)), 0, action, tuple(data))


def _matches(prefixes: list[Prefix]) -> Int64:
    return np.array(prefixes, dtype=np.int64).reshape(-1, 1, 2)


def _exact(*columns: Int64) -> Int64:
    values = np.stack(columns, axis=1)
    return np.stack([values, np.zeros_like(values)], axis=2)


def _last(name: str) -> str:
    return name.rpartition(".")[2]
