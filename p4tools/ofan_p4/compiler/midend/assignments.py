"""Copies between operands of any type: structs field by field, headers as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.flow import Test
from ofan_p4.compiler.midend.frame import Frame
from ofan_p4.compiler.midend.layout import header_field
from ofan_p4.compiler.midend.operands import fits, inside, is_constant, overlap
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span


def assign(target: ir.Operand, value: ir.Operand, span: Span, frame: Frame) -> None:
    """Emit the steps that copy `value` to `target`."""
    with guarded(target, span, frame) as inner:
        _assign(target, value, span, inner)


def in_bounds(storage: ir.Operand) -> ir.Value | None:
    """Return whether the element that `storage` is, or is in, exists; None if it always does."""
    match storage:
        case ir.ElementAt(stack, index):
            size = len(stack.elements)
        case ir.ElementField(_, size, index):
            pass
        case _:
            return None

    return None if fits(index, size) else inside(index, size)


@contextmanager
def guarded(storage: ir.Operand, span: Span, frame: Frame) -> Iterator[Frame]:
    """Emit the body's steps, run only if `storage` exists: a wrong index ends the target."""
    condition = in_bounds(storage)
    # The usual case: a constant index, or an index too narrow to exceed the stack.
    if condition is None:
        yield frame
        return

    with frame.collect() as inner:
        yield inner

    frame.emit(Test(condition, tuple(inner.out), (), span))


def _assign(target: ir.Operand, value: ir.Operand, span: Span, frame: Frame) -> None:  # noqa: C901 one case for each pair
    if isinstance(value, ir.LastAt):
        # BMv2 has no operand for the last header as a whole, but an operand for its index.
        value = ir.ElementAt(value.stack, ir.LastIndex(value.stack.name))

    match target, value:
        # `assign` takes numbers only, this primitive fields of variable length.
        case ir.FieldRef(_, _, ty.Varbit()), ir.FieldRef():
            frame.emit(ir.Primitive("assign_VL", (target, value), span))
        case (ir.FieldRef() | ir.ElementField(), _) if is_value(value):
            frame.emit(ir.Assign(target, as_value(value, span), span))
        case ir.StructAt(), ir.StructAt():
            _assign_struct(target, value, span, frame)
        case ir.HeaderAt() | ir.ElementAt(), ir.Invalid():
            frame.emit(ir.Primitive("remove_header", (target,), span))
        case ir.HeaderAt() | ir.ElementAt(), ir.HeaderAt() | ir.ElementAt():
            frame.emit(ir.Primitive("assign_header", (target, value), span))
        case ir.HeaderAt(), ir.StructAt():
            _assign_fields(target, value, span, frame)
        case ir.UnionAt(), ir.UnionAt():
            frame.emit(ir.Primitive("assign_union", (target, value), span))
        # A union is invalid when all of its members are.
        case ir.UnionAt(_, _, members), ir.Invalid():
            for member in members:
                frame.emit(ir.Primitive("remove_header", (member,), span))
        case ir.StackAt(_, ty.Stack(element)), ir.StackAt():
            kind = "assign_union_stack" if element.kind == "header_union" else "assign_header_stack"
            frame.emit(ir.Primitive(kind, (target, value), span))
        case ir.StackAt(_, _, elements), ir.StructAt(_, _, items):
            for part, item in zip(elements, items, strict=True):
                assign(part, item, span, frame)
        case _:
            fail("the target cannot do this assignment", span)


def is_value(operand: ir.Operand) -> bool:
    """Say whether an operand is a single value."""
    return isinstance(operand, ir.Value)


def as_value(operand: ir.Operand, span: Span) -> ir.Value:
    """Return an operand that must be a single value."""
    if not isinstance(operand, ir.Value):
        fail("the target needs a single value here", span)

    return operand


def _assign_struct(target: ir.StructAt, value: ir.StructAt, span: Span, frame: Frame) -> None:
    if target == value:
        return

    items = value.items
    if overlap(target, value):
        items = tuple(freeze(item, span, frame) for item in items)

    for element, item in zip(target.items, items, strict=True):
        assign(element, item, span, frame)


def _assign_fields(target: ir.HeaderAt, value: ir.StructAt, span: Span, frame: Frame) -> None:
    items = value.items
    if overlap(_whole(target, frame), value):
        items = tuple(freeze(item, span, frame) for item in items)

    # "Operations on headers": a header that is assigned a list becomes valid.
    frame.emit(ir.Primitive("add_header", (target,), span))
    for name, item in zip(value.names, items, strict=True):
        assign(header_field(target, name), item, span, frame)


def _whole(header: ir.HeaderAt, frame: Frame) -> ir.HeaderAt | ir.UnionAt:
    """Return the union of a header: other members become invalid when this becomes valid."""
    unions = frame.builder.switch.layout.unions.values()
    return next((union for union in unions if header in union.members), header)


def freeze(operand: ir.Operand, span: Span, frame: Frame) -> ir.Operand:
    """Return an operand with the same value that later steps cannot change."""
    if is_constant(operand):
        return operand

    if isinstance(operand, ir.StructAt):
        return ir.StructAt(
            operand.type, operand.names, tuple(freeze(item, span, frame) for item in operand.items)
        )

    # There is no storage without a width.
    if isinstance(operand.type, ty.Simple) and operand.type == ty.INT:
        return operand

    copy = frame.temporary(operand.type, span)
    assign(copy, operand, span, frame)
    return copy


def freeze_index(operand: ir.Operand, span: Span, frame: Frame) -> ir.Operand:
    """Fix the element that a place stands for, whatever happens to the variables of its index."""
    match operand:
        case ir.ElementAt(stack, index):
            return ir.ElementAt(stack, as_value(freeze(index, span, frame), span))
        case ir.ElementField(stack_name, size, index, offset, type_):
            return ir.ElementField(
                stack_name,
                size,
                index=as_value(freeze(index, span, frame), span),
                offset=offset,
                type=type_,
            )
        case _:
            return operand


def reset(storage: ir.Operand, span: Span, frame: Frame) -> None:
    """Emit the start of a declaration or an `out` parameter: headers start invalid."""
    match storage:
        case ir.HeaderAt() | ir.ElementAt():
            # An element with a computed index may not exist.
            with guarded(storage, span, frame) as inner:
                inner.emit(ir.Primitive("remove_header", (storage,), span))
        case ir.UnionAt(_, _, parts) | ir.StackAt(_, _, parts) | ir.StructAt(_, _, parts):
            for part in parts:
                reset(part, span, frame)
        case _:
            return
