"""Annotations as P4Info keeps them: as text, as structured messages, and as limits of an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from p4.config.v1 import p4info_pb2, p4types_pb2

from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import (
    find_annotation,
    int_annotation,
    string_annotation,
    write_annotation,
)
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.compiler.semantics.typed import Literal, Pair
from ofan_p4.compiler.syntax.lexer import Token
from ofan_p4.compiler.syntax.nodes import Annotation, Annotations
from ofan_p4.diagnostics import CompileError

Structured = Mapping[int, tuple[Pair, ...]]
"""What structured annotations say, by their place in the text."""


def annotate(
    message: object, annotations: Annotations, structured: Structured, skip: Iterable[str] = ()
) -> None:
    """Add annotations and documentation; `@name` and `@id` have places of their own."""
    target: p4info_pb2.Preamble = message
    for item in annotations:
        if item.structured:
            _structured(item, structured[item.span.start], target.structured_annotations.add())
        elif item.name not in ("name", "id", "brief", "description", *skip):
            target.annotations.append(write_annotation(item))

    for key in ("brief", "description"):
        text = (
            string_annotation(annotations, key)
            if "doc" in target.DESCRIPTOR.fields_by_name
            else None
        )

        if text is not None:
            setattr(target.doc, key, text)


def own_id(annotations: Annotations) -> int | None:
    """Return the number of `@id`, None without it."""
    return int_annotation(annotations, "id")


def limit(annotations: Annotations, name: str) -> int:
    """Return the number of an annotation, 0 if it is missing; the format keeps it in 31 bits."""
    limit = int_annotation(annotations, name) or 0
    item = find_annotation(annotations, name)
    if item is not None and limit >> 31:
        raise CompileError(f"@{name} must be below 2**31, found {limit}", item.span)

    return limit


def pairs(note: Annotation) -> list[tuple[str, Token]]:
    """Read `key = value, ...`."""
    tokens = note.tokens
    if any(i + 2 >= len(tokens) or tokens[i + 1].text != "=" for i in range(0, len(tokens), 4)):
        fail(f"@{note.name} needs pairs 'key = value'", note.span)

    return [(tokens[i].text, tokens[i + 2]) for i in range(0, len(tokens), 4)]


def _structured(
    item: Annotation, pairs_of: tuple[Pair, ...], message: p4types_pb2.StructuredAnnotation
) -> None:
    """Write `@name[...]`: a list of values or of pairs."""
    message.name = item.name
    for key, value in pairs_of:
        _literal(
            value,
            message.kv_pair_list.kv_pairs.add(key=key).value
            if key
            else message.expression_list.expressions.add(),
        )


def _literal(value: Literal, message: p4types_pb2.Expression) -> None:
    match value.type, value.value:
        case ty.Simple("bool"), number_:
            message.bool_value = bool(number_)
        case _, str(text):
            message.string_value = text
        case _, number_ if -(1 << 63) <= number_ < 1 << 63:
            message.int64_value = number_
        case _:
            fail("P4Info keeps numbers of 64 bits", value.span)
