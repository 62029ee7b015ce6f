"""Variables: their declaration, and every way to write to one or to a slice of it."""

from __future__ import annotations

from ofan_p4.compiler.diagnostics import Span
from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.assignments import as_value, assign, freeze_index, reset
from ofan_p4.compiler.midend.expressions import has_effects, lower, lower_value
from ofan_p4.compiler.midend.frame import Frame
from ofan_p4.compiler.midend.operands import slice_of, with_slice
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty


def declare(variable: td.Variable, span: Span, frame: Frame) -> None:
    """Give a variable storage and its initial value."""
    value = lower(variable.value, frame) if variable.value is not None else None
    name = f"{frame.path}.{variable.name}" if frame.path else variable.name
    place = frame.bindings.get(variable)

    # A declaration that is lowered again, as in an unrolled loop, keeps its place.
    if not isinstance(place, ir.Operand):
        place = frame.temporary(variable.type, span, name)
        frame.bindings[variable] = place

    if value is None:
        reset(place, span, frame)
    else:
        assign(place, value, variable.span, frame)


def write(target: ty.Expression, value: ty.Expression, span: Span, frame: Frame) -> None:
    """Emit `target = value`."""
    if isinstance(target, t.Slice):
        store(target, lower(value, frame), span, frame)
        return

    place = lower(target, frame)
    # The left side is evaluated first ("Assignment statement").
    if has_effects(value):
        place = freeze_index(place, span, frame)

    assign(place, lower(value, frame), span, frame)


def update(node: t.Update, frame: Frame) -> None:
    """Emit `target op= value`; the place is fixed first, since its index can have effects."""
    slices: list[t.Slice] = []
    target = node.target
    while isinstance(target, t.Slice):
        slices.append(target)
        target = target.base

    place = freeze_index(lower(target, frame), node.span, frame)
    # `value` was typed with the variable `old` in the place of the target.
    frame.bindings[node.old] = _sliced(place, slices, node.span)
    value = lower(node.value, frame)
    assign(place, _replaced(place, slices, value, node.span), node.span, frame)


def _sliced(place: ir.Operand, slices: list[t.Slice], span: Span) -> ir.Operand:
    for part in reversed(slices):
        place = slice_of(as_value(place, span), part.high, part.low)

    return place


def _replaced(
    place: ir.Operand, slices: list[t.Slice], value: ir.Operand, span: Span
) -> ir.Operand:
    """Return `place` with the slice of a slice of ... replaced by a value."""
    if not slices:
        return value

    inner = slices[0]
    outer = slices[1:]
    base = as_value(_sliced(place, outer, span), span)

    return _replaced(
        place, outer, with_slice(base, inner.high, inner.low, as_value(value, span)), span
    )


def store(target: ty.Expression, value: ir.Operand, span: Span, frame: Frame) -> None:
    """Emit the assignment to a left value, which may be a slice (of a slice ...) of a field."""
    if isinstance(target, t.Slice):
        base = lower_value(target.base, frame)
        store(
            target.base,
            with_slice(base, target.high, target.low, as_value(value, span)),
            span,
            frame,
        )
    else:
        assign(lower(target, frame), value, span, frame)
