"""Types as P4Info describes them (p4types.proto)."""

from __future__ import annotations

from typing import Any

from p4.config.v1 import p4types_pb2

from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import (
    find_annotation,
    string_annotation,
    write_annotation,
)
from ofan_p4.compiler.syntax.lexer import Kind, number, string
from ofan_p4.diagnostics import CompileError


def type_spec(  # noqa: C901 one case for each type
    type_: ty.Type, info: p4types_pb2.P4TypeInfo, errors: tuple[str, ...]
) -> p4types_pb2.P4DataTypeSpec:
    """Describe a type, and add the named types that it needs to `info`."""
    spec = p4types_pb2.P4DataTypeSpec()
    match type_:
        case ty.Bits(width, signed):
            spec.bitstring.CopyFrom(_bitstring(width, signed))
        case ty.Varbit(width):
            spec.bitstring.varbit.max_bitwidth = width
        case ty.Simple("bool"):
            spec.bool.SetInParent()
        case ty.Simple("error"):
            spec.error.SetInParent()
            # All errors of the program, once.
            if not info.HasField("error"):
                info.error.members.extend(errors)
        case ty.Tuple(elements):
            spec.tuple.members.extend(type_spec(element, info, errors) for element in elements)
        case ty.NewType(name):
            spec.new_type.name = name
            add_new_type(type_, info, errors)
        case ty.Enum(name):
            (spec.serializable_enum if type_.underlying else spec.enum).name = name
            _add_enum(type_, info)
        case ty.Struct():
            _struct_spec(type_, spec, info, errors)
        # Two messages for one thing: stacks of headers and stacks of unions.
        case ty.Stack(element, size):
            target = spec.header_stack if element.kind == "header" else spec.header_union_stack
            inner = type_spec(element, info, errors)
            (target.header if element.kind == "header" else target.header_union).name = (
                inner.header.name or inner.header_union.name
            )
            target.size = size

    return spec


def _entry(entries: Any, name: str) -> Any:
    """Return an entry of a map, new if need be.

    The published message classes show their maps as lists of pairs.
    """
    if not hasattr(entries, "add"):
        return entries[name]

    entry = next((pair for pair in entries if pair.key == name), None)
    return (entries.add(key=name) if entry is None else entry).value


def _bitstring(width: int, signed: bool) -> p4types_pb2.P4BitstringLikeTypeSpec:
    spec = p4types_pb2.P4BitstringLikeTypeSpec()
    (spec.int if signed else spec.bit).bitwidth = width
    return spec


def struct_name(struct: ty.Struct) -> str:
    """Return the control plane's name of a struct or header."""
    return string_annotation(struct.annotations, "name") or struct.name


def _struct_spec(
    struct: ty.Struct,
    spec: p4types_pb2.P4DataTypeSpec,
    info: p4types_pb2.P4TypeInfo,
    errors: tuple[str, ...],
) -> None:
    name = struct_name(struct)
    match struct.kind:
        case "struct":
            spec.struct.name = name
            spec = p4types_pb2.P4StructTypeSpec()
            for item in struct.fields:
                spec.members.add(name=item.name).type_spec.CopyFrom(
                    type_spec(item.type, info, errors)
                )

            _entry(info.structs, name).CopyFrom(spec)
        case "header":
            spec.header.name = name
            header = p4types_pb2.P4HeaderTypeSpec()
            for item in struct.fields:
                bits = type_spec(ty.underlying(item.type), info, errors).bitstring
                header.members.add(name=item.name).type_spec.CopyFrom(bits)

            _entry(info.headers, name).CopyFrom(header)
        case _:
            spec.header_union.name = name
            union = p4types_pb2.P4HeaderUnionTypeSpec()
            for item in struct.fields:
                union.members.add(name=item.name).header.CopyFrom(
                    type_spec(item.type, info, errors).header
                )

            _entry(info.header_unions, name).CopyFrom(union)


def _add_enum(enum: ty.Enum, info: p4types_pb2.P4TypeInfo) -> None:
    if enum.underlying is None:
        spec = _entry(info.enums, enum.name)
        spec.ClearField("members")
        for member in enum.members:
            spec.members.add(name=member)

        return

    serializable = _entry(info.serializable_enums, enum.name)
    serializable.ClearField("members")
    serializable.underlying_type.bitwidth = enum.underlying.width

    for member in enum.members:
        serializable.members.add(
            name=member, value=to_bytes(enum.value(member), enum.underlying.width)
        )


def add_new_type(type_: ty.NewType, info: p4types_pb2.P4TypeInfo, errors: tuple[str, ...]) -> None:
    """Add a `type` declaration to the named types."""
    spec = p4types_pb2.P4NewTypeSpec()
    translated = translation(type_)
    if translated is None:
        spec.original_type.CopyFrom(type_spec(ty.underlying(type_), info, errors))
    else:
        spec.translated_type.uri, width = translated
        if width is None:
            spec.translated_type.sdn_string.SetInParent()
        else:
            spec.translated_type.sdn_bitwidth = width

    for note in type_.annotations:
        if not note.structured and note.name != "p4runtime_translation":
            spec.annotations.append(write_annotation(note))

    _entry(info.new_types, type_.name).CopyFrom(spec)


def translation(type_: ty.NewType) -> tuple[str, int | None] | None:
    """Read `@p4runtime_translation("uri", width)`; width None is a string."""
    note = find_annotation(type_.annotations, "p4runtime_translation")
    if note is None:
        return None

    tokens = note.tokens
    if len(tokens) < 3 or tokens[0].kind is not Kind.STRING or tokens[1].text != ",":
        raise CompileError("@p4runtime_translation needs a URI and a width or 'string'", note.span)

    # A number, `bit<W>` or `string`.
    kind = tokens[2]
    if kind.kind is Kind.NUMBER:
        return string(tokens[0]), number(kind).value
    if kind.text == "bit" and len(tokens) > 4:
        return string(tokens[0]), number(tokens[4]).value

    return string(tokens[0]), None


def control_plane_width(type_: ty.Type) -> int:
    """Return the width that P4Info gives a field; 0 if the control plane sees a string."""
    if isinstance(type_, ty.NewType) and (translated := translation(type_)) is not None:
        return translated[1] or 0

    return 0 if type_ == ty.ERROR else ty.width_of(type_)


def to_bytes(value: int, width: int) -> bytes:
    """Return a number in network order, padded to whole bytes of its width."""
    return (value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big")
