"""The variables of generated code as nodes, with their widths; `names` has their meaning."""

from __future__ import annotations

from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.nodes import Local, Temporary

GROWTH = Local(names.GROWTH, 32, is_signed=True)
POSITION = Local(names.POSITION, 32)
PARSER_ERROR = Local(names.PARSER_ERROR, 32)
CUTOFF = Local(names.CUTOFF, 32, is_state=True)
EXITED = Local(names.EXITED, 1)
HIT = Local(names.HIT, 1)
BLOCK = Local(names.BLOCK, 32)
ACTION = Local(names.ACTION, 32, is_signed=True)

WIDTH = Temporary(names.WIDTH)
INDEX = Temporary(names.INDEX)
DRAWN = Temporary(names.RESULT)
STORED = Temporary(names.RESULT)
COLOR = Temporary(names.RESULT, 2)


def parameter(index: int, bits: int) -> Temporary:
    """Return an action's argument."""
    return Temporary(names.parameter(index), bits)


def peeked(index: int, bits: int) -> Temporary:
    """Return a part of a transition key that the parser has looked ahead for."""
    return Temporary(names.peeked(index), bits)


def packed(index: int) -> Temporary:
    """Return an integer that holds several fields side by side, or the bytes of a larger field."""
    return Temporary(names.packed(index))
