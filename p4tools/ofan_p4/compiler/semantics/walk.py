"""Walking typed bodies: every path from a name down to the part of it that a body uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty

DECLARATIONS = (
    ty.Parameter,
    td.Table,
    td.Instance,
    td.ValueSet,
    td.Function,
    td.Control,
    td.ParserBlock,
)


def paths(node: object) -> Iterator[ty.Expression]:  # noqa: C901 one case for each kind of node
    """Yield the names and members that a body reads or writes, also through calls of actions."""
    match node:
        case tuple():
            for item in node:
                yield from paths(item)
        # At its full length: who writes `h.a` does not touch `h.b`.
        case t.Ref() | t.Field() | t.StackMember():
            yield node
            yield from _indices(node)
        case t.Element():
            yield node
            yield from _indices(node)
        # An action uses the variables of its control by name; functions cannot ("Function
        # declarations").
        case t.ActionCall(_, _, action, args):
            yield from paths(args)
            yield from paths(action.body)
        case td.Variable():
            yield from paths(node.value)
        case None | str() | int():
            return
        # A declaration's body is used where it is called or applied, not where it is named.
        case _ if not isinstance(node, DECLARATIONS) and hasattr(node, "__dataclass_fields__"):
            for item in fields(node):  # type: ignore[arg-type]
                if item.name not in ("span", "type"):
                    yield from paths(getattr(node, item.name))


def _indices(node: ty.Expression) -> Iterator[ty.Expression]:
    """Yield the expressions in the indices inside a path, and its base if it is not a name."""
    match node:
        case t.Field(_, _, base) | t.StackMember(_, _, base):
            yield from _indices(base)
        case t.Element(_, _, base, index):
            yield from _indices(base)
            yield from paths(index)
        case t.Ref():
            return
        case _:
            yield from paths(node)
