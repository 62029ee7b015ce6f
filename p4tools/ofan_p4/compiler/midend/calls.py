"""Calls: functions and actions are inlined; tables, blocks and externs have their own modules."""

from __future__ import annotations

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.arguments import Bound, bind, copy_out
from ofan_p4.compiler.midend.assignments import guarded
from ofan_p4.compiler.midend.blocks import inline_control
from ofan_p4.compiler.midend.expressions import lower
from ofan_p4.compiler.midend.externs.dispatch import lower_function, lower_method
from ofan_p4.compiler.midend.flow import Action, Label, close
from ofan_p4.compiler.midend.frame import Bindings, BlockObject, Frame
from ofan_p4.compiler.midend.operands import number
from ofan_p4.compiler.midend.tables import apply_table
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span


def lower_call(node: ty.Expression, frame: Frame) -> ir.Operand:
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
            return lower_function(node, frame) or NOTHING
        case t.MethodCall():
            return lower_method(node, frame) or NOTHING

    raise AssertionError(node)


NOTHING = number(0, ty.INT)


# Functions and actions


def _inline_function(node: t.FunctionCall, frame: Frame) -> ir.Operand:
    function = node.function
    args = bind(function.params, node.args, node.span, frame)
    # A function sees the top level and its parameters, an action also its control.
    bindings = {**frame.builder.globals, **args.bindings}

    if (
        # A function that is one `return` stays an expression, without a temporary or a scope.
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
    # The action may be in no table, but P4Info lists it all the same.
    if not frame.in_action:
        called = Action(
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
    body: td.Body, args: Bound, span: Span, frame: Frame, bindings: Bindings, result: ir.Operand
) -> None:
    label = Label("return")
    copies = (*args.copies, *frame.copies)
    with frame.collect(
        bindings=bindings, end=label, result=result, loop=None, copies=copies
    ) as inner:
        inner.lower_body(body)

    frame.emit(*close(label, inner.out))
    copy_out(args.copies, span, frame)


# Headers and stacks


def _header_method(node: t.HeaderMethod, frame: Frame) -> ir.Operand:
    base = lower(node.base, frame)
    match node.name, base:
        case (("setValid" | "setInvalid"), ir.HeaderAt() | ir.ElementAt()):
            name = "add_header" if node.name == "setValid" else "remove_header"
            # An element with a computed index may not exist.
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
    if not node.member:
        apply_table(node.table, node.span, frame)
        return NOTHING

    # Tables are nodes of the graph, not operands: both branches set the result.
    result = frame.temporary(ty.BOOL, node.span, "hit")
    assert isinstance(result, ir.FieldRef)
    flag = node.member == "hit"
    hit = (ir.Assign(result, ir.Flag(flag), node.span),)
    miss = (ir.Assign(result, ir.Flag(not flag), node.span),)
    apply_table(node.table, node.span, frame, hit=hit, miss=miss)

    return result


def _apply_block(
    instance: td.Instance | ty.Parameter, args: td.Args, span: Span, frame: Frame
) -> None:
    block = frame.bindings.get(instance)
    if not isinstance(block, BlockObject):
        fail(f"'{instance.name}' cannot be applied here", span)

    assert isinstance(block.source, td.Control), "parsers are applied by the lowering of states"
    inline_control(block, bind(block.source.params, args, span, frame), span, frame)
