"""Parsers and deparsers: a packet's bits become headers, and these become bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.language import tree as n
from tests.language.scopes import Scope
from tests.language.tables import Entry, TableEvaluator
from tests.language.values import (
    Header,
    ParserError,
    Stack,
    Struct,
    UndefinedError,
    Union,
    Varbits,
    copied,
    from_bits,
    width_of,
)


@dataclass(slots=True)
class Packet:
    """A packet's bytes, and how many of its bits have been parsed."""

    data: bytes
    position: int = 0

    def left(self) -> int:
        """Return how many bits have not been parsed."""
        return 8 * len(self.data) - self.position

    def bits(self, count: int, move: bool) -> int:
        """Return the next bits, and go on behind them if `move`."""
        if count > self.left():
            raise ParserError("PacketTooShort")
        whole = int.from_bytes(self.data, "big")
        value = whole >> (8 * len(self.data) - self.position - count) & ((1 << count) - 1)
        if move:
            self.position += count
        return value


class ParserEvaluator(TableEvaluator):
    """An evaluator of parsers on `packet`, which gathers a deparser's output in `emitted`."""

    def __init__(
        self,
        program: n.Program,
        entries: dict[str, list[Entry]],
        key_widths: dict[str, list[int]],
    ) -> None:
        super().__init__(program, entries, key_widths)
        self.packet = Packet(b"")
        self.emitted: list[Any] = []

    def parse(self, parser: n.Parser, state: Sequence[Any]) -> None:
        """Run the program's parser on the packet."""
        inner = Scope(self.root)
        for param, value in zip(parser.params, ("packet", *state), strict=True):
            inner.declare(param.name, param.type, value)

        self.walk(parser, inner)

    def walk(self, parser: n.Parser, scope: Scope) -> None:
        """Go from state to state until accept or reject."""
        self.declare_locals(parser.locals, scope)
        states = {state.name: state for state in parser.states}
        current = "start"
        while current in states:
            inner = Scope(scope)
            state = states[current]
            for statement in state.body:
                self.run(statement, inner)
            current = self.transition(state, inner)

        if current == "reject":
            raise ParserError("NoError")

    def transition(self, state: n.State, scope: Scope) -> str:
        """Return the state that comes next."""
        values = [copied(self.value(key, scope)) for key in state.keys]
        for written, target in state.cases:
            if len(written) < len(values) or all(
                self.matches(key, value, scope) for key, value in zip(written, values, strict=True)
            ):
                return target

        raise ParserError("NoMatch")

    def method(self, base: Any, name: str, node: n.Call, scope: Scope) -> Any:
        if base == "packet":
            return getattr(self, name)(node, scope)
        return getattr(self, f"{base.kind}_{name}")(base, node, scope)

    def extract(self, node: n.Call, scope: Scope) -> None:
        """`packet_in.extract`, into a header, or into the next element of a stack."""
        target = node.args[0]
        if isinstance(target, n.Member) and target.name == "next":
            stack = self.read(target.base, scope)
            if stack.next >= len(stack.elements):
                raise ParserError("StackOutOfBounds")
            self.fill(stack.elements[stack.next], node, scope)
            stack.next += 1
        elif isinstance(target, n.Member) and self.is_next(target.base):
            # A member of the next union of a stack.
            assert isinstance(target.base, n.Member)
            stack = self.read(target.base.base, scope)
            if stack.next >= len(stack.elements):
                raise ParserError("StackOutOfBounds")
            self.fill(stack.elements[stack.next].members[target.name], node, scope)
            stack.next += 1
        else:
            self.fill(self.read(target, scope), node, scope)

    def is_next(self, node: n.Expression) -> bool:
        return isinstance(node, n.Member) and node.name == "next"

    def fill(self, header: Header, node: n.Call, scope: Scope) -> None:
        """Extract a header; a varbit takes as many bits as the call's second argument."""
        length = self.value(node.args[1], scope).value if len(node.args) > 1 else 0
        max_bits = sum(t.width for _, t in header.type.fields if isinstance(t, n.Varbit))
        if length > max_bits:
            # The specification looks at the packet first, the target at the header.
            if self.packet.left() < width_of(header.type) + length:
                raise UndefinedError
            raise ParserError("HeaderTooShort")

        if length % 8:
            raise UndefinedError
        total = width_of(header.type) + length
        bits = self.packet.bits(total, move=True)
        header.make_valid()
        for name, type_ in header.type.fields:
            width = length if isinstance(type_, n.Varbit) else width_of(type_)
            total -= width
            part = bits >> total & ((1 << width) - 1)
            is_varbit = isinstance(type_, n.Varbit)
            header.fields[name] = Varbits(part, width) if is_varbit else from_bits(type_, part)

    def lookahead(self, node: n.Call, scope: Scope) -> Any:
        (type_,) = node.types
        return from_bits(type_, self.packet.bits(width_of(type_), move=False))

    def advance(self, node: n.Call, scope: Scope) -> None:
        self.packet.bits(self.value(node.args[0], scope).value, move=True)

    def emit(self, node: n.Call, scope: Scope) -> None:
        self.emit_value(self.read(node.args[0], scope))

    def emit_value(self, value: Any) -> None:
        """Gather the valid headers of a value."""
        match value:
            case Header(valid=True):
                self.emitted.append(value)
            case Struct(fields) | Union(fields):
                for inner in fields.values():
                    self.emit_value(inner)
            case Stack(elements):
                for inner in elements:
                    self.emit_value(inner)
