"""Egress in two parts: statements for a packet's arrival, and statements for its departure.

Most programs make a packet's frame of ingress's decisions, and only count in egress: how long a
queue is, how many packets have left. Of such a program the frame can be made at once, while the
packet is at hand; its departure has a few variables to look at, and no frame.

A variable is `late` where its value depends on the departure: on its time, on a cell, a table or a
draw, all of which other packets may change meanwhile. `part` finds these, and returns None if a
frame depends on a late variable; in doubt a variable is late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ofan_p4.softswitch.codegen import names, packet_nodes
from ofan_p4.softswitch.codegen import statements as code
from ofan_p4.softswitch.codegen.kinds import PARTS
from ofan_p4.softswitch.codegen.nodes import (
    Argument,
    Bytes,
    Compare,
    DropPort,
    Local,
    Number,
    Temporary,
)
from ofan_p4.softswitch.codegen.packet_nodes import Cell
from ofan_p4.softswitch.codegen.statements import Statement, Statements
from ofan_p4.softswitch.codegen.variables import POSITION

# Variables that are known when a packet arrives, and variables of its departure.
EARLY = frozenset({names.PORT, names.PACKET_LENGTH, names.INSTANCE, names.RID, names.PRIORITY})
TOLD = frozenset({names.PORT, names.NOW, names.DEQ_DEPTH, names.INSTANCE, names.RID})
# Values that others may change between a packet's arrival and its departure, or that are drawn.
_LATE = (
    Cell,
    packet_nodes.Metered,
    packet_nodes.DirectlyMetered,
    packet_nodes.DirectMeter,
    packet_nodes.Draw,
    packet_nodes.InSet,
    packet_nodes.CustomHash,
    packet_nodes.Entry,
    packet_nodes.EntryAction,
)
# Statements that read state which other packets change, or change it.
_EFFECTS = (
    code.Lookup,
    code.UseDefault,
    code.Resolve,
    code.Touch,
    code.UseRecord,
    code.TakeArguments,
    code.CountEntry,
    code.CountCell,
    code.Log,
)
_ASSIGNING = (code.Assign, code.Clear, code.Move, code.Change, code.Halve)


@dataclass(frozen=True, slots=True)
class Parted:
    """Egress without the part that is late, and that part.

    The departure needs variables `handed` over as ingress left them, and variables that egress sets
    once to an argument at the `beginning`.
    """

    frame: Statements
    leave: Statements
    handed: tuple[Local, ...]
    beginning: tuple[Local, ...]

    @property
    def has_leave(self) -> bool:
        """Whether anything is left to do at the departure."""
        return bool(self.leave)


class _Unpartable(Exception):
    """Some statement does not let egress be parted."""


def part(egress: Statements) -> Parted | None:
    """Return the two parts of egress, None where it must run at the departure as a whole."""
    # Ingress and egress are one function then: nothing has to be handed over.
    body = tuple(statement for statement in egress if not isinstance(statement, code.TakeState))
    travelling = [statement for statement in egress if isinstance(statement, code.TakeState)]
    try:
        body = _without_drop(body)
        late = _late(body)
        frame = _early(body, late)
        leave = _Leave(body, late)
        handed = {
            variable.name: variable for statement in travelling for variable in statement.targets
        }
        return Parted(frame, leave.body, *leave.state(handed))
    except _Unpartable:
        return None


def _without_drop(body: Statements) -> Statements:
    """Return egress without its test for a drop, which it never asks for."""
    kept: list[Statement] = []
    for statement in body:
        match statement:
            case code.If(arms=((Compare("==", Local() as spec, DropPort()), inside),)) if (
                isinstance(inside[-1], code.ReturnEgress) and inside[-1].is_dropped
            ):
                # BMv2 clears egress_spec before egress: only egress's own values there could drop.
                if any(_may_drop(step, spec) for step in _walk(body)):
                    raise _Unpartable
            case code.If(arms=((Compare("==", Number(0), DropPort()), _),)):
                # A program without the field.
                pass
            case _:
                kept.append(statement)

    return tuple(kept)


def _may_drop(statement: Statement, spec: Local) -> bool:
    if not isinstance(statement, _ASSIGNING) or spec.name not in _targets(statement):
        return False

    return not (isinstance(statement, code.Assign) and statement.value == Number(0))


def _walk(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements, those within others too."""
    todo = list(body)
    while todo:
        statement = todo.pop()
        yield statement
        todo += _inside(statement)


def _inside(statement: Statement) -> list[Statement]:
    match statement:
        case code.If():
            return [*(inner for _, arm in statement.arms for inner in arm), *statement.otherwise]
        case code.Once():
            return list(statement.body)

    return []


def _targets(statement: Statement) -> set[str]:
    """Return the names of the variables that a statement sets itself."""
    targets = getattr(statement, "targets", None) or (getattr(statement, "target", None),)
    return {
        variable.name for variable in targets if isinstance(variable, (Local, Bytes, Temporary))
    }


def _is_effect(statement: Statement) -> bool:
    if isinstance(statement, code.Assign) and isinstance(statement.target, Cell):
        return True

    return isinstance(statement, _EFFECTS)


def _looked_at(statement: Statement) -> list[Any]:
    """Return the nodes that a statement itself looks at, its bodies left out."""
    if isinstance(statement, code.If):
        nodes: list[Any] = [test for test, _ in statement.arms]
    elif isinstance(statement, code.Once):
        nodes = []
    else:
        names_ = PARTS[type(statement)]
        nodes = [getattr(statement, name) for name in names_ if name not in ("target", "targets")]
        target = getattr(statement, "target", None)
        # A cell's index is read, and the old value of a change or a halving.
        if isinstance(target, Cell):
            nodes.append(target.index)
        if isinstance(statement, (code.Change, code.Halve)):
            nodes.append(target)

    return [*_nodes(nodes)]


def _nodes(parts: list[Any]) -> Iterator[Any]:
    todo = list(parts)
    while todo:
        item = todo.pop()
        if type(item) is tuple:
            todo += item
        elif type(item) in PARTS:
            yield item
            todo += [getattr(item, name) for name in PARTS[type(item)]]


def _is_late(nodes: Iterable[Any], late: set[str]) -> bool:
    return any(
        isinstance(node, _LATE)
        or (isinstance(node, Argument) and node.name not in EARLY)
        or (isinstance(node, (Local, Bytes, Temporary)) and node.name in late)
        for node in nodes
    )


def _late(body: Statements) -> set[str]:
    """Return the variables that depend on the departure."""
    late: set[str] = set()
    while True:
        before = len(late)
        for statement in _walk(body):
            late |= _set_late(statement, late)

        if len(late) == before:
            return late


def _set_late(statement: Statement, late: set[str]) -> set[str]:
    """Return the variables that a statement makes late."""
    match statement:
        case code.If():
            # Whatever a late test decides about is late, too.
            return _decided(statement) if _is_late(_looked_at(statement), late) else set()
        case code.Once() | code.Break() | code.MakeFrame() | code.ReturnEgress():
            return set()
        case code.AskNothing():
            return set()

    if not isinstance(statement, (*_ASSIGNING, *_EFFECTS)):
        raise _Unpartable

    is_late = isinstance(statement, _EFFECTS) or _is_late(_looked_at(statement), late)
    return _targets(statement) if is_late else set()


def _decided(test: code.If) -> set[str]:
    """Return the variables that are set in an arm of an If."""
    inside = list(_walk(_inside(test)))
    if any(
        isinstance(statement, (code.Break, code.MakeFrame, code.ReturnEgress))
        for statement in inside
    ):
        raise _Unpartable

    return {name for statement in inside for name in _targets(statement)}


def _early(body: Statements, late: set[str]) -> Statements:
    """Return the statements that do not depend on the departure; they must make the whole frame."""
    early = (_early_one(statement, late) for statement in body)
    return tuple(statement for statement in early if statement is not None)


def _early_one(statement: Statement, late: set[str]) -> Statement | None:
    match statement:
        case code.If():
            if _is_late(_looked_at(statement), late):
                return None

            arms = tuple((test, _early(arm, late)) for test, arm in statement.arms)
            return code.If(arms, _early(statement.otherwise, late))
        case code.Once():
            return code.Once(_early(statement.body, late))
        case code.Clear():
            return code.Clear(
                tuple(variable for variable in statement.targets if variable.name not in late)
            )
        case code.Break() | code.AskNothing():
            return statement

    return None if _is_effect(statement) else _early_value(statement, late)


def _early_value(statement: Statement, late: set[str]) -> Statement | None:
    targets = _targets(statement)
    if targets & late:
        # Some of the moved variables may be early; then it cannot be left out.
        if not targets <= late:
            raise _Unpartable

        return None

    if _is_late(_looked_at(statement), late):
        raise _Unpartable

    return statement


class _Leave:
    """The rest of egress for the departure: effects, and the variables that these need."""

    def __init__(self, body: Statements, late: set[str]) -> None:
        self._late = late
        self._needed: dict[str, Any] = {}
        # Known when the packet arrives, and set once: they are handed over as they are then.
        self._early = self._once_early(body)
        while True:
            before = len(self._needed)
            kept = self._kept(body)
            if len(self._needed) == before:
                break

        is_needed = any(_is_effect(statement) for statement in _walk(kept))
        self.body = kept if is_needed else ()

    def _once_early(self, body: Statements) -> set[str]:
        """Return the variables that only the beginning of egress sets, to values known before."""
        first: set[str] = set()
        for statement in body:
            if not isinstance(statement, (code.Assign, code.Clear)):
                break
            # The departure computes again the variables that it gets as arguments, too.
            if not all(
                isinstance(node, Argument) <= (getattr(node, "name", "") in TOLD)
                for node in _looked_at(statement)
            ):
                first |= _targets(statement) - self._late

        statements = [step for step in _walk(body) if not isinstance(step, code.Clear)]
        counts: dict[str, int] = {}
        for statement in statements:
            for name in _targets(statement):
                counts[name] = counts.get(name, 0) + 1

        return {name for name in first if counts.get(name, 0) <= 1 and name in counts}

    def _kept(self, body: Statements) -> Statements:
        kept = (self._kept_one(statement) for statement in body)
        return tuple(statement for statement in kept if statement is not None)

    def _kept_one(self, statement: Statement) -> Statement | None:
        match statement:
            case code.If():
                return self._kept_if(statement)
            case code.Once():
                # At its end there is a break, without which it would go round.
                return code.Once(self._kept(statement.body))
            case code.Break():
                return statement
            case code.MakeFrame() | code.ReturnEgress() | code.AskNothing():
                return None
            case code.Clear():
                needed = self._needed.keys() - self._early
                targets = tuple(
                    variable for variable in statement.targets if variable.name in needed
                )
                return replace(statement, targets=targets) if targets else None

        if not self._is_kept(statement):
            return None

        self._need(statement)
        return statement

    def _kept_if(self, statement: code.If) -> Statement | None:
        arms = tuple((test, self._kept(arm)) for test, arm in statement.arms)
        otherwise = self._kept(statement.otherwise)
        if not otherwise and not any(arm for _, arm in arms):
            return None

        self._need(statement)
        return code.If(arms, otherwise)

    def _is_kept(self, statement: Statement) -> bool:
        if _is_effect(statement):
            return True

        return bool(_targets(statement) & (self._needed.keys() - self._early))

    def _need(self, statement: Statement) -> None:
        for node in _looked_at(statement):
            if isinstance(node, (Local, Bytes, Temporary)):
                self._needed[node.name] = node
            if isinstance(node, Argument) and node.name not in TOLD:
                raise _Unpartable
            # The frame is another packet's by then.
            if isinstance(node, (Bytes, packet_nodes.Data, packet_nodes.FrameLength)):
                raise _Unpartable

    def state(
        self, handed: dict[str, Local | Bytes]
    ) -> tuple[tuple[Local, ...], tuple[Local, ...]]:
        """Return the variables that the departure needs: of ingress, of egress' beginning."""
        needed = [self._needed[name] for name in sorted(self._needed)] if self.body else []
        kept = {*handed, POSITION.name}
        return (
            tuple(
                variable
                for variable in needed
                if variable.name in kept and variable.name not in self._early
            ),
            tuple(variable for variable in needed if variable.name in self._early),
        )
