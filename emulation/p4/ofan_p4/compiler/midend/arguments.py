"""Arguments: parameters are bound to the arguments themselves, or to copies where they overlap."""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.compiler.diagnostics import Span
from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.assignments import assign, freeze, freeze_index, reset
from ofan_p4.compiler.midend.expressions import lower, static_place
from ofan_p4.compiler.midend.flow import Item, Stop, parts_of
from ofan_p4.compiler.midend.frame import Binding, Bindings, Frame
from ofan_p4.compiler.midend.operands import is_constant, overlap
from ofan_p4.compiler.midend.variables import store
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.compiler.semantics.walk import paths


@dataclass(frozen=True, slots=True)
class Copy:
    """A result to copy to its argument; the place was fixed before the call, unless a slice."""

    target: ty.Expression
    place: ir.Operand
    value: ir.Operand


@dataclass(frozen=True, slots=True)
class Bound:
    """Parameters' bindings and the copies to make after the call."""

    bindings: Bindings
    copies: tuple[Copy, ...]


def bind(
    params: tuple[ty.Parameter, ...], args: td.Args, span: Span, frame: Frame, body: td.Body = ()
) -> Bound:
    """Bind parameters to arguments.

    `body` is given where it can use the caller's variables, as actions do.
    """
    # Left to right, and all of them before any parameter is bound ("Calling convention").
    operands = [_argument(param, arg, span, frame) for param, arg in zip(params, args, strict=True)]
    used = _used_outside(body, frame)
    bindings: Bindings = {}
    copies: list[Copy] = []

    for index, (param, arg, operand) in enumerate(zip(params, args, operands, strict=True)):
        if not isinstance(operand, ir.Operand):
            bindings[param] = operand
        elif param.direction in ("out", "inout"):
            others = [
                other
                for at, other in enumerate(operands)
                if at != index and isinstance(other, ir.Operand)
            ]

            others += used
            bindings[param] = place = _writable(
                param, arg, operand, others=others, span=span, frame=frame
            )
            # Bound to its own place, an argument needs no copy: writing the parameter writes it.
            if place is not operand and arg is not None:
                copies.append(Copy(arg, operand, place))
        else:
            bindings[param] = _readable(index, params, operands, used=used, span=span, frame=frame)

    return Bound(bindings, tuple(copies))


def _argument(param: ty.Parameter, arg: ty.Expression | None, span: Span, frame: Frame) -> Binding:
    if arg is None:
        # A don't care still needs a place that the body can write to.
        return frame.temporary(param.type, span, param.name)
    if isinstance(param.type, ty.Extern) and isinstance(arg, t.Ref):
        return frame.bindings[arg.declaration]

    return freeze_index(lower(arg, frame), span, frame)


def _writable(
    param: ty.Parameter,
    arg: ty.Expression | None,
    operand: ir.Operand,
    others: list[ir.Operand],
    span: Span,
    frame: Frame,
) -> ir.Operand:
    """Return the argument's own place, or a copy if it is part of a field or shared."""
    # Copy-in/copy-out shows only where two names mean one place, or where the place is no whole
    # field: everywhere else the argument itself can stand for the parameter.
    own = isinstance(operand, ir.FieldRef | ir.Place) and not any(
        overlap(operand, other) for other in others
    )
    place = operand if own else frame.temporary(param.type, span, param.name)
    if param.direction == "out":
        reset(place, span, frame)
    elif not own:
        assign(place, operand, span, frame)

    return place


def _readable(
    index: int,
    params: tuple[ty.Parameter, ...],
    operands: list[Binding],
    used: list[ir.Operand],
    span: Span,
    frame: Frame,
) -> ir.Operand:
    operand = operands[index]
    assert isinstance(operand, ir.Operand)
    if is_constant(operand):
        return operand

    written = used + [
        other
        for param, other in zip(params, operands, strict=True)
        if param.direction in ("out", "inout") and isinstance(other, ir.Operand)
    ]

    # A computed value may be used often in the body; one temporary is cheaper than the whole
    # expression each time, and what it reads cannot change under it.
    computed = isinstance(operand, ir.Compute | ir.Choose)
    if computed or any(overlap(operand, other) for other in written):
        return freeze(operand, span, frame)

    return operand


def _used_outside(body: td.Body, frame: Frame) -> list[ir.Operand]:
    """Return the storage of the caller that a body uses by name."""
    used = (static_place(path, frame) for path in paths(body))
    return [place for place in used if place is not None]


def copy_out(bound_args: Bound, span: Span, frame: Frame) -> None:
    """Emit the copies that end a call."""
    for copy in bound_args.copies:
        # The rest of the field may have changed during the call, so the slice is read again.
        if isinstance(copy.target, t.Slice):
            store(copy.target, copy.value, span, frame)
        else:
            assign(copy.place, copy.value, span, frame)


def refuse_exit(bound_args: Bound, body: list[Item], span: Span) -> None:
    """`exit` would have to make the copies first."""
    if bound_args.copies and any(_stops(item) for item in body):
        fail("the target cannot exit from a call with overlapping or partial out arguments", span)


def _stops(item: Item) -> bool:
    return isinstance(item, Stop) or any(map(_stops, parts_of(item)))
