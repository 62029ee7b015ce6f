"""What machine code cannot say: nodes without a rule, told by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from inspect import getdoc
from typing import Any

from ofan_p4.softswitch.codegen.kinds import EXPRESSIONS, STATEMENTS
from ofan_p4.softswitch.native.values import UnsupportedError


def unsaid(node: Any) -> UnsupportedError:
    """Return the error that a node has no rule."""
    return UnsupportedError(f"{type(node).__name__}: {_meaning(type(node))}")


def without_rule(said: Collection[type]) -> Iterator[tuple[str, str]]:
    """Yield the names of the nodes that are not among those which are said, and what they mean."""
    for kind in (*EXPRESSIONS, *STATEMENTS):
        if kind not in said:
            yield kind.__name__, _meaning(kind)


def _meaning(kind: type) -> str:
    return (getdoc(kind) or "").partition("\n")[0].rstrip(".")
