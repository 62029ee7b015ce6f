"""Flow as parser states: a branch ends a state with a select on its condition."""

from __future__ import annotations

from dataclasses import dataclass, field

from ofan_p4.compiler.backend.encode import (
    Json,
    argument,
    expression,
    hexstr,
    lvalue,
    primitive,
    rvalue,
    source_info,
)
from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.flow import (
    Apply,
    Flow,
    Item,
    Label,
    Leave,
    Repeat,
    Scope,
    Stop,
    Test,
)
from ofan_p4.compiler.midend.layout import SCALARS
from ofan_p4.compiler.midend.switch import Case, Layout, State
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

BRANCH = ir.FieldRef(SCALARS, "$branch", ty.Bits(1))
"""Holds the condition of a branch in a parser, which can select on fields only."""


def parse_states(states: list[State], layout: Layout) -> list[Json]:
    """Return the parser's states; uses the scalar `$branch` where a state has branches."""
    builder = _Builder(layout)
    for state in states:
        opened = builder.open(state.name)
        opened["source_info"] = source_info(state.span)
        last = builder.add_all(state.flow, opened, state.name)

        if last is not None:
            builder.close(last, state)

    return [{**state, "id": number} for number, state in enumerate(builder.states)]


@dataclass
class _Builder:
    layout: Layout
    states: list[Json] = field(default_factory=list)
    labels: dict[Label, str] = field(default_factory=dict)

    def open(self, name: str) -> Json:
        state: Json = {
            "name": name,
            "id": 0,
            "parser_ops": [],
            "transitions": [],
            "transition_key": [],
        }

        self.states.append(state)
        return state

    def fresh(self, base: str) -> str:
        return f"{base}_{len(self.states)}"

    def add_all(self, flow: Flow, state: Json, base: str) -> Json | None:
        """Add a flow to a state; return the state open afterwards, None if the flow jumped away."""
        current: Json | None = state
        for item in flow:
            # Steps after a jump are never reached.
            if current is None:
                return None

            current = self._add(item, current, base)

        return current

    def _add(self, item: Item, state: Json, base: str) -> Json | None:
        match item:
            case Test():
                return self._test(item, state, base)
            case Scope(label, body):
                self.labels[label] = self.fresh(base)
                # Opened before the body, so that a Leave inside has a state to go to.
                joined = self.open(self.labels[label])
                last = self.add_all(body, state, base)

                if last is not None:
                    self._go(last, joined["name"])

                return joined
            case Leave(label):
                self._go(state, self.labels[label])
                return None
            case Repeat(body):
                top = self.open(self.fresh(base))
                self._go(state, top["name"])
                end = self.add_all(body, top, base)

                if end is not None:
                    self._go(end, top["name"])

                return None
            case Stop(span) | Apply(span=span):
                return fail("this is not possible in a parser", span)
            case _:
                state["parser_ops"].append(_operation(item))
                return state

    def _go(self, state: Json, name: str | None) -> None:
        state["transitions"] = [_transition("default", None, None, name)]

    def _test(self, item: Test, state: Json, base: str) -> Json:
        # Only programs that branch in their parser get this field.
        self.layout.scalars[BRANCH.name] = BRANCH.type
        state["parser_ops"].append(
            {"op": "set", "parameters": [lvalue(BRANCH), rvalue(item.condition)]}
        )
        joined = self.open(self.fresh(base))
        names = [self._side(flow, joined["name"], base) for flow in (item.then, item.otherwise)]
        state["transition_key"] = [expression(BRANCH)]
        state["transitions"] = [
            _transition("hexstr", "0x01", None, names[0]),
            _transition("default", None, None, names[1]),
        ]

        return joined

    def _side(self, flow: Flow, joined: str, base: str) -> str:
        if not flow:
            return joined

        opened = self.open(self.fresh(base))
        last = self.add_all(flow, opened, base)
        if last is not None:
            self._go(last, joined)

        name: str = opened["name"]
        return name

    def close(self, state: Json, source: State) -> None:
        """Add the transition of the program."""
        keys = [self._key(key, state, source.span) for key in source.keys]
        widths = [ty.width_of(key.type) for key in source.keys]
        state["transition_key"] = [expression_key(key) for key in keys]
        state["transitions"] = _transitions(source.cases, widths)

    def _key(self, key: ir.Value, state: Json, span: Span) -> ir.Value:
        """Return a key for the target: a field, or a temporary with the computed value."""
        if isinstance(key, ir.FieldRef | ir.LastField):
            return key

        # No name of P4 has a `$`.
        name = f"$key_{len(self.layout.scalars)}"
        self.layout.scalars[name] = key.type
        copy = ir.FieldRef(SCALARS, name, key.type)
        state["parser_ops"].append(_operation(ir.Assign(copy, key, span)))

        return copy


def expression_key(key: ir.Value) -> Json:
    """Return a key of a transition."""
    match key:
        case ir.FieldRef():
            return lvalue(key)
        case ir.LastField(stack, name):
            return {"type": "stack_field", "value": [stack, name]}

    raise AssertionError(key)


def _transitions(cases: tuple[Case, ...], widths: list[int]) -> list[Json]:
    """Return the transitions up to the first that always applies, for the target tries it last."""
    made: list[Json] = []
    for case in cases:
        if case.value_set is not None:
            made.append(_transition("parse_vset", case.value_set, None, case.state))
        elif all(match.second == 0 for match in case.matches):
            return [*made, _transition("default", None, None, case.state)]
        else:
            made.append(_value_transition(case, widths))

    return made


def _value_transition(case: Case, widths: list[int]) -> Json:
    """Return a transition on a value; keys stand side by side, each padded to whole bytes."""
    value = mask = total = 0
    exact = True
    for match, width in zip(case.matches, widths, strict=True):
        # BMv2 joins the keys byte by byte.
        padded = 8 * ((width + 7) // 8)
        value = value << padded | match.value
        mask = mask << padded | match.second
        total = total + padded
        exact = exact and match.second == (1 << width) - 1

    return _transition(
        "hexstr", hexstr(value, total), None if exact else hexstr(mask, total), case.state
    )


def _transition(kind: str, value: str | None, mask: str | None, state: str | None) -> Json:
    return {"type": kind, "value": value, "mask": mask, "next_state": state}


def _operation(item: ir.Step) -> Json:
    """Return a step as an operation of a parser."""
    match item:
        case ir.Assign(ir.FieldRef() as target, value):
            return {"op": "set", "parameters": [lvalue(target), rvalue(value)]}
        case ir.Extract():
            return _extract(item)
        case ir.Advance(bits):
            return {"op": "advance", "parameters": [rvalue(bits)]}
        case ir.Verify(condition, error):
            return {"op": "verify", "parameters": [expression(condition), expression(error)]}
        case ir.Primitive(name, args, span):
            inner = primitive(name, [argument(arg, span) for arg in args], span)
            return {"op": "primitive", "parameters": [inner]}
        case ir.Assign(span=span):
            return fail("the target cannot assign to this in a parser", span)


def _extract(item: ir.Extract) -> Json:
    match item.target:
        case ir.HeaderAt(name):
            target: Json = {"type": "regular", "value": name}
        case ir.NextAt(stack):
            target = {"type": "stack", "value": stack.name}
        case ir.NextMember(stack, member):
            target = {"type": "union_stack", "value": [stack.name, member]}

    if item.length is None:
        return {"op": "extract", "parameters": [target]}

    length = {"type": "expression", "value": expression(item.length)}
    return {"op": "extract_VL", "parameters": [target, length]}
