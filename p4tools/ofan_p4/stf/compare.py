"""Differences between the packets that a script expects and those that the switch sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ofan_p4.stf.dissect import Part, dissect
from ofan_p4.stf.script import Expect

Sent = Mapping[int, Sequence[bytes]]


def first_difference(
    program: Mapping[str, Any], expected: Sequence[Expect], sent: Sent
) -> str | None:
    """Describe the first packet that is missing, too many or wrong; None if all are right."""
    for port in sorted({item.port for item in expected} | set(sent)):
        expectations = [item for item in expected if item.port == port]
        # One such line makes the others of the port meaningless: there is no order to compare.
        if any(item.digits is None for item in expectations):
            difference = _any_number(expectations, port, sent)
        else:
            difference = _port_difference(program, port, expectations, sent.get(port, ()))

        if difference:
            return difference

    return None


def _any_number(expectations: Sequence[Expect], port: int, sent: Sent) -> str | None:
    """`expect PORT` alone: at least one packet leaves, whatever it is."""
    return (
        None
        if sent.get(port)
        else f"line {expectations[0].line}: no packet left through port {port}"
    )


def _port_difference(
    program: Mapping[str, Any], port: int, expectations: Sequence[Expect], frames: Sequence[bytes]
) -> str | None:
    # In order: a port is a wire.
    for number, (item, frame) in enumerate(zip(expectations, frames, strict=False)):
        digit = differs_at(item, frame)
        if digit is not None:
            description = describe(program, item, frame, digit)
            return f"line {item.line}: packet {number} on port {port} {description}"

    if len(frames) < len(expectations):
        missing = expectations[len(frames)]
        return (
            f"line {missing.line}: expected {len(expectations)} packets on port {port}, "
            f"{len(frames)} left: {missing.digits}"
        )

    if len(frames) > len(expectations):
        return (
            f"port {port}: expected {len(expectations)} packets, {len(frames)} left; "
            f"the first one too many: {frames[len(expectations)].hex()}"
        )

    return None


def differs_at(item: Expect, frame: bytes) -> int | None:
    """Return the first hexadecimal digit where a frame is not as expected, or None."""
    digits = item.digits or ""
    actual = frame.hex()
    for digit, (want, have) in enumerate(zip(digits, actual, strict=False)):
        if want not in ("*", have):
            return digit

    # Without `$`, digits of the frame behind the expected ones are not compared.
    if len(actual) < len(digits) or (item.is_whole and len(actual) > len(digits)):
        return min(len(actual), len(digits))

    return None


def describe(program: Mapping[str, Any], item: Expect, frame: bytes, digit: int) -> str:
    """Say which field differs first, then show both packets with a caret under the digit."""
    digits = item.digits or ""
    actual = frame.hex()
    parts = dissect(program, frame)

    # One ends where the other goes on: there is no digit to show.
    if digit >= min(len(digits), len(actual)):
        head = f"has {len(actual) / 2:g} bytes, expected {len(digits) / 2:g}"
    else:
        part = _part_at(parts, digit * 4)
        head = f"differs at byte {digit // 2}, in {part.name} "
        head += f"(bits {part.offset} to {part.offset + part.bits - 1})"
        head += f": expected {_slice(digits, part)}, found {_slice(actual, part)}"

    cuts = _cuts(parts)
    caret = " " * (digit + sum(1 for cut in cuts if cut <= digit)) + "^"
    headers = " ".join(dict.fromkeys(part.name.rpartition(".")[0] or part.name for part in parts))

    lines = [
        head,
        f"  expected {_spaced(digits, cuts)}",
        f"  found    {_spaced(actual, cuts)}",
        f"           {caret}",
        f"  headers  {headers}",
    ]
    return "\n".join(lines)


def _part_at(parts: Sequence[Part], bit: int) -> Part:
    # A digit is four bits, which may belong to two fields: the first is named.
    return next(part for part in parts if part.offset <= bit + 3 and bit < part.offset + part.bits)


def _slice(digits: str, part: Part) -> str:
    """Return the digits of a field; those that it shares with a neighbour too."""
    return digits[part.offset // 4 : (part.offset + part.bits + 3) // 4][:64]


def _cuts(parts: Sequence[Part]) -> list[int]:
    """Return the digits at which a header other than the first begins."""
    names = [part.name.rpartition(".")[0] for part in parts]
    return [
        part.offset // 4
        for part, name, before in zip(parts[1:], names[1:], names, strict=False)
        if name != before
    ]


def _spaced(digits: str, cuts: Sequence[int]) -> str:
    edges = [0, *cuts, max(len(digits), *cuts, 0)]
    return " ".join(digits[start:end] for start, end in pairwise(edges)).rstrip()
