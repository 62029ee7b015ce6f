"""Bounds of a host rule's rounds of loops and calls: no packet must wait for ever.

The range of a number follows from its expression: `n % 8` is below 8, `min(n, 64)` is at most 64.
A number without a known range may be any number of 64 bits.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

MOST_ROUNDS = 100_000


class Span(NamedTuple):
    """The least and the largest value of a number."""

    low: int
    high: int


TRUTH = Span(0, 1)
ANY = Span(-(2**63), 2**63 - 1)


class EndlessError(Exception):
    """A statement with which there may be too many rounds, and their number."""

    def __init__(self, statement: ast.stmt, rounds: int) -> None:
        super().__init__(rounds)
        self.statement = statement
        self.rounds = rounds


@dataclass(frozen=True, slots=True)
class Rounds:
    """A counter of a function's rounds; `functions` has the rounds of functions above it.

    `constants` are the rule's, `lists` the lengths of its state's lists.
    """

    constants: Mapping[str, int]
    lists: Mapping[str, int]
    functions: Mapping[str, int]

    def of(self, body: Iterable[ast.stmt]) -> int:
        """Return the most rounds of statements; raises EndlessError beyond MOST_ROUNDS."""
        rounds = 0
        for statement in body:
            rounds += self._of_statement(statement)
            if rounds > MOST_ROUNDS:
                raise EndlessError(statement, rounds)

        return rounds

    def _of_statement(self, node: ast.stmt) -> int:
        match node:
            case ast.If(test=test, body=body, orelse=otherwise):
                return self._called(test) + max(self.of(body), self.of(otherwise))
            case ast.For(iter=ast.Call(args=bounds), body=body):
                first, end = [Span(0, 0), *map(self.span, bounds)][-2:]
                times = max(end.high - first.low, 0)
                return times * (1 + self.of(body)) + sum(map(self._called, bounds))

        return self._called(node)

    def _called(self, node: ast.AST) -> int:
        return sum(
            1 + self.functions[part.func.id]
            for part in ast.walk(node)
            if isinstance(part, ast.Call)
            and isinstance(part.func, ast.Name)
            and part.func.id in self.functions
        )

    def span(self, node: ast.expr) -> Span:
        """Return the range of an expression."""
        match node:
            case ast.Constant(value=int(number)):
                return Span(number, number)
            case ast.Name(id=name) if name in self.constants:
                return Span(self.constants[name], self.constants[name])
            case ast.BinOp(left=first, op=operator, right=second):
                return _kept(_operation(operator, self.span(first), self.span(second)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                low, high = self.span(operand)
                return _kept(Span(-high, -low))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._builtin(name, arguments)

        return self._choice(node)

    def _choice(self, node: ast.expr) -> Span:
        match node:
            case ast.IfExp(body=chosen, orelse=otherwise):
                return _either([self.span(chosen), self.span(otherwise)])
            case ast.BoolOp(values=values):
                return _either([self.span(value) for value in values])
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return TRUTH

        return ANY

    def _builtin(self, name: str, arguments: list[ast.expr]) -> Span:
        match name, arguments:
            case "len", [ast.Attribute(attr=cells)]:
                return Span(self.lists[cells], self.lists[cells])
            case "bool", _:
                return TRUTH
            case "int", [number]:
                return self.span(number)
            case (("min" | "max"), _):
                choose = min if name == "min" else max
                lows, highs = zip(*map(self.span, arguments), strict=True)
                return Span(choose(lows), choose(highs))

        return ANY


def _operation(operator: ast.operator, left: Span, right: Span) -> Span:
    match operator:
        case ast.Add():
            return Span(left.low + right.low, left.high + right.high)
        case ast.Sub():
            return Span(left.low - right.high, left.high - right.low)
        case ast.Mult():
            products = [first * second for first in left for second in right]
            return Span(min(products), max(products))
        case ast.FloorDiv() if right.low > 0:
            quotients = [first // second for first in left for second in right]
            return Span(min(quotients), max(quotients))
        # A remainder has the divisor's sign; of zero it is zero.
        case ast.Mod():
            return Span(min(right.low + 1, 0), max(right.high - 1, 0))
        case ast.BitAnd() if left.low >= 0 or right.low >= 0:
            return Span(0, min(side.high for side in (left, right) if side.low >= 0))

    return ANY


def _either(spans: list[Span]) -> Span:
    return Span(min(span.low for span in spans), max(span.high for span in spans))


def _kept(span: Span) -> Span:
    """Return the span, or ANY where it leaves 64 bits: such numbers wrap around."""
    return span if ANY.low <= span.low and span.high <= ANY.high else ANY
