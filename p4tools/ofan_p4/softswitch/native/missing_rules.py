"""Nodes that have no machine code, and the error that names them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from inspect import getdoc
from typing import Any

from ofan_p4.softswitch.codegen.kinds import EXPRESSIONS, STATEMENTS
from ofan_p4.softswitch.native.values import UnsupportedError


def no_rule(node: Any) -> UnsupportedError:
    """Return the error that a node has no rule."""
    return UnsupportedError(f"{type(node).__name__}: {_meaning(type(node))}")


def without_rule(translated: Collection[type]) -> Iterator[tuple[str, str]]:
    """Yield the name and the meaning of each kind of node that is not among the translated ones."""
    for kind in (*EXPRESSIONS, *STATEMENTS):
        if kind not in translated:
            yield kind.__name__, _meaning(kind)


def _meaning(kind: type) -> str:
    return (getdoc(kind) or "").partition("\n")[0].rstrip(".")
