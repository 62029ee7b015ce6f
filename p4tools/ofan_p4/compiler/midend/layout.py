"""Where values live: a scalar is a field of the metadata `scalars`, a header an instance."""

from __future__ import annotations

from functools import cache

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.switch import HeaderInstance, Layout
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

SCALARS = "scalars"
STANDARD_METADATA = "standard_metadata"


def allocate(layout: Layout, name: str, type_: ty.Type, span: Span) -> ir.Operand:
    """Give a variable of any type storage under `name`.

    Structs and tuples get one piece per field.
    """
    # The order matters: a header is a Struct too.
    match ty.underlying(type_):
        case ty.Struct(kind="header") as header:
            return _header(layout, _unique(layout, name), header)
        case ty.Struct(kind="header_union") as union:
            return _union(layout, _unique(layout, name), union)
        case ty.Stack() as stack:
            return _stack(layout, _unique(layout, name), stack)
        case ty.Struct() as struct:
            names = tuple(item.name for item in struct.fields)
            parts = (_field_name(item) for item in struct.fields)
            items = (
                allocate(layout, f"{name}.{part}" if name else part, item.type, span)
                for part, item in zip(parts, struct.fields, strict=True)
            )

            return ir.StructAt(type_, names, tuple(items))
        case ty.Tuple(elements):
            names = tuple(str(index) for index in range(len(elements)))
            items = (
                allocate(layout, f"{name}.{index}", item, span)
                for index, item in enumerate(elements)
            )

            return ir.StructAt(type_, names, tuple(items))
        case ty.Varbit() as varbit:
            return _varbit(layout, name, varbit, span)

    unique = _unique(layout, name)
    layout.scalars[unique] = type_
    return ir.FieldRef(SCALARS, unique, type_)


def _field_name(item: ty.StructField) -> str:
    return string_annotation(item.annotations, "name") or item.name


def _unique(layout: Layout, name: str) -> str:
    # One space of names for all storage, since variables of inlined blocks often share theirs.
    taken = (layout.scalars, layout.headers, layout.stacks, layout.unions)
    candidate = name
    # The end of the last search for this name: all temporaries have the same name.
    number = layout.numbers.get(name, 0)

    while any(candidate in names for names in taken) or candidate in (SCALARS, STANDARD_METADATA):
        candidate = f"{name}_{number}"
        number = number + 1

    layout.numbers[name] = number
    return candidate


def _header(layout: Layout, name: str, header: ty.Struct) -> ir.HeaderAt:
    layout.headers[name] = HeaderInstance(name, header)
    return ir.HeaderAt(name, header)


def _union(layout: Layout, name: str, union: ty.Struct) -> ir.UnionAt:
    members = []
    for item in union.fields:
        assert isinstance(item.type, ty.Struct)
        members.append(_header(layout, f"{name}.{item.name}", item.type))

    placed = ir.UnionAt(name, union, tuple(members))
    layout.unions[name] = placed
    return placed


def _stack(layout: Layout, name: str, stack: ty.Stack) -> ir.StackAt:
    make = _union if stack.element.kind == "header_union" else _header
    elements = tuple(make(layout, f"{name}[{index}]", stack.element) for index in range(stack.size))
    placed = ir.StackAt(name, stack, elements)
    layout.stacks[name] = placed

    return placed


def _varbit(layout: Layout, name: str, type_: ty.Varbit, span: Span) -> ir.FieldRef:
    """Give a varbit a metadata header: the target allows varbits in headers, not in structs."""
    if type_.width % 8:
        fail(f"the target stores whole bytes, not varbit<{type_.width}>", span)

    unique = _unique(layout, name)
    layout.headers[unique] = HeaderInstance(unique, _varbit_header(type_.width), metadata=True)
    return ir.FieldRef(unique, "field", type_)


# One type per width, or the JSON would list equal header types.
@cache
def _varbit_header(width: int) -> ty.Struct:
    return ty.Struct("header", f"varbit{width}$", (ty.StructField("field", ty.Varbit(width)),))


def header_field(header: ir.HeaderAt, name: str) -> ir.Operand:
    """Return a field of a header.

    A field that is a struct has its own fields in the header, joined by dots.
    """
    field_type = header.type.field_type(name)
    assert field_type is not None
    return _nested(header.name, name, field_type)


def _nested(header: str, name: str, type_: ty.Type) -> ir.Operand:
    if isinstance(type_, ty.Struct):
        names = tuple(item.name for item in type_.fields)
        items = tuple(_nested(header, f"{name}.{item.name}", item.type) for item in type_.fields)
        return ir.StructAt(type_, names, items)

    return ir.FieldRef(header, name, type_)


def flat_fields(struct: ty.Struct, prefix: str = "") -> list[tuple[str, ty.Type]]:
    """Return the fields of a header with nested structs flattened, as the JSON lists them."""
    flat: list[tuple[str, ty.Type]] = []
    for item in struct.fields:
        # BMv2 has no structs in headers; only the names keep the struct's.
        if isinstance(item.type, ty.Struct):
            flat.extend(flat_fields(item.type, f"{prefix}{item.name}."))
        else:
            flat.append((prefix + item.name, item.type))

    return flat


def standard_metadata(struct: ty.Struct) -> ir.StructAt:
    """Return the storage that the switch itself fills."""
    names = tuple(item.name for item in struct.fields)
    return ir.StructAt(
        struct,
        names,
        tuple(ir.FieldRef(STANDARD_METADATA, item.name, item.type) for item in struct.fields),
    )
