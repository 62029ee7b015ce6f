"""Statements."""

from __future__ import annotations

from itertools import pairwise

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.calls import check_call
from ofan_p4.compiler.semantics.conversion import coerce
from ofan_p4.compiler.semantics.operators import binary
from ofan_p4.compiler.semantics.scope import ConstantName, Context, fail
from ofan_p4.compiler.semantics.type_names import resolve_type
from ofan_p4.compiler.semantics.values import (
    check_as,
    check_value,
    is_compile_time,
    is_left_value,
)
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import Span

MAX_RANGE = 1024


def check_block(block: n.Block, context: Context) -> td.Body:
    """Type the statements of a block in a scope of its own."""
    return check_statements(block.statements, context.nested())


def check_statements(statements: tuple[n.Statement, ...], context: Context) -> td.Body:
    """Type statements in the scope that is open."""
    checked = (check_statement(statement, context) for statement in statements)
    return tuple(statement for statement in checked if statement is not None)


def check_statement(node: n.Statement, context: Context) -> td.Statement | None:  # noqa: C901 one line for each kind
    """Type a statement; None for a statement without effect."""
    match node:
        case n.Assign():
            return _assign(node, context)
        case n.CallStatement(span, call):
            return _call(span, call, context)
        case n.If(span, condition, then, otherwise):
            checked = check_as(condition, ty.BOOL, context)
            return t.If(span, checked, _branch(then, context), _branch(otherwise, context))
        case n.Block(span):
            return t.Block(span, check_block(node, context))
        case n.Return():
            return _return(node, context)
        case n.Exit(span):
            if context.place not in ("control", "action"):
                fail("'exit' is allowed in controls and actions only", span)

            return t.Exit(span)
        case n.Switch():
            return _switch(node, context)
        case n.Variable():
            return t.Declare(node.span, declare_variable(node, context))
        case n.Constant():
            declare_constant(node, context)
            return None
        case n.For():
            return _for(node, context)
        case n.ForIn():
            return _for_in(node, context)
        case n.Break(span):
            _require_loop("break", span, context)
            return t.Break(span)
        case n.Continue(span):
            _require_loop("continue", span, context)
            return t.Continue(span)
        case n.Empty():
            return None


def _branch(node: n.Statement | None, context: Context) -> td.Body:
    return check_statements((node,), context.nested()) if node is not None else ()


# Declarations


def declare_variable(node: n.Variable, context: Context) -> td.Variable:
    """Declare a variable; its initial value cannot refer to it."""
    declared = resolve_type(node.type, context)
    _require_storable(declared, node)
    # Before the name is declared, so that `bit<8> x = x;` means an outer x.
    value = check_as(node.value, declared, context) if node.value is not None else None
    variable = td.Variable(node.span, node.name, declared, value)
    context.scope.declare(node.name, variable, node.name_span)

    return variable


def _require_storable(declared: ty.Type, node: n.Variable) -> None:
    match ty.underlying(declared):
        # No `int`, which has no size, and no extern, which is no value.
        case ty.Bits() | ty.Struct() | ty.Stack() | ty.Tuple() | ty.Enum() | ty.Varbit():
            return
        case ty.Simple("bool" | "error"):
            return

    fail(f"a variable cannot have type {ty.show(declared)}", node.type.span)


def declare_constant(node: n.Constant, context: Context) -> None:
    """Declare a constant: a value known now, or computed from constructor parameters."""
    declared = resolve_type(node.type, context)
    value = check_as(node.value, declared, context)
    if not is_compile_time(value):
        fail(f"the value of constant '{node.name}' is not known at compile time", node.value.span)

    context.scope.declare(node.name, ConstantName(value), node.span)


# Assignments and calls


def _assign(node: n.Assign, context: Context) -> td.Statement:
    target = context.check(node.target)
    if not is_left_value(node.target, target):
        fail("this cannot be assigned to", node.target.span)

    if isinstance(target, t.StackMember):
        fail(f"'{target.which}' cannot be assigned to", node.target.span)

    value = check_value(node.value, context)
    if node.op == "=":
        return t.Assign(node.span, target, coerce(value, target.type))

    # The target is evaluated once, so the right side reads it through a variable.
    old = td.Variable(node.span, "old", target.type, None)
    updated = binary(node.span, node.op[:-1], t.Ref(target.span, target.type, old), value)
    return t.Update(node.span, target, old, coerce(updated, target.type))


def _call(span: Span, node: n.Call, context: Context) -> td.Statement | None:
    call = check_call(node, context)
    # static_assert() and the sizes of types have done their work.
    if isinstance(call, t.Literal):
        return None

    return t.Evaluate(span, call)


def _return(node: n.Return, context: Context) -> td.Statement:
    # States end with a transition, not with a return.
    if context.place == "parser":
        fail("'return' is not allowed in a parser", node.span)

    if context.returns == ty.VOID:
        if node.value is not None:
            fail("this cannot return a value", node.value.span)

        return t.Return(node.span, None)

    if node.value is None:
        fail(f"expected a value of type {ty.show(context.returns)}", node.span)

    return t.Return(node.span, check_as(node.value, context.returns, context))


# Switch and loops


def _switch(node: n.Switch, context: Context) -> td.Statement:
    # Two statements of one form: over the actions of a table, and over a value.
    table = _action_run(node.subject, context)
    if table is not None:
        return _switch_action(node, table, context)

    subject = check_value(node.subject, context)
    if not isinstance(ty.underlying(subject.type), ty.Bits | ty.Enum) and subject.type != ty.ERROR:
        fail(f"cannot switch on {ty.show(subject.type)}", node.subject.span)

    return _switch_value(node, subject, context)


def _action_run(node: n.Expression, context: Context) -> td.Table | None:
    """Return the table of `t.apply().action_run`."""
    if not isinstance(node, n.Member) or node.name != "action_run":
        return None

    result = context.check(node.base)
    return result.table if isinstance(result, t.TableApply) else None


def _switch_action(node: n.Switch, table: td.Table, context: Context) -> td.Statement:
    names = {entry.action.name for entry in table.actions}
    cases: list[t.ActionCase] = []
    seen: set[str] = set()

    _check_default_last(node)
    for case in _fallen_through(node):
        labels = tuple(_action_label(label, names, table) for label in case.labels)
        for label, written in zip(labels, case.labels, strict=True):
            if label in seen:
                fail("this label is given twice", written.span)

            seen.add(label)

        cases.append(t.ActionCase(labels, check_block(case.body, context) if case.body else ()))

    return t.SwitchAction(node.span, table, tuple(cases))


def _action_label(label: n.Expression, actions: set[str], table: td.Table) -> str:
    match label:
        case n.DefaultExpression():
            return ""
        case n.Name(_, name) if name in actions:
            return name
        case _:
            return fail(f"expected an action of table {table.name} or 'default'", label.span)


def _switch_value(node: n.Switch, subject: ty.Expression, context: Context) -> td.Statement:
    cases: list[t.ValueCase] = []
    seen: set[int | str | None] = set()
    _check_default_last(node)
    for case in _fallen_through(node):
        labels = tuple(_value_label(label, subject, context) for label in case.labels)
        for label in labels:
            value = label.value if isinstance(label, t.Literal) else None
            if isinstance(label, t.Literal | t.Everything) and value in seen:
                fail("this label is given twice", label.span)

            seen |= {value} if isinstance(label, t.Literal | t.Everything) else set()

        cases.append(t.ValueCase(labels, check_block(case.body, context) if case.body else ()))

    return t.SwitchValue(node.span, subject, tuple(cases))


def _value_label(label: n.Expression, subject: ty.Expression, context: Context) -> ty.Expression:
    if isinstance(label, n.DefaultExpression):
        return t.Everything(label.span, ty.Set(subject.type))

    value = context.check(label)
    # Unlike in a select, an enum is compared with its own members only.
    return coerce(value, subject.type)


def _check_default_last(node: n.Switch) -> None:
    labels = [label for case in node.cases for label in case.labels]
    for label, following in pairwise(labels):
        if isinstance(label, n.DefaultExpression):
            fail("nothing can follow the label 'default'", following.span)


def _fallen_through(node: n.Switch) -> list[n.SwitchCase]:
    """Join labels without a body to the next case."""
    cases: list[n.SwitchCase] = []
    waiting: tuple[n.Expression, ...] = ()
    for case in node.cases:
        waiting += case.labels
        if case.body is not None:
            cases.append(n.SwitchCase(case.span, waiting, case.body))
            waiting = ()

    # Labels at the end without a body do nothing, but are checked like others.
    return [*cases, n.SwitchCase(node.span, waiting, None)] if waiting else cases


def _for(node: n.For, context: Context) -> td.Statement:
    inner = context.nested()
    init = check_statements(node.init, inner)
    condition = check_as(node.condition, ty.BOOL, inner)
    update = check_statements(node.update, inner)
    body = check_statements((node.body,), inner.nested(in_loop=True))

    return t.For(node.span, init, condition, update=update, body=body)


def _for_in(node: n.ForIn, context: Context) -> td.Statement:
    inner = context.nested()
    declared = resolve_type(node.type, context)
    # Before the variable is declared, which is not in scope there.
    values = _collection(node.collection, declared, context)
    if values is None:
        return _for(_counted(node), context)

    variable = td.Variable(node.name_span, node.name, declared, None)
    inner.scope.declare(node.name, variable, node.name_span)

    return t.ForIn(
        node.span, variable, values, check_statements((node.body,), inner.nested(in_loop=True))
    )


def _collection(
    node: n.Expression, declared: ty.Type, context: Context
) -> tuple[ty.Expression, ...] | None:
    """Return the values of a range or list in turn, None where they depend on the packet."""
    match node:
        case n.ListExpression(_, items):
            return tuple(check_as(item, declared, context) for item in items)
        case n.Cast(_, n.NamedType(span, "list", (element,)), n.ListExpression() as items):
            if resolve_type(element, context) != declared:
                fail(f"a loop over {ty.show(declared)} cannot take values of another type", span)

            return _collection(items, declared, context)
        # Unrolled by the mid-end, so the bounds must be few.
        case n.Binary(span, "..", low, high):
            first = check_as(low, declared, context)
            last = check_as(high, declared, context)
            if not isinstance(first, t.Literal) or not isinstance(last, t.Literal):
                return None

            if int(last.value) - int(first.value) >= MAX_RANGE:
                fail(f"a loop can go over {MAX_RANGE} values at most", span)

            return tuple(
                t.Literal(span, declared, value)
                for value in range(int(first.value), int(last.value) + 1)
            )
        case _:
            return fail("a loop can go over ranges and lists only", node.span)


def _counted(node: n.ForIn) -> n.For:
    """Return the loop that counts from one end of a range to the other, both evaluated once.

    It stops at the last value, not behind it: the largest number has none behind it.
    """
    assert isinstance(node.collection, n.Binary)
    low, high, span = node.collection.left, node.collection.right, node.collection.span

    def declare(name: str, type_: n.TypeExpression, value: n.Expression) -> n.Variable:
        return n.Variable(span, (), type=type_, name=name, value=value, name_span=node.name_span)

    # No program can call a variable so.
    current, last, has_next = (
        n.Name(span, f"{node.name}${part}", False) for part in ("at", "last", "on")
    )
    unit = n.IntLiteral(span, 1, None, False)
    return n.For(
        node.span,
        init=(
            declare(current.name, node.type, low),
            declare(last.name, node.type, high),
            declare(has_next.name, n.BaseType(span, "bool"), n.Binary(span, "<=", current, last)),
        ),
        condition=has_next,
        update=(
            n.Assign(span, has_next, "=", n.Binary(span, "!=", current, last)),
            n.Assign(span, current, "=", n.Binary(span, "+", current, unit)),
        ),
        # The body may change its variable, which changes no other round.
        body=n.Block(node.span, (), (declare(node.name, node.type, current), node.body)),
    )


def _require_loop(word: str, span: Span, context: Context) -> None:
    if not context.in_loop:
        fail(f"'{word}' is allowed in a loop only", span)
