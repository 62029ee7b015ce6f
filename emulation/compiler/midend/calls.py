"""Calls, inlined: parameters are bound to the arguments themselves, or to copies where the
arguments overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulation.compiler.diagnostics import Span
from emulation.compiler.midend import ir
from emulation.compiler.midend.assignments import assign, freeze, freeze_index, guarded, reset
from emulation.compiler.midend.expressions import lower, static_place
from emulation.compiler.midend.frame import Binding, Bindings, BlockObject, Frame
from emulation.compiler.midend.operands import is_constant, number, overlap
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.scope import fail
from emulation.compiler.semantics.walk import paths


def lower_call(node: t.Expression, frame: Frame) -> ir.Operand:
    """Emit a call and return its result; calls without a result return a meaningless number."""
    match node:
        case t.FunctionCall():
            return _inline_function(node, frame)
        case t.ActionCall():
            return _inline_action(node, frame)
        case t.HeaderMethod():
            return _header_method(node, frame)
        case t.TableApply():
            return _table_result(node, frame)
        case t.BlockApply(span, _, instance, args):
            _apply_block(instance, args, span, frame)
            return NOTHING
        case t.ExternCall():
            from emulation.compiler.midend.externs import lower_function

            return lower_function(node, frame) or NOTHING
        case t.MethodCall():
            from emulation.compiler.midend.externs import lower_method

            return lower_method(node, frame) or NOTHING

    raise AssertionError(node)


NOTHING = number(0, ty.INT)


# Arguments


@dataclass(frozen=True, slots=True)
class Copy:
    """A result to be copied to its argument: the place of that was fixed before the call, unless it
    is a slice.
    """

    target: t.Expression
    place: ir.Operand
    value: ir.Operand


@dataclass(frozen=True, slots=True)
class Bound:
    """Parameters' bindings and the copies to make after the call."""

    bindings: Bindings
    copies: tuple[Copy, ...]


def bind(
    params: tuple[ty.Parameter, ...], args: t.Args, span: Span, frame: Frame, body: t.Body = ()
) -> Bound:
    """Bind parameters to arguments.

    `body` is given where it can use the caller's variables, as actions do.
    """
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
            if place is not operand and arg is not None:
                copies.append(Copy(arg, operand, place))
        else:
            bindings[param] = _readable(index, params, operands, used=used, span=span, frame=frame)

    return Bound(bindings, tuple(copies))


def _argument(param: ty.Parameter, arg: t.Expression | None, span: Span, frame: Frame) -> Binding:
    if arg is None:
        return frame.temporary(param.type, span, param.name)
    if isinstance(param.type, ty.Extern) and isinstance(arg, t.Ref):
        return frame.bindings[arg.declaration]

    return freeze_index(lower(arg, frame), span, frame)


def _writable(
    param: ty.Parameter,
    arg: t.Expression | None,
    operand: ir.Operand,
    others: list[ir.Operand],
    span: Span,
    frame: Frame,
) -> ir.Operand:
    """Return the argument's own place, or a copy if it is part of a field or shared with another
    argument.
    """
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

    computed = isinstance(operand, ir.Compute | ir.Choose)
    if computed or any(overlap(operand, other) for other in written):
        return freeze(operand, span, frame)

    return operand


def _used_outside(body: t.Body, frame: Frame) -> list[ir.Operand]:
    """Return the storage of the caller that a body uses by name."""
    used = (static_place(path, frame) for path in paths(body))
    return [place for place in used if place is not None]


def copy_out(bound_args: Bound, span: Span, frame: Frame) -> None:
    """Emit the copies that end a call."""
    from emulation.compiler.midend.statements import store

    for copy in bound_args.copies:
        if isinstance(copy.target, t.Slice):
            store(copy.target, copy.value, span, frame)
        else:
            assign(copy.place, copy.value, span, frame)


def refuse_exit(bound_args: Bound, body: list[ir.Item], span: Span) -> None:
    """`exit` would have to make the copies first."""
    if bound_args.copies and any(_stops(item) for item in body):
        fail("the target cannot exit from a call with overlapping or partial out arguments", span)


def _stops(item: ir.Item) -> bool:
    return isinstance(item, ir.Stop) or any(map(_stops, ir.parts_of(item)))


# Functions and actions


def _inline_function(node: t.FunctionCall, frame: Frame) -> ir.Operand:
    function = node.function
    args = bind(function.params, node.args, node.span, frame)
    bindings = {**frame.builder.globals, **args.bindings}

    if (
        len(function.body) == 1
        and isinstance(only := function.body[0], t.Return)
        and only.value
        and not args.copies
    ):
        return lower(only.value, frame.inner(bindings=bindings, loop=None))

    result = (
        frame.temporary(function.returns, node.span, function.name)
        if function.returns != ty.VOID
        else NOTHING
    )

    _inline_body(function.body, args, span=node.span, frame=frame, bindings=bindings, result=result)
    return result


def _inline_action(node: t.ActionCall, frame: Frame) -> ir.Operand:
    args = bind(
        node.action.params, args=node.args, span=node.span, frame=frame, body=node.action.body
    )
    if not frame.in_action:
        called = ir.Action(
            frame.action_name(node.action),
            params=(),
            flow=(),
            span=node.action.span,
            source=node.action,
        )

        frame.builder.switch.called.append(called)

    _inline_body(
        node.action.body,
        args,
        span=node.span,
        frame=frame,
        bindings={**frame.bindings, **args.bindings},
        result=NOTHING,
    )

    return NOTHING


def _inline_body(
    body: t.Body, args: Bound, span: Span, frame: Frame, bindings: Bindings, result: ir.Operand
) -> None:
    from emulation.compiler.midend.statements import lower_body

    label = ir.Label("return")
    with frame.collect(bindings=bindings, end=label, result=result, loop=None) as inner:
        lower_body(body, inner)

    refuse_exit(args, inner.out, span)
    frame.emit(*close(label, inner.out))
    copy_out(args, span, frame)


def close(label: ir.Label, items: list[ir.Item]) -> tuple[ir.Item, ...]:
    """Return flow whose label ends here.

    Without a scope when nothing jumps to the label from the middle.
    """
    if items and items[-1] == ir.Leave(label):
        items = items[:-1]

    return (
        (ir.Scope(label, tuple(items)),)
        if any(ir.leaves(item, label) for item in items)
        else tuple(items)
    )


# Headers and stacks


def _header_method(node: t.HeaderMethod, frame: Frame) -> ir.Operand:
    base = lower(node.base, frame)
    match node.name, base:
        case (("setValid" | "setInvalid"), ir.HeaderAt() | ir.ElementAt()):
            name = "add_header" if node.name == "setValid" else "remove_header"
            with guarded(base, node.span, frame) as inner:
                inner.emit(ir.Primitive(name, (base,), node.span))
        case (("push_front" | "pop_front"), ir.StackAt()):
            amount = number(node.amount, ty.INT)
            frame.emit(ir.Primitive(node.name.removesuffix("_front"), (base, amount), node.span))
        case _:
            fail(f"the target cannot do {node.name}() here", node.span)

    return NOTHING


# Tables and blocks


def _table_result(node: t.TableApply, frame: Frame) -> ir.Operand:
    """Apply a table as part of an expression: whether it hit goes to a temporary."""
    from emulation.compiler.midend.tables import apply_table

    if not node.member:
        apply_table(node.table, node.span, frame)
        return NOTHING

    result = frame.temporary(ty.BOOL, node.span, "hit")
    assert isinstance(result, ir.FieldRef)
    flag = node.member == "hit"
    hit = (ir.Assign(result, ir.Flag(flag), node.span),)
    miss = (ir.Assign(result, ir.Flag(not flag), node.span),)
    apply_table(node.table, node.span, frame, hit=hit, miss=miss)

    return result


def _apply_block(
    instance: t.Instance | ty.Parameter, args: t.Args, span: Span, frame: Frame
) -> None:
    block = frame.bindings.get(instance)
    if not isinstance(block, BlockObject):
        fail(f"'{instance.name}' cannot be applied here", span)

    assert isinstance(block.source, t.Control), "parsers are applied by the lowering of states"
    from emulation.compiler.midend.blocks import inline_control

    inline_control(block, bind(block.source.params, args, span, frame), span, frame)
