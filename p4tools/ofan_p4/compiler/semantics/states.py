"""States of parsers and their transitions."""

from __future__ import annotations

from ofan_p4.compiler.hints import did_you_mean
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.statements import check_statements
from ofan_p4.compiler.semantics.values import check_set, is_known_set
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import Span


def state_names(node: nd.Parser) -> set[str]:
    """Return the states of a parser that a transition can name."""
    names: set[str] = set()
    for state in node.states:
        if state.name in names or state.name in ("accept", "reject"):
            fail(f"state '{state.name}' is declared twice", state.span)

        names.add(state.name)

    if "start" not in names:
        fail(f"parser {node.name} has no state 'start'", node.span)

    return names | {"accept", "reject"}


def check_state(node: nd.State, names: set[str], context: Context) -> td.State:
    """Type a state."""
    inner = context.nested()
    body = check_statements(node.statements, inner)
    return td.State(
        node.span,
        name=node.name,
        body=body,
        transition=_transition(node, names, inner),
        annotations=node.annotations,
    )


def _transition(node: nd.State, names: set[str], context: Context) -> td.Transition:
    transition = node.transition
    if transition is None:
        # "Transition statements": a state without one goes to reject.
        return td.Transition(node.span, (), (td.SelectCase(node.span, (), "reject"),))

    if transition.cases is None:
        _require_state(transition.state, names, transition.span)
        return td.Transition(
            transition.span, (), (td.SelectCase(transition.span, (), transition.state),)
        )

    keys = tuple(_select_key(key, context) for key in transition.keys)
    cases = tuple(_select_case(case, keys, names, context) for case in transition.cases)
    return td.Transition(transition.span, keys, cases)


def _require_state(name: str, names: set[str], span: Span) -> None:
    if name not in names:
        hint = did_you_mean(name, (*names, "accept", "reject"))
        fail(f"state '{name}' is not declared{hint}", span)


def _select_key(node: n.Expression, context: Context) -> ty.Expression:
    key = context.check(node)
    below = ty.underlying(key.type)
    if not isinstance(below, ty.Bits | ty.Enum) and below not in (ty.BOOL, ty.ERROR):
        fail(f"cannot select on {ty.show(key.type)}", node.span)

    return key


def _select_case(
    node: nd.SelectCase, keys: tuple[ty.Expression, ...], names: set[str], context: Context
) -> td.SelectCase:
    _require_state(node.state, names, node.state_span)
    case_keys = node.keys
    # One `default` or `_` stands for all keys.
    if len(case_keys) == 1 and isinstance(case_keys[0], n.DefaultExpression):
        case_keys = case_keys * len(keys)

    # A value set has all the keys of a select, as fields of its struct.
    if len(case_keys) == 1 and len(keys) > 1:
        only = (
            check_set(case_keys[0], keys[0].type, context)
            if isinstance(case_keys[0], n.Name)
            else None
        )
        if isinstance(only, t.ValueSetRef):
            return td.SelectCase(node.span, (only,), node.state)

    if len(case_keys) != len(keys):
        fail(f"select has {len(keys)} keys, found {len(case_keys)}", node.span)

    matched = tuple(
        check_set(item, key.type, context) for item, key in zip(case_keys, keys, strict=True)
    )
    for item in matched:
        if not is_known_set(item):
            fail("what a case matches must be known at compile time", item.span)

    return td.SelectCase(node.span, matched, node.state)
