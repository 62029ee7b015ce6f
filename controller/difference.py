"""The difference of two plans of a switch, found on arrays: equal entries cost nothing.

`reconcile.updates` finds it among any entries, one by one; the order of both is `parts.Turn`. There
are two ways because at k = 64 the arrays of a failed core link are compared in 2 s, while only to
make the 13 million entries of one plan takes 13 (docs/control-plane.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from controller.entries import Change, Entry, Kind, Prefix
from controller.parts import Part, Piece, Turn, in_order
from controller.plan import Block, SwitchPlan
from fattree.routes.groups import NONE

Int32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A plan with the id that each block's first schedule has on the switch."""

    plan: SwitchPlan
    blocks: Sequence[Block]
    ids: Sequence[int]

    def calls(self) -> Int32:
        """Return the arguments of each destination's `to_group`, (5, destinations).

        Columns of NONE where there is no route.
        """
        number, block, *starts = rows = self.plan.group_rows()
        if not self.blocks:
            return np.full((5, rows.shape[1]), NONE, dtype=np.int32)

        lengths = np.array([len(block[0]) for block in self.blocks], dtype=np.int32)
        arguments = np.stack(
            [number, np.array(self.ids, dtype=np.int32)[block], lengths[block], *starts]
        )
        arguments[:, number == NONE] = NONE

        return arguments

    def checked_calls(self) -> Int32:
        """Return `calls`; raises PlanError where the program has too little room for the plan."""
        calls = self.calls()
        self.plan.planner.check(
            self.plan, [len(uplinks) for block in self.blocks for uplinks in block], calls[0]
        )
        return calls


def difference(old: Placed | None, new: Placed) -> list[Part]:
    """Return the messages that bring a switch from one plan to another; an empty switch is None.

    A schedule is never changed in place: an id in both plans stands for the same schedule.
    Raises PlanError where the program has too little room for the new plan.
    """
    new_calls = new.checked_calls()
    old_calls = np.full_like(new_calls, NONE) if old is None else old.calls()

    # A row is (number, schedule, length, starts) of one destination's route. A schedule's id stands
    # for its content, so that rows that are equal lead to equal schedules.
    changed = (new_calls != old_calls).any(axis=0)
    was = old_calls[0] != NONE
    will_be = new_calls[0] != NONE

    pieces = [
        *_schedules(Kind.INSERT, new, old),
        *_settings(old, new),
        *_ports(old, new),
        *_routes(Kind.INSERT, new, changed & ~was),
        *_routes(Kind.MODIFY, new, changed & was & will_be),
    ]

    if old is not None:
        pieces += _routes(Kind.DELETE, old, changed & ~will_be)
        pieces += _schedules(Kind.DELETE, old, new)

    return list(in_order(pieces))


def _schedules(kind: Kind, placed: Placed, counterpart: Placed | None) -> Iterator[Piece]:
    """Yield the schedules of a plan that the other has not."""
    shared = frozenset(counterpart.ids) if counterpart else frozenset[int]()
    planner = placed.plan.planner
    turn = Turn.of(kind, "schedule")
    for first, block in zip(placed.ids, placed.blocks, strict=True):
        if first not in shared:
            for order, uplinks in enumerate(block):
                yield Piece(
                    turn,
                    planner.rows(len(uplinks)),
                    partial(_rows, kind, placed.plan, first + order, uplinks),
                )


def _rows(kind: Kind, plan: SwitchPlan, schedule: int, uplinks: bytes) -> Iterator[Change]:
    for (table, key), (action, arguments) in plan.planner.schedule(plan.switch, schedule, uplinks):
        yield Change(kind, Entry(table, key, action, arguments))


def _settings(old: Placed | None, new: Placed) -> Iterator[Piece]:
    """Yield the settings of an empty switch: no failure changes them, and defaults exist always."""
    if old is None:
        # P4Runtime knows no INSERT of a default entry: every table has one from the start.
        made = [
            Change(Kind.INSERT if key else Kind.MODIFY, Entry(table, key, *call))
            for (table, key), call in new.plan.settings.items()
        ]

        yield Piece(Turn.MAKE, len(made), partial(iter, made))


def _ports(old: Placed | None, new: Placed) -> Iterator[Piece]:
    """Yield the southbound routes that are new: only those over parallel links ever change."""
    if old is None:
        count = new.plan.port_count
        yield Piece(Turn.ADD_ROUTE, count, partial(_port_routes, Kind.INSERT, new.plan))
    elif new.plan.has_moving_ports:
        held = old.plan.ports
        moved = {prefix: port for prefix, port in new.plan.ports.items() if held[prefix] != port}
        changes = list(_to_ports(Kind.MODIFY, moved))
        yield Piece(Turn.of(Kind.MODIFY, "routes"), len(changes), partial(iter, changes))


def _port_routes(kind: Kind, plan: SwitchPlan) -> Iterator[Change]:
    # Made when they are sent: all switches' at once are many.
    yield from _to_ports(kind, plan.ports)


def _to_ports(kind: Kind, ports: Mapping[Prefix, int]) -> Iterator[Change]:
    for prefix, port in ports.items():
        yield Change(kind, Entry("routes", (prefix,), "to_port", (port,)))


def _routes(kind: Kind, placed: Placed, chosen: NDArray[np.bool_]) -> Iterator[Piece]:
    """Yield the chosen destinations' routes as one piece."""
    destinations = np.flatnonzero(chosen).astype(np.int32)
    if len(destinations):
        turn = Turn.of(kind, "routes")
        yield Piece(turn, len(destinations), partial(_group_routes, kind, placed, destinations))


def _group_routes(kind: Kind, placed: Placed, destinations: Int32) -> Iterator[Change]:
    prefixes = placed.plan.prefixes
    calls = placed.calls()[:, destinations].T.tolist()
    for destination, arguments, action in zip(destinations.tolist(), calls, repeat("to_group")):
        yield Change(kind, Entry("routes", (prefixes[destination],), action, tuple(arguments)))
