"""Variables: their declaration, and every way to write to a variable or to a slice of it."""

from __future__ import annotations

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.assignments import as_value, assign, freeze_index, reset
from ofan_p4.compiler.midend.expressions import has_effects, lower
from ofan_p4.compiler.midend.frame import Frame, LeftValue
from ofan_p4.compiler.midend.operands import slice_of, with_slice
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.diagnostics import Span


def declare(variable: td.Variable, span: Span, frame: Frame) -> None:
    """Give a variable storage and its initial value."""
    value = lower(variable.value, frame) if variable.value is not None else None
    name = f"{frame.path}.{variable.name}" if frame.path else variable.name
    storage = frame.bindings.get(variable)

    # A declaration that is lowered again, as in an unrolled loop, keeps its place.
    if not isinstance(storage, ir.Operand):
        storage = frame.temporary(variable.type, span, name)
        frame.bindings[variable] = storage

    if value is None:
        reset(storage, span, frame)
    else:
        assign(storage, value, variable.span, frame)


def write(target: ty.Expression, value: ty.Expression, span: Span, frame: Frame) -> None:
    """Emit `target = value`."""
    # The left side is evaluated first ("Assignment statement").
    destination = left_value(target, frame, is_kept=has_effects(value))
    store(destination, lower(value, frame), span, frame)


def update(node: t.Update, frame: Frame) -> None:
    """Emit `target op= value`; the place is fixed first, since its index can have effects."""
    destination = left_value(node.target, frame)
    # `value` was typed with the variable `old` in the place of the target.
    frame.bindings[node.old] = load(destination, node.span)
    store(destination, lower(node.value, frame), node.span, frame)


def left_value(node: ty.Expression, frame: Frame, is_kept: bool = True) -> LeftValue:
    """Evaluate a left value; its indexes are saved if it `is_kept` while other steps run."""
    slices: list[t.Slice] = []
    while isinstance(node, t.Slice):
        slices.append(node)
        node = node.base

    operand = lower(node, frame)
    return LeftValue(freeze_index(operand, node.span, frame) if is_kept else operand, tuple(slices))


def load(left: LeftValue, span: Span) -> ir.Operand:
    """Return the operand that stands at a left value."""
    return _sliced(left.place, left.slices, span)


def store(left: LeftValue, value: ir.Operand, span: Span, frame: Frame) -> None:
    """Emit the assignment to a left value."""
    assign(left.place, _replaced(left.place, left.slices, value, span), span, frame)


def _sliced(storage: ir.Operand, slices: tuple[t.Slice, ...], span: Span) -> ir.Operand:
    for part in reversed(slices):
        storage = slice_of(as_value(storage, span), part.high, part.low)

    return storage


def _replaced(
    storage: ir.Operand, slices: tuple[t.Slice, ...], value: ir.Operand, span: Span
) -> ir.Operand:
    """Return `storage` with the slice of a slice of ... replaced by a value."""
    if not slices:
        return value

    inner = slices[0]
    outer = slices[1:]
    base = as_value(_sliced(storage, outer, span), span)

    return _replaced(
        storage, outer, with_slice(base, inner.high, inner.low, as_value(value, span)), span
    )
