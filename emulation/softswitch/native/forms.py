"""The forms of generated text that the translator recognises."""

from __future__ import annotations

import ast
import re

from emulation.softswitch.codegen import names
from emulation.softswitch.native.values import UnsupportedError, stored

NUMBERED = re.compile(r"([A-Z])(\d+)")


def is_name(node: ast.expr, name: str) -> bool:
    """Return whether an expression is a certain variable."""
    return isinstance(node, ast.Name) and node.id == name


def is_truth(node: ast.expr) -> bool:
    """Return whether an expression has been made a truth value."""
    return isinstance(node, ast.Call) and is_name(node.func, "bool")


def is_payload(node: ast.expr) -> bool:
    """Return whether an expression is the rest of the frame."""
    return (
        isinstance(node, ast.Subscript)
        and is_name(node.value, names.DATA)
        and isinstance(node.slice, ast.Slice)
        and node.slice.upper is None
    )


def is_to_bytes(node: ast.expr) -> bool:
    """Return whether an expression is a number as bytes."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "to_bytes"
    )


def asks_for_list(node: ast.expr) -> bool:
    """Return whether an expression is the number of an action or of a list."""
    if isinstance(node, ast.Subscript):
        return is_name(node.value, names.CLONE) and ast.literal_eval(node.slice) == 1

    return isinstance(node, ast.Name) and node.id in (
        names.ACTION,
        names.DIGEST,
        names.RESUBMIT,
        names.RECIRCULATE,
    )


def constant_of(node: ast.expr) -> int | None:
    """Return the value of a constant, None of anything else."""
    match node:
        case ast.Constant(value=int(number)):
            return number

    return None


def distance(low: ast.expr | None, high: ast.expr) -> int:
    """Return the constant difference of the ends of a slice: 0 and 14, o and o + 14, ..."""
    base, first = split_sum(low or ast.Constant(0))
    other, second = split_sum(high)
    if base != other:
        raise UnsupportedError("a slice of unknown length")

    return second - first


def split_sum(node: ast.expr) -> tuple[str, int]:
    """Return what an offset is relative to, and by how much it is more."""
    match node:
        case ast.Constant(value=int(number)):
            return "", number
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int(number))):
            base, more = split_sum(left)
            return base, more + number

    return ast.unparse(node), 0


def number_of(name: str, letter: str) -> int:
    """Return the number in the name of an object of the switch."""
    match = NUMBERED.fullmatch(name)
    if match is None or match[1] != letter:
        raise UnsupportedError(name)

    return int(match[2])


def memory_bits(bits: int) -> int:
    """Return the bits that a number is kept in."""
    return int(stored(bits).width)
