"""The keys of a table and the names that the control plane has for them."""

from __future__ import annotations

from ofan_p4.compiler.hints import did_you_mean
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.values import check_value
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n


def check_key(node: nd.KeyElement, context: Context) -> td.Key:
    """Type a key; raises CompileError if it can have no name."""
    expression = check_value(node.expression, context)
    if node.match_kind not in context.globals.match_kinds:
        hint = did_you_mean(node.match_kind, context.globals.match_kinds)
        fail(f"match kind '{node.match_kind}' is not declared{hint}", node.match_span)

    # Types with a fixed number of bits.
    match ty.underlying(expression.type):
        case ty.Bits() | ty.Enum() | ty.Simple("bool" | "error"):
            pass
        case _:
            fail(f"a key cannot have type {ty.show(expression.type)}", node.expression.span)

    name = string_annotation(node.annotations, "name") or _key_name(node.expression, context)
    if name is None:
        # Selector keys are inputs of a hash: the control plane never names them.
        if node.match_kind != "selector":
            fail(
                'this key is an expression and needs an annotation @name("...")',
                node.expression.span,
            )

        name = ""

    return td.Key(
        node.span, expression, match_kind=node.match_kind, name=name, annotations=node.annotations
    )


def _key_name(node: n.Expression, context: Context) -> str | None:
    """Return the control plane's name of a key as p4c forms it: the text of a path."""
    match node:
        case n.Name(_, name):
            return name
        case n.Member(_, base, name):
            return _member_name(base, name, context)
        case n.Index(_, base, index):
            prefix = _key_name(base, context)
            suffix = _key_name(index, context)
            return f"{prefix}[{suffix}]" if prefix and suffix else None
        case n.Slice(_, base, high, low):
            parts = [_key_name(part, context) for part in (base, high, low)]
            return f"{parts[0]}[{parts[1]}:{parts[2]}]" if all(parts) else None
        case n.Binary(_, "&", left, right):
            prefix = _key_name(left, context)
            suffix = _key_name(right, context)
            return f"{prefix} & {suffix}" if prefix and suffix else None
        case n.Call(_, n.Member(_, base, "isValid"), _, ()):
            prefix = _key_name(base, context)
            return f"{prefix}.$valid$" if prefix else None
        # As it is written, without width: hexadecimal numbers stay hexadecimal.
        case n.IntLiteral(span, value):
            digits = span.text.lower().split("w")[-1].split("s")[-1]
            return f"{value:#x}" if digits.startswith("0x") else digits
        case _:
            return None


def _member_name(base: n.Expression, name: str, context: Context) -> str | None:
    """Return the name of a field, or the name of its annotation @name instead."""
    prefix = _key_name(base, context)
    struct = context.check(base).type if prefix else None
    if isinstance(struct, ty.Struct):
        annotations = next((item.annotations for item in struct.fields if item.name == name), ())
        name = string_annotation(annotations, "name") or name

    # `@name(".x")` is a name from the root, without the prefix.
    if name.startswith("."):
        return name[1:]

    return f"{prefix}.{name}" if prefix else None


def check_kinds(keys: tuple[td.Key, ...]) -> None:
    """Check that the match kinds of a table may stand together."""
    kinds = [key.match_kind for key in keys]
    # BMv2 takes one prefix per table.
    if kinds.count("lpm") > 1:
        second = [key for key in keys if key.match_kind == "lpm"][1]
        fail("a table can have one lpm key only", second.span)
