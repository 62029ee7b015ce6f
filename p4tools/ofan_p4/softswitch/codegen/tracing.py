"""Statements that report a packet's steps: the second form of a program, for listeners only.

Every place of the program that can tell something is a `Point`; the generated code calls
`trace(point, values)` there. Without tracing there is no such statement, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.flow import Code
from ofan_p4.softswitch.codegen.nodes import Expression
from ofan_p4.softswitch.codegen.packet_nodes import Entry, IsNotDefault
from ofan_p4.softswitch.codegen.program import Action, Array, Field, Header, Program, TableSpec
from ofan_p4.softswitch.codegen.statements import Trace
from ofan_p4.softswitch.codegen.variables import parameter

SCALARS = "scalars."


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a reported value and its width in bits (0: bytes)."""

    name: str
    bits: int


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A place of the program: the event there (`kind`), its object (`name`), `file:line`."""

    kind: str
    name: str
    where: str = ""
    labels: tuple[Label, ...] = ()
    detail: Any = None


@dataclass(slots=True)
class Tracing:
    """Makes the reporting statements of one program; none unless `is_on`."""

    program: Program
    constants: Constants
    is_on: bool = False
    where: str = field(default="")

    def at(
        self,
        kind: str,
        name: str,
        values: Sequence[tuple[Label, Expression]] = (),
        detail: Any = None,
        where: str | None = None,
    ) -> Code:
        """Return the statement that reports a point with the values of some expressions."""
        if not self.is_on:
            return []

        # All that is known beforehand is in the point; a packet pays for the values only.
        point = Point(
            kind,
            name,
            where=self.where if where is None else where,
            labels=tuple(label for label, _ in values),
            detail=detail,
        )

        return [Trace(self.constants.add(point), tuple(value for _, value in values))]

    def extracted(self, header: Header, offset: Expression) -> Code:
        """Report a header with its fields, after its extraction from `offset`."""
        values: list[tuple[Label, Expression]] = [
            (Label(item.name, item.bits), item.var) for item in header.fields
        ]
        return self.at("extract", header.name, [(Label("offset", 32), offset), *values])

    def assigned(self, item: Field) -> Code:
        """Report the new value of a field."""
        return self.at("assign", self.name_of(item), [(Label("value", item.bits), item.var)])

    def cell(self, kind: str, array: Array, index: Expression, value: Expression) -> Code:
        """Report a cell of a register, counter or meter."""
        return self.at(
            kind, array.name, [(Label("index", 32), index), (Label("value", array.bits), value)]
        )

    def looked_up(self, table: TableSpec, number: int, keys: Sequence[Expression]) -> Code:
        """Report a lookup: the key, and the entry in `e`, which is the default entry on a miss."""
        # The reader knows the program, not the tables that the compiler has made of its statements.
        if table.is_hidden:
            return []

        values: list[tuple[Label, Expression]] = [
            (Label(key.name, key.bits), value) for key, value in zip(table.key, keys, strict=True)
        ]
        labelled: list[tuple[Label, Expression]] = [
            (Label("entry", 0), Entry()),
            # A packet that misses sees the default entry itself, not an equal entry.
            (Label("hit", 1), IsNotDefault(number)),
        ]
        return self.at("table", table.name, [*values, *labelled], table, where=table.where)

    def called(self, action: Action, is_hidden: bool = False) -> Code:
        """Report an action with its parameters in `p0`, `p1`, ....

        Statements that the compiler has added are hidden.
        """
        if is_hidden and "." not in action.name:
            return []

        declared = zip(action.parameter_names, action.parameter_bits, strict=True)
        values = [
            (Label(name, bits), parameter(i, bits)) for i, (name, bits) in enumerate(declared)
        ]
        return self.at("action", action.name, values, where=action.where)

    def name_of(self, item: Field) -> str:
        """Return `header.field`, local variables by their own name."""
        return f"{self.program.headers[item.header].name}.{item.name}".removeprefix(SCALARS)
