"""Statements to flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.arguments import copy_out
from ofan_p4.compiler.midend.assignments import assign, freeze
from ofan_p4.compiler.midend.expressions import (
    equality,
    has_effects,
    lower,
    lower_all,
    lower_value,
)
from ofan_p4.compiler.midend.flow import Flow, Label, Leave, Repeat, Stop, Test, close
from ofan_p4.compiler.midend.frame import Frame
from ofan_p4.compiler.midend.operands import binary
from ofan_p4.compiler.midend.tables import apply_table, table_actions
from ofan_p4.compiler.midend.variables import declare, update, write
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.compiler.semantics.walk import DECLARATIONS, paths
from ofan_p4.diagnostics import Span

MAX_UNROLLED = 1024


def lower_body(body: td.Body, frame: Frame) -> None:
    """Emit a list of statements; statements behind a jump are dropped."""
    for statement in body:
        lower_statement(statement, frame)
        # Statements behind a jump are never reached.
        if frame.out and isinstance(frame.out[-1], Leave | Stop):
            return


def lower_statement(node: td.Statement, frame: Frame) -> None:  # noqa: C901 one line for each kind of statement
    """Emit a statement."""
    match node:
        case t.Assign(span, target, value):
            write(target, value, span, frame)
        case t.Update():
            update(node, frame)
        case t.Evaluate(_, call):
            lower(call, frame)
        case t.Declare(span, variable):
            declare(variable, span, frame)
        case t.If():
            _if(node, frame)
        case t.Block(_, body):
            lower_body(body, frame)
        case t.Return():
            _return(node, frame)
        case t.Exit(span):
            # "Exit statement": the calls that it ends copy their results out first.
            copy_out(frame.copies, span, frame)
            frame.emit(Stop(span))
        case t.SwitchAction():
            _switch_action(node, frame)
        case t.SwitchValue():
            _switch_value(node, frame)
        case t.For():
            _for(node, frame)
        case t.ForIn():
            _for_in(node, frame)
        case t.Break(span):
            assert frame.loop is not None
            frame.emit(Leave(frame.loop[0]))
        case t.Continue(span):
            assert frame.loop is not None
            frame.emit(Leave(frame.loop[1]))


def _return(node: t.Return, frame: Frame) -> None:
    if node.value is not None:
        assert frame.result is not None
        assign(frame.result, lower(node.value, frame), node.span, frame)

    assert frame.end is not None
    frame.emit(Leave(frame.end))


# Branches


def _if(node: t.If, frame: Frame) -> None:
    condition = node.condition
    then = node.then
    otherwise = node.otherwise

    # `!t.apply().hit` is a branch on the table as well.
    while isinstance(condition, t.Unary) and condition.op == "!":
        condition, then, otherwise = condition.operand, otherwise, then

    # Hit and miss are edges of the table in BMv2's graph: no conditional is needed.
    if isinstance(condition, t.TableApply):
        if condition.member == "miss":
            then, otherwise = otherwise, then

        hit = _branch(then, frame)
        miss = _branch(otherwise, frame)
        apply_table(condition.table, condition.span, frame, hit=hit, miss=miss)

        return

    value = lower_value(condition, frame)
    if isinstance(value, ir.Flag):
        lower_body(then if value.value else otherwise, frame)
        return

    frame.emit(Test(value, _branch(then, frame), _branch(otherwise, frame), condition.span))


def _branch(body: td.Body, frame: Frame) -> Flow:
    with frame.collect() as inner:
        lower_body(body, inner)

    return tuple(inner.out)


def _switch_action(node: t.SwitchAction, frame: Frame) -> None:
    actions = table_actions(node.table, frame)
    named = dict(zip((entry.action.name for entry in node.table.actions), actions, strict=True))
    cases = []
    default: Flow = ()

    for case in node.cases:
        flow = _branch(case.body, frame)
        # `default` may share a body with actions, so both are kept.
        if "" in case.labels:
            default = flow

        cases.append((tuple(named[label] for label in case.labels if label), flow))

    apply_table(node.table, node.span, frame, cases=tuple(cases), default=default)


def _switch_value(node: t.SwitchValue, frame: Frame) -> None:
    """Emit a chain of tests; the case `default` applies when no other does, wherever it stands."""
    subject = lower_value(node.subject, frame)
    default: td.Body = ()
    chain: list[tuple[ir.Value, Flow]] = []

    for case in node.cases:
        labels = [label for label in case.labels if not isinstance(label, t.Everything)]
        if len(labels) < len(case.labels):
            default = case.body

        if labels:
            chain.append((_any_equal(subject, labels, node.span, frame), _branch(case.body, frame)))

    flow = _branch(default, frame)
    # From the last, so that every test holds the rest of the chain.
    for condition, body in reversed(chain):
        flow = (Test(condition, body, flow, node.span),)

    frame.emit(*flow)


def _any_equal(
    subject: ir.Value, labels: Sequence[ty.Expression], span: Span, frame: Frame
) -> ir.Value:
    result: ir.Value = ir.Flag(False)
    for label in labels:
        if isinstance(label, t.Masked | t.Range):
            fail("a label of 'switch' must be a single value", label.span)

        result = binary(
            "||",
            left=result,
            right=equality(subject, lower_value(label, frame), span),
            type_=ty.BOOL,
            span=span,
        )

    return result


# Loops


def _for(node: t.For, frame: Frame) -> None:
    """Unroll a loop if its counter is known at compile time; other loops jump back at run time."""
    out = Label("break")
    with frame.collect(bindings=dict(frame.bindings)) as inner:
        counter = _counter(node)
        values = _values(node, counter, inner) if counter is not None else None
        # Actions can jump back in BMv2, but pipelines cannot, so unrolling comes first.
        if counter is None or values is None:
            _run_time_loop(node, out, inner)
        else:
            _unroll(node.body, counter, values, out=out, frame=inner)

    frame.emit(*close(out, inner.out))


def _for_in(node: t.ForIn, frame: Frame) -> None:
    """Unroll a loop over values; all are evaluated before the first turn."""
    out = Label("break")
    with frame.collect(bindings=dict(frame.bindings)) as inner:
        values = [freeze(value, node.span, inner) for value in lower_all(node.values, inner)]
        if _assigns(node.body, node.variable):
            values = [_place(value, node.variable, inner) for value in values]

        _unroll(node.body, counter=node.variable, values=values, out=out, frame=inner)

    frame.emit(*close(out, inner.out))


def _place(value: ir.Operand, variable: td.Variable, frame: Frame) -> ir.Operand:
    """Return a place of its own for a variable that a turn may change."""
    copy = frame.temporary(variable.type, variable.span, variable.name)
    assign(copy, value, variable.span, frame)
    return copy


def _counter(node: t.For) -> td.Variable | None:
    """Return the variable that the loop declares, and that nothing but its update assigns."""
    match node.init, node.update:
        case (t.Declare(variable=counter),), (
            t.Assign(_, t.Ref(declaration=target)) | t.Update(_, t.Ref(declaration=target)),
        ):
            return counter if target is counter and not _assigns(node.body, counter) else None
        case _:
            return None


def _values(node: t.For, counter: td.Variable, frame: Frame) -> list[ir.Operand] | None:
    """Return the counter's values, or None where they depend on the packet or are too many."""
    (update,) = node.update
    if counter.value is None or not isinstance(update, t.Assign | t.Update):
        return None

    # With these known, every turn folds to constants (see `operands`).
    variables = {counter, update.old} if isinstance(update, t.Update) else {counter}
    if not all(
        _is_known(part, variables, frame) for part in (node.condition, update.value, counter.value)
    ):
        return None

    values: list[ir.Operand] = []
    value = lower(counter.value, frame)
    # One turn more than allowed separates "too many" from "just enough".
    while len(values) <= MAX_UNROLLED:
        frame.bindings[counter] = value
        condition = lower_value(node.condition, frame)
        assert isinstance(condition, ir.Flag)

        if not condition.value:
            return values

        values.append(value)
        if isinstance(update, t.Update):
            frame.bindings[update.old] = value

        value = lower(update.value, frame)

    return None


def _is_known(node: ty.Expression, variables: set[td.Variable], frame: Frame) -> bool:
    """Return whether an expression consists of `variables` and constants only."""
    return not has_effects(node) and all(
        isinstance(path, t.Ref)
        and (
            path.declaration in variables
            or isinstance(frame.bindings.get(path.declaration), ir.Num | ir.Flag)
        )
        for path in paths(node)
    )


def _assigns(node: object, variable: td.Variable) -> bool:
    """Say whether code may write to a variable, by an assignment or as an argument of a call."""
    match node:
        case t.Assign(_, target) | t.Update(_, target) if _is_of(target, variable):
            return True
        # Any argument counts, also that of an `in` parameter: too careful costs only a loop at run
        # time.
        case t.FunctionCall() | t.ActionCall() | t.ExternCall() | t.MethodCall() | t.BlockApply():
            return any(
                argument is not None
                and (_is_of(argument, variable) or _assigns(argument, variable))
                for argument in node.args
            )
        case tuple():
            return any(_assigns(item, variable) for item in node)
        case _ if is_dataclass(node) and not isinstance(node, DECLARATIONS):
            return any(
                _assigns(getattr(node, item.name), variable)
                for item in fields(node)
                if item.name not in ("span", "type")
            )
        case _:
            return False


def _is_of(target: ty.Expression, variable: td.Variable) -> bool:
    """Say whether an expression is a variable or a part of it."""
    while isinstance(target, t.Slice | t.Field | t.Element):
        target = target.base

    return isinstance(target, t.Ref) and target.declaration is variable


def _run_time_loop(node: t.For, out: Label, frame: Frame) -> None:
    """Emit `init`, then `condition, body, update` again and again."""
    lower_body(node.init, frame)
    again = Label("continue")
    with frame.collect() as turn:
        condition = lower_value(node.condition, turn)
        # In every turn, so the condition is lowered into the loop.
        turn.emit(Test(condition, (), (Leave(out),), node.condition.span))
        with turn.collect(loop=(out, again)) as body:
            lower_body(node.body, body)

        turn.emit(*close(again, body.out))
        lower_body(node.update, turn)

    frame.emit(Repeat(tuple(turn.out), node.span))


def _unroll(
    body: td.Body, counter: td.Variable, values: Sequence[ir.Operand], out: Label, frame: Frame
) -> None:
    for value in values:
        frame.builder.spend(counter.span)
        frame.bindings[counter] = value
        again = Label("continue")
        with frame.collect(loop=(out, again)) as turn:
            lower_body(body, turn)

        frame.emit(*close(again, turn.out))
