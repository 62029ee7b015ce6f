"""Parsers: states of the program and of the parsers that they apply, as states of the target."""

from __future__ import annotations

from dataclasses import dataclass, field

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.arguments import bind, copy_out
from ofan_p4.compiler.midend.assignments import as_value
from ofan_p4.compiler.midend.expressions import constant, lower_all, size_of
from ofan_p4.compiler.midend.flow import Flow, Match
from ofan_p4.compiler.midend.frame import Bindings, BlockObject, Frame
from ofan_p4.compiler.midend.operands import stored_ranges
from ofan_p4.compiler.midend.statements import lower_statement
from ofan_p4.compiler.midend.switch import Case, State, ValueSet
from ofan_p4.compiler.midend.variables import declare
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

NO_MATCH = "NoMatch"


@dataclass(slots=True, eq=False)
class _Parser:
    """A parser being lowered; `accept` is the state to go on with, None at the top."""

    frame: Frame
    prefix: str
    accept: str | None
    states: list[State] = field(default_factory=list)
    start: str = "start"

    def state_name(self, name: str) -> str | None:
        if name == "accept":
            return self.accept

        if name == "start":
            name = self.start

        return None if name == "reject" else f"{self.prefix}{name}"


def lower_parser(block: BlockObject, bindings: Bindings, frame: Frame) -> list[State]:
    """Return the states of a parser, `start` first."""
    inner = frame.inner(bindings={**block.bindings, **bindings}, path=block.name, out=[])
    return _lower_states(block, _Parser(inner, "", None))


def _lower_states(block: BlockObject, parser: _Parser) -> list[State]:
    source = block.source
    assert isinstance(source, td.ParserBlock)
    with parser.frame.collect() as opening:
        for item in source.locals:
            if isinstance(item, td.Variable):
                declare(item, item.span, opening)
            elif isinstance(item, td.ValueSet):
                _value_set(item, opening)

    # Variables of a parser are set before its first state.
    if opening.out:
        parser.start = "start_"
        parser.states.append(
            _jump(
                f"{parser.prefix}start", tuple(opening.out), f"{parser.prefix}start_", source.span
            )
        )

    for state in sorted(source.states, key=lambda state: state.name != "start"):
        _lower_state(state, parser)

    return parser.states


def _value_set(item: td.ValueSet, frame: Frame) -> None:
    name = frame.qualify(item.name, item.annotations)
    if any(present.name == name for present in frame.builder.switch.value_sets):
        return

    size = size_of(item.size, frame, "the size of a value set")
    frame.builder.switch.value_sets.append(ValueSet(name, ty.width_of(item.type), size, item))


def _lower_state(state: td.State, parser: _Parser) -> None:
    """Lower a state; every parser that it applies splits it in two."""
    parser.frame.builder.spend(state.span)
    name = parser.state_name(state.name)
    assert name is not None
    with parser.frame.collect() as body:
        for number, statement in enumerate(state.body):
            call = _parser_call(statement)
            if call is None:
                lower_statement(statement, body)
                continue

            before = name
            after = f"{name}_{number}"
            following = body.inner(out=[])
            entry = _apply_parser(call, after, parser, frame=body, following=following)
            parser.states.append(_jump(before, tuple(body.out), entry, statement.span))
            name = after
            body = following

        parser.states.extend(_with_transition(name, state, parser, body))


def _parser_call(statement: td.Statement) -> t.BlockApply | None:
    if isinstance(statement, t.Evaluate) and isinstance(statement.call, t.BlockApply):
        return statement.call

    return None


def _apply_parser(
    call: t.BlockApply, after: str, parser: _Parser, frame: Frame, following: Frame
) -> str:
    """Add the states of an applied parser that goes on with `after`; return its first state."""
    frame.builder.spend(call.span)
    block = frame.bindings.get(call.instance)
    if not isinstance(block, BlockObject) or not isinstance(block.source, td.ParserBlock):
        fail(f"'{call.instance.name}' cannot be applied here", call.span)

    args = bind(block.source.params, call.args, call.span, frame)
    # Copies out of the parser belong to the state behind the applied parser.
    copy_out(args.copies, call.span, following)
    inner = frame.inner(bindings={**block.bindings, **args.bindings}, path=block.name, out=[])
    # A parser may be applied several times: its states are made anew each time.
    prefix = f"{frame.builder.unique_path(f'{block.name}.states')}."
    parser.states.extend(_lower_states(block, _Parser(inner, prefix, after)))

    return f"{prefix}start"


def _jump(name: str, flow: Flow, target: str | None, span: Span) -> State:
    return State(name, flow, keys=(), cases=(Case((), None, target),), span=span)


def _with_transition(name: str, state: td.State, parser: _Parser, body: Frame) -> list[State]:
    transition = state.transition
    if not transition.keys:
        return [
            _jump(name, tuple(body.out), parser.state_name(transition.cases[0].state), state.span)
        ]

    keys = [as_value(key, transition.span) for key in lower_all(transition.keys, body)]
    cases: list[Case] = []
    for case in transition.cases:
        cases.extend(_cases(case, keys, parser))

    complete = any(_matches_all(case) for case in cases)
    made = [
        State(name, flow=tuple(body.out), keys=tuple(keys), cases=tuple(cases), span=state.span)
    ]
    # "Select expressions": a packet that no case matches is an error of the parser.
    if not complete:
        unmatched = f"{name}_no_match"
        made[0] = State(
            name,
            flow=tuple(body.out),
            keys=tuple(keys),
            cases=(*cases, _default(unmatched, keys)),
            span=state.span,
        )

        made.append(_no_match(unmatched, transition.span, parser))

    return made


def _default(state: str, keys: list[ir.Value]) -> Case:
    return Case(tuple(Match(0, 0) for _ in keys), None, state)


def _matches_all(case: Case) -> bool:
    return case.value_set is None and all(match.second == 0 for match in case.matches)


def _no_match(name: str, span: Span, parser: _Parser) -> State:
    """Return the state that raises error.NoMatch, which the target does not do by itself."""
    errors = parser.frame.builder.switch.program.errors
    if NO_MATCH not in errors:
        fail("this select needs a default case, since error.NoMatch is not declared", span)

    flow = (ir.Verify(ir.Flag(False), ir.Num(errors.index(NO_MATCH), ty.Bits(32)), span),)
    return _jump(name, flow, None, span)


# Select cases


def _cases(case: td.SelectCase, keys: list[ir.Value], parser: _Parser) -> list[Case]:
    """Return the target's cases; a range becomes several masks."""
    state = parser.state_name(case.state)
    only = case.keys[0] if len(case.keys) == 1 else None
    if isinstance(only, t.ValueSetRef):
        return [
            Case(
                (), parser.frame.qualify(only.declaration.name, only.declaration.annotations), state
            )
        ]

    combined: list[tuple[Match, ...]] = [()]
    for written, key in zip(case.keys, keys, strict=True):
        matches = _matches(written, key.type, parser.frame)
        # A range of one key times a range of another: every combination is a case.
        combined = [(*before, match) for before in combined for match in matches]
        if len(combined) > MAX_CASES:
            fail("this case becomes too many cases of the target", case.span)

    return [Case(matches, None, state) for matches in combined]


MAX_CASES = 4096


def _matches(written: ty.Expression, type_: ty.Type, frame: Frame) -> list[Match]:
    width = ty.width_of(type_)
    full = (1 << width) - 1
    match written:
        case t.Everything():
            return [Match(0, 0)]
        case t.Masked(_, _, value, mask):
            bits = constant(mask, frame, "a mask") & full
            return [Match(constant(value, frame, "a value") & bits, bits)]
        case t.Range(_, _, low, high):
            bounds = constant(low, frame, "a bound"), constant(high, frame, "a bound")
            return [
                match
                for part in stored_ranges(*bounds, type_, written.span)
                for match in prefixes(*part, width)
            ]
        case t.ValueSetRef():
            return fail("the target can match a value set only as the whole key", written.span)
        case _:
            return [Match(constant(written, frame, "a value") & full, full)]


def prefixes(low: int, high: int, width: int) -> list[Match]:
    """Split `low .. high` into values with masks, the fewest that cover exactly the range."""
    full = (1 << width) - 1
    matches = []
    while low <= high:
        # The largest block of a power of two that may begin at `low` ...
        size = low & -low if low else 1 << width
        # ... and does not end beyond `high`.
        while size > high - low + 1:
            size >>= 1

        matches.append(Match(low, full & ~(size - 1)))
        low += size

    return matches
