"""The way that a parser goes for a frame: which arm of every `If` it takes.

Machine code for frames of a known form follows this way in a straight line, and asks at every turn
whether the frame does (`native.passing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen import statements as code
from ofan_p4.softswitch.codegen.arguments import INGRESS_ARGUMENTS
from ofan_p4.softswitch.codegen.assembly import Assembly
from ofan_p4.softswitch.codegen.kinds import nodes_in
from ofan_p4.softswitch.codegen.nodes import Number
from ofan_p4.softswitch.codegen.packet_nodes import Cell, InSet, Resumed
from ofan_p4.softswitch.codegen.printed_statements import indented, lines
from ofan_p4.softswitch.codegen.statements import Statement, Statements

# The number of the arm of each If, by its identity; of those with as many arms, `otherwise`.
Way: TypeAlias = Mapping[int, int]
# Statements that only look at the packet.
_HARMLESS = (
    code.Assign,
    code.Clear,
    code.Move,
    code.Change,
    code.Halve,
    code.Measure,
    code.Unpack,
    code.If,
    code.Once,
    code.Break,
)


def way(assembly: Assembly, frame: bytes, port: int) -> Way:
    """Return the way of a frame through the parser; empty where its way is not its own.

    It is not where the parser asks the switch (a value set), or loops.
    """
    if not _is_pure(assembly.parser):
        return {}

    turns: list[tuple[int, tuple[int]]] = []
    before = assembly.ingress[: assembly.ingress.index(assembly.parser[0])]
    start = [statement for statement in before if not isinstance(statement, code.If)]
    told = [*start, *_told(assembly.parser)]
    arguments = (*INGRESS_ARGUMENTS, names.TRACE)
    source = [f"def parse({', '.join(arguments)}):", *indented(lines(told))]
    scope: dict[str, Any] = dict(assembly.constants)
    # It is code of our own generator, as in `pipeline`.
    exec("\n".join(source), scope)
    scope["parse"](frame, port, len(frame), 0, None, lambda *turn: turns.append(turn))
    # Round a loop an If may go several ways.
    arms = {number: arm for number, (arm,) in turns}
    return arms if len(arms) == len(turns) else {}


def _is_pure(statements: Statements) -> bool:
    todo: list[Any] = list(statements)
    while todo:
        statement = todo.pop()
        if not isinstance(statement, _HARMLESS):
            return False
        if isinstance(getattr(statement, "target", None), Cell):
            return False
        if isinstance(statement, code.If):
            if any(
                isinstance(node, (InSet, Resumed, Cell))
                for test, _ in statement.arms
                for node in nodes_in(test)
            ):
                return False

            todo += [step for _, body in statement.arms for step in body]
            todo += statement.otherwise
        elif isinstance(statement, code.Once):
            todo += statement.body

    return True


def _told(statements: Statements) -> list[Statement]:
    """Return statements with Ifs that report the arm that they take."""
    return [_telling(statement) for statement in statements]


def _telling(statement: Statement) -> Statement:
    match statement:
        case code.Once():
            return code.Once(tuple(_told(statement.body)))
        case code.If():
            number = id(statement)
            arms = tuple(
                (test, (_turn(number, arm), *_told(body)))
                for arm, (test, body) in enumerate(statement.arms)
            )
            last = _turn(number, len(statement.arms))
            return code.If(arms, (last, *_told(statement.otherwise)))

    return statement


def _turn(number: int, arm: int) -> Statement:
    return code.Trace(str(number), (Number(arm),))
