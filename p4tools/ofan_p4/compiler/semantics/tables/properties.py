"""The properties of a table in v1model."""

from __future__ import annotations

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.semantics.constructors import constructed
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.values import is_compile_time
from ofan_p4.compiler.syntax import declaration_nodes as nd

# Those of v1model and of the language; `key`, `actions` and `entries` are no expressions.
PROPERTIES = (
    "size",
    "default_action",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "largest_priority_wins",
    "priority_delta",
)


def find_property(node: nd.Table, name: str) -> nd.Property | None:
    """Return a property of the table, None if it is not given."""
    return next((item for item in node.properties if item.name == name), None)


def constant_property(
    node: nd.Table, name: str, target: ty.Type, context: Context
) -> ty.Expression | None:
    """Return the value of a property that must be known at compile time."""
    item = find_property(node, name)
    if item is None:
        return None

    value = context.check(item.value)
    if not (ty.is_numeric(ty.underlying(value.type)) if target == ty.INT else value.type == target):
        fail(
            f"'{name}' must be {'a number' if target == ty.INT else ty.show(target)}",
            item.value.span,
        )

    if not is_compile_time(value):
        fail(f"'{name}' must be known at compile time", item.value.span)

    return value


def flag(node: nd.Table, name: str, context: Context) -> bool:
    """Say whether a property is given and true."""
    value = constant_property(node, name, ty.BOOL, context)
    return isinstance(value, t.Literal) and bool(value.value)


def instance_property(
    node: nd.Table, name: str, kinds: tuple[str, ...], context: Context
) -> td.Instance | None:
    """Return the extern object that a property names or makes in place."""
    item = find_property(node, name)
    if item is None:
        return None

    instance = constructed(item.value, context, f"{node.name}.{name}")
    if (
        instance is None
        or not isinstance(instance.type, ty.Extern)
        or instance.type.name not in kinds
    ):
        fail(f"'{name}' must be {' or '.join(kinds)}", item.value.span)

    if not instance.anonymous:
        return instance

    # The object has no declaration, so its name is made of the table's and the property's, or given
    # by @name on the property.
    named = (string_annotation(item.annotations, "name") or instance.name).removeprefix(".")
    return td.Instance(
        instance.span,
        name=named,
        type=instance.type,
        args=instance.args,
        annotations=item.annotations,
        anonymous=True,
    )
