"""All kinds of nodes, and a walk through a node's parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType
from typing import Any

from ofan_p4.softswitch.codegen import nodes, packet_nodes, statements
from ofan_p4.softswitch.codegen.nodes import Expression
from ofan_p4.softswitch.codegen.statements import Key, Statement


def _kinds(base: type, *modules: ModuleType) -> tuple[type, ...]:
    classes = [item for module in modules for item in vars(module).values()]
    kinds = (kind for kind in classes if isinstance(kind, type) and issubclass(kind, base))
    return tuple(kind for kind in dict.fromkeys(kinds) if kind is not base)


EXPRESSIONS = _kinds(Expression, nodes, packet_nodes)
STATEMENTS = _kinds(Statement, statements)
# A node's parts: its expressions, its statements, and the rest.
PARTS: dict[type, tuple[str, ...]] = {
    kind: tuple(part.name for part in fields(kind)) for kind in (*EXPRESSIONS, *STATEMENTS, Key)
}


def nodes_in(node: Expression) -> Iterator[Any]:
    """Yield an expression and all those that it is made of."""
    todo: list[Any] = [node]
    while todo:
        item = todo.pop()
        if type(item) is tuple:
            todo += item
        elif type(item) in PARTS:
            yield item
            todo += [getattr(item, name) for name in PARTS[type(item)]]
