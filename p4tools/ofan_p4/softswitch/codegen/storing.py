"""Assignments: values on their way into fields and into the cells of registers."""

from __future__ import annotations

from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen.expressions import (
    Expressions,
    cut,
    cut_to,
    in_bounds,
    inner,
    last_index,
)
from ofan_p4.softswitch.codegen.flow import Code, by_index, when
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import MOST_TESTS, Expression, Number
from ofan_p4.softswitch.codegen.packet_nodes import Cell
from ofan_p4.softswitch.codegen.program import Array, Field, Json, Program, Stack
from ofan_p4.softswitch.codegen.statements import Assign, CountCell
from ofan_p4.softswitch.codegen.tracing import Tracing
from ofan_p4.softswitch.codegen.variables import STORED


class StoreCode:
    """Translator of assignments; `expressions` reads the targets."""

    def __init__(
        self, program: Program, expressions: Expressions, liveness: Liveness, tracing: Tracing
    ) -> None:
        self._program = program
        self._expressions = expressions
        self._liveness = liveness
        self._tracing = tracing

    def store(self, target: Json, value: Expression) -> Code:
        """Return the assignment of a value to an lvalue."""
        node = inner(target)
        if node.get("type") == "field":
            return self.set_field(self._program.field(*node["value"]), value)

        if node.get("type") == "register":
            array = self._expressions.register(node["value"][0])
            return self.write_cell(array, self._expressions.data(node["value"][1]), value)

        if node.get("type") == "stack_field":
            return self._store_last(
                self._expressions.stack(node["value"][0]), node["value"][1], value
            )

        reference = self._expressions.field_of(node)
        if reference is None:
            raise PipelineError(f"cannot assign to {node!r}")

        ref, fields = reference
        if ref.index is None:
            return self.set_field(fields[0], value)

        # Every arm would compute it, and where it looks at a stack, too, that is the square.
        once: Code = []
        if len(fields) > MOST_TESTS:
            once, value = [Assign(STORED, value)], STORED

        return [*once, *by_index(ref.index, [self.set_field(field, value) for field in fields])]

    def set_field(self, field: Field, value: Expression) -> Code:
        """Return the assignment of a value to a field."""
        # No statement reads it: the whole statement goes, not only the store.
        if not self._liveness.is_live(field):
            return []

        return [Assign(field.var, cut(field, value)), *self._tracing.assigned(field)]

    def _store_last(self, stack: Stack, name: str, value: Expression) -> Code:
        headers = [self._program.headers[i] for i in stack.elements]
        fields = [self._program.field(header.name, name) for header in headers]
        return by_index(last_index(stack), [self.set_field(field, value) for field in fields])

    def write_cell(self, array: Array, index: Expression, value: Expression) -> Code:
        """Return the assignment of a value to a cell of a register, if the cell exists."""
        cell = Cell(array.id, index, array.bits)
        # A cell is cut like a field.
        written = Assign(cell, cut_to(value, array.bits))
        traced = self._tracing.cell("register_write", array, index, cell)
        return self.guarded(index, array, [written, *traced], stray=array.id)

    def guarded(self, index: Expression, array: Array, code: Code, stray: int) -> Code:
        """Return statements for an index in an array; beyond its end a cell of STRAYS counts."""
        is_inside = in_bounds(index, array.size)
        if is_inside is None:
            return code

        # Without its bytes, which a departure does not know.
        counted = CountCell(self._program.counters[-1].id, Number(stray), Number(0))
        return [when(is_inside, code, [counted])]
