"""The nodes of a program as Python text: expressions (statements are in `printed_statements`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ofan_p4.softswitch.codegen import names, nodes, packet_nodes
from ofan_p4.softswitch.codegen.nodes import Expression

# How tightly Python's operators bind, the loosest first: an operand that binds more loosely than
# its operator needs parentheses.
CHOICE, OR, AND, NOT, COMPARE, BITS, UNARY, ATOM = range(8)
_LEVELS: Mapping[type, int] = {
    nodes.Choice: CHOICE,
    nodes.Not: NOT,
    nodes.Compare: COMPARE,
    nodes.CompareBytes: COMPARE,
    nodes.SameTruth: COMPARE,
    nodes.InBounds: COMPARE,
    packet_nodes.Present: COMPARE,
    packet_nodes.IsNotDefault: COMPARE,
    nodes.Binary: BITS,
    nodes.Shift: BITS,
    nodes.Sum: BITS,
    nodes.Joined: BITS,
    nodes.Quotient: BITS,
    nodes.Remainder: BITS,
    nodes.Inverse: UNARY,
}


def text(node: Expression) -> str:
    """Return an expression as Python."""
    return RULES[type(node)](node)


def tuple_of(parts: Iterable[Expression]) -> str:
    """Return the tuple of some expressions, however many."""
    return f"({''.join(text(part) + ', ' for part in parts)})"


def listed(parts: Iterable[Expression]) -> str:
    """Return expressions with commas between them."""
    return ", ".join(map(text, parts))


def within(node: Expression, level: int) -> str:
    """Return an operand of an operator of this level, in parentheses if it binds more loosely."""
    return text(node) if _level(node) >= level else f"({text(node)})"


def operand(node: Expression) -> str:
    """Return an operand of arithmetic, in parentheses even where precedence needs none."""
    return within(node, UNARY)


def _level(node: Expression) -> int:
    if isinstance(node, nodes.Logic):
        return OR if node.op == "or" else AND
    if isinstance(node, nodes.Number):
        return ATOM if node.value >= 0 else UNARY

    return _LEVELS.get(type(node), ATOM)


def _binary(node: nodes.Binary) -> str:
    first = node.left
    # `a + b + c` needs no parentheses: Python, too, begins at the left.
    is_chain = isinstance(first, nodes.Binary) and first.op == node.op
    return f"{text(first) if is_chain else operand(first)} {node.op} {operand(node.right)}"


def _joined(node: nodes.Joined) -> str:
    low = node.bits
    terms = []
    for value, width in node.parts:
        # Each part is shifted to its place; the last one stands at bit 0.
        low -= width
        terms.append(f"{operand(value)} << {low}" if low else operand(value))

    return " | ".join(terms)


def _remainder(node: nodes.Remainder) -> str:
    size = node.size
    # BMv2 takes a size of 0 as 1; a constant is known not to be 0.
    divisor = text(size) if isinstance(size, nodes.Number) else f"({within(size, NOT)} or 1)"
    return f"{operand(node.value)} % {divisor}"


def _in_bounds(node: nodes.InBounds) -> str:
    test = f"{within(node.index, BITS)} < {node.size}"
    # An index of known width is never negative.
    return test if node.index.bits is not None else f"0 <= {test}"


def _logic(node: nodes.Logic) -> str:
    parts = (
        text(part) if isinstance(part, nodes.Logic) and part.op == node.op else within(part, NOT)
        for part in node.parts
    )
    return f" {node.op} ".join(parts)


def _not(node: nodes.Not) -> str:
    # `x is None` instead of `not x is not None`.
    if isinstance(node.test, packet_nodes.Present):
        return f"{text(node.test.what)} is None"

    return f"not {within(node.test, NOT)}"


def _choice(node: nodes.Choice) -> str:
    return f"{within(node.yes, OR)} if {within(node.test, OR)} else {text(node.no)}"


def _compare(node: nodes.Compare | nodes.CompareBytes) -> str:
    return f"{within(node.left, BITS)} {node.op} {within(node.right, BITS)}"


def _joined_bits(node: packet_nodes.JoinedBits | packet_nodes.JoinedBytes) -> str:
    parts = " ".join(
        f"({text(is_present)}, {text(value)}, {n})," for is_present, value, n in node.parts
    )
    return f"{names.JOIN_BITS}(({parts}))"


def _in_set(node: packet_nodes.InSet) -> str:
    return f"{names.value_set(node.number)}.matches(({listed(node.keys)},), {node.masks})"


def _asked(node: packet_nodes.Asked) -> str:
    return node.request if node.part is None else f"{node.request}[{node.part}]"


def _name(node: Any) -> str:
    return str(node.name)


_METER_ARGUMENTS = f"({names.NOW}, {names.PACKET_LENGTH})"
RULES: Mapping[type, Callable[[Any], str]] = {
    nodes.Number: lambda node: str(node.value),
    nodes.Truth: lambda node: str(node.value),
    nodes.Zeros: lambda node: repr(bytes(node.size)) if node.size else 'b""',
    nodes.Local: _name,
    nodes.Bytes: _name,
    nodes.Temporary: _name,
    nodes.Argument: _name,
    nodes.DropPort: lambda _: names.DROP,
    nodes.Binary: _binary,
    nodes.Shift: lambda node: f"{operand(node.value)} {node.op} {node.amount}",
    nodes.Sum: lambda node: " + ".join(map(operand, node.terms)),
    nodes.Joined: _joined,
    nodes.Inverse: lambda node: f"~{operand(node.value)}",
    nodes.Quotient: lambda node: f"{operand(node.value)} // {node.by}",
    nodes.Remainder: _remainder,
    nodes.Call: lambda node: f"{node.function}({listed(node.parts)})",
    nodes.Cut: lambda node: f"{node.function}({text(node.value)}, {node.to})",
    nodes.CutByValue: lambda node: f"{node.function}({text(node.value)}, {text(node.to)})",
    nodes.Compare: _compare,
    nodes.CompareBytes: _compare,
    nodes.SameTruth: lambda node: f"bool({text(node.left)}) {node.op} bool({text(node.right)})",
    nodes.InBounds: _in_bounds,
    nodes.Logic: _logic,
    nodes.Not: _not,
    nodes.Choice: _choice,
    packet_nodes.Data: lambda _: names.DATA,
    packet_nodes.Payload: lambda _: f"{names.DATA}[{names.POSITION}:]",
    packet_nodes.Length: lambda node: f"len({text(node.of)})",
    packet_nodes.FrameLength: lambda _: f"len({names.FRAME})",
    packet_nodes.FrameByte: lambda node: f"{names.DATA}[{text(node.offset)}]",
    packet_nodes.FrameBytes: lambda node: f"{names.DATA}[{text(node.start)}:{text(node.stop)}]",
    packet_nodes.FromBytes: lambda node: f"int.from_bytes({text(node.source)}, 'big')",
    packet_nodes.ToBytes: lambda node: f"({text(node.value)}).to_bytes({node.size}, 'big')",
    packet_nodes.Pack: lambda node: f"{node.name}({listed(node.parts)})",
    packet_nodes.JoinedBits: _joined_bits,
    packet_nodes.JoinedBytes: _joined_bits,
    packet_nodes.Hash: lambda node: f"{node.name}({text(node.source)})",
    packet_nodes.CustomHash: lambda node: f"{names.custom_crc(node.number)}({text(node.source)})",
    packet_nodes.Cell: lambda node: f"{names.register(node.array)}[{text(node.index)}]",
    packet_nodes.Metered: lambda node: (
        f"{names.meter(node.array)}[{text(node.index)}].execute{_METER_ARGUMENTS}"
    ),
    packet_nodes.DirectMeter: lambda _: f"{names.RECORD}.meter",
    packet_nodes.DirectlyMetered: lambda _: f"{names.RECORD}.meter.execute{_METER_ARGUMENTS}",
    packet_nodes.Draw: lambda node: f"{names.RANDOM}({text(node.low)}, {text(node.high)})",
    packet_nodes.InSet: _in_set,
    packet_nodes.Entry: lambda _: names.ENTRY,
    packet_nodes.EntryAction: lambda _: f"{names.ENTRY}[0]",
    packet_nodes.IsNotDefault: lambda node: f"{names.ENTRY} is not {names.default(node.table)}[0]",
    packet_nodes.Packets: lambda _: f"{names.CELL}[0]",
    packet_nodes.Resumed: lambda _: names.RESUME,
    packet_nodes.ResumedType: lambda _: f"{names.RESUME}[0]",
    packet_nodes.ResumedList: lambda _: f"{names.RESUME}[1]",
    packet_nodes.Asked: _asked,
    packet_nodes.Present: lambda node: f"{text(node.what)} is not None",
}
