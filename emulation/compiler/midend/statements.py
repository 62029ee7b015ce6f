"""Statements to flow."""

from __future__ import annotations

from collections.abc import Sequence

from emulation.compiler.diagnostics import Span
from emulation.compiler.midend import ir
from emulation.compiler.midend.assignments import as_value, assign, freeze_index, reset
from emulation.compiler.midend.calls import close
from emulation.compiler.midend.expressions import equality, has_effects, lower, lower_value
from emulation.compiler.midend.frame import Frame
from emulation.compiler.midend.operands import binary, slice_of, with_slice
from emulation.compiler.midend.tables import apply_table, table_actions
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.scope import fail

MAX_UNROLLED = 1024


def lower_body(body: t.Body, frame: Frame) -> None:
    """Emit a list of statements; what follows a jump is dropped."""
    for statement in body:
        lower_statement(statement, frame)
        if frame.out and isinstance(frame.out[-1], ir.Leave | ir.Stop):
            return


def lower_statement(node: t.Statement, frame: Frame) -> None:  # noqa: C901 one line for each kind of statement
    """Emit a statement."""
    match node:
        case t.Assign(span, target, value):
            _assign(target, value, span, frame)
        case t.Update():
            _update(node, frame)
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
            frame.emit(ir.Stop(span))
        case t.SwitchAction():
            _switch_action(node, frame)
        case t.SwitchValue():
            _switch_value(node, frame)
        case t.For():
            _for(node, frame)
        case t.Break(span):
            assert frame.loop is not None
            frame.emit(ir.Leave(frame.loop[0]))
        case t.Continue(span):
            assert frame.loop is not None
            frame.emit(ir.Leave(frame.loop[1]))


def declare(variable: t.Variable, span: Span, frame: Frame) -> None:
    """Give a variable storage and its initial value."""
    value = lower(variable.value, frame) if variable.value is not None else None
    name = f"{frame.path}.{variable.name}" if frame.path else variable.name
    place = frame.bindings.get(variable)
    if not isinstance(place, ir.Operand):
        place = frame.temporary(variable.type, span, name)
        frame.bindings[variable] = place
    if value is None:
        reset(place, span, frame)
    else:
        assign(place, value, variable.span, frame)


# Assignments


def _assign(target: t.Expression, value: t.Expression, span: Span, frame: Frame) -> None:
    if isinstance(target, t.Slice):
        store(target, lower(value, frame), span, frame)
        return
    place = lower(target, frame)
    if has_effects(value):
        place = freeze_index(place, span, frame)
    assign(place, lower(value, frame), span, frame)


def _update(node: t.Update, frame: Frame) -> None:
    """Emit `target op= value`; the place is fixed first, since its index can have effects."""
    slices: list[t.Slice] = []
    target = node.target
    while isinstance(target, t.Slice):
        slices.append(target)
        target = target.base
    place = freeze_index(lower(target, frame), node.span, frame)
    frame.bindings[node.old] = _slice_of(place, slices, node.span)
    value = lower(node.value, frame)
    assign(place, _replaced(place, slices, value, node.span), node.span, frame)


def _slice_of(place: ir.Operand, slices: list[t.Slice], span: Span) -> ir.Operand:
    for part in reversed(slices):
        place = slice_of(as_value(place, span), part.high, part.low)
    return place


def _replaced(place: ir.Operand, slices: list[t.Slice], value: ir.Operand, span: Span) -> ir.Operand:
    """Return `place` with the slice of a slice of ... replaced by a value."""
    if not slices:
        return value
    inner, outer = slices[0], slices[1:]
    base = as_value(_slice_of(place, outer, span), span)
    return _replaced(place, outer, with_slice(base, inner.high, inner.low, as_value(value, span)), span)


def store(target: t.Expression, value: ir.Operand, span: Span, frame: Frame) -> None:
    """Emit the assignment to a left value, which may be a slice (of a slice ...) of a field."""
    if isinstance(target, t.Slice):
        base = lower_value(target.base, frame)
        store(target.base, with_slice(base, target.high, target.low, as_value(value, span)), span, frame)
    else:
        assign(lower(target, frame), value, span, frame)


def _return(node: t.Return, frame: Frame) -> None:
    if node.value is not None:
        assert frame.result is not None
        assign(frame.result, lower(node.value, frame), node.span, frame)
    assert frame.end is not None
    frame.emit(ir.Leave(frame.end))


# Branches


def _if(node: t.If, frame: Frame) -> None:
    condition, then, otherwise = node.condition, node.then, node.otherwise
    while isinstance(condition, t.Unary) and condition.op == "!":
        condition, then, otherwise = condition.operand, otherwise, then
    if isinstance(condition, t.TableApply):
        if condition.member == "miss":
            then, otherwise = otherwise, then
        hit, miss = _branch(then, frame), _branch(otherwise, frame)
        apply_table(condition.table, condition.span, frame, hit=hit, miss=miss)
        return
    value = lower_value(condition, frame)
    if isinstance(value, ir.Flag):
        lower_body(then if value.value else otherwise, frame)
        return
    frame.emit(ir.Test(value, _branch(then, frame), _branch(otherwise, frame), condition.span))


def _branch(body: t.Body, frame: Frame) -> ir.Flow:
    with frame.collect() as inner:
        lower_body(body, inner)
    return tuple(inner.out)


def _switch_action(node: t.SwitchAction, frame: Frame) -> None:
    actions = table_actions(node.table, frame)
    named = dict(zip((entry.action.name for entry in node.table.actions), actions, strict=True))
    cases = []
    default: ir.Flow = ()
    for case in node.cases:
        flow = _branch(case.body, frame)
        if "" in case.labels:
            default = flow
        cases.append((tuple(named[label] for label in case.labels if label), flow))
    apply_table(node.table, node.span, frame, cases=tuple(cases), default=default)


def _switch_value(node: t.SwitchValue, frame: Frame) -> None:
    """Emit a chain of tests; the case `default` applies when no other does, wherever it stands."""
    subject = lower_value(node.subject, frame)
    default: t.Body = ()
    chain: list[tuple[ir.Value, ir.Flow]] = []
    for case in node.cases:
        labels = [label for label in case.labels if not isinstance(label, t.Everything)]
        if len(labels) < len(case.labels):
            default = case.body
        if labels:
            chain.append((_any_equal(subject, labels, node.span, frame), _branch(case.body, frame)))
    flow = _branch(default, frame)
    for condition, body in reversed(chain):
        flow = (ir.Test(condition, body, flow, node.span),)
    frame.emit(*flow)


def _any_equal(subject: ir.Value, labels: Sequence[t.Expression], span: Span, frame: Frame) -> ir.Value:
    result: ir.Value = ir.Flag(False)
    for label in labels:
        if isinstance(label, t.Masked | t.Range):
            fail("a label of 'switch' must be a single value", label.span)
        result = binary("||", result, equality(subject, lower_value(label, frame), span), ty.BOOL, span)
    return result


# Loops


def _for(node: t.For, frame: Frame) -> None:
    """Unroll a loop whose counter is known at compile time."""
    counter = _counter(node)
    value = lower(counter.value, frame) if counter is not None and counter.value is not None else None
    if counter is None or not isinstance(value, ir.Num):
        fail("only loops over a counter that is known at compile time are supported", node.span)
    out = ir.Label("break")
    with frame.collect(bindings=dict(frame.bindings)) as inner:
        _unroll(node, counter, value, out, inner)
    frame.emit(*close(out, inner.out))


def _counter(node: t.For) -> t.Variable | None:
    """Return the variable that the loop declares and that only its update assigns."""
    if len(node.init) != 1 or not isinstance(node.init[0], t.Declare):
        return None
    return node.init[0].variable


def _unroll(node: t.For, counter: t.Variable, value: ir.Operand, out: ir.Label, frame: Frame) -> None:
    for _ in range(MAX_UNROLLED):
        frame.bindings[counter] = value
        condition = lower_value(node.condition, frame)
        if not isinstance(condition, ir.Flag):
            fail("the condition of a loop must be known at compile time", node.condition.span)
        if not condition.value:
            return
        again = ir.Label("continue")
        with frame.collect(loop=(out, again)) as body:
            lower_body(node.body, body)
        frame.emit(*close(again, body.out))
        value = _next_value(node, counter, frame)
    fail(f"the loop runs more than {MAX_UNROLLED} times", node.span)


def _next_value(node: t.For, counter: t.Variable, frame: Frame) -> ir.Operand:
    match node.update:
        case (t.Assign(_, t.Ref(_, _, target), value),) if target is counter:
            result = lower(value, frame)
            if isinstance(result, ir.Num):
                return result
    return fail("the update of a loop must compute the counter at compile time", node.span)
