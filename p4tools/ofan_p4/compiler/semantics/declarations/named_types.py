"""Types with a name: typedefs, structs, headers, enums, and the lists of errors."""

from __future__ import annotations

from functools import partial

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import find_annotation
from ofan_p4.compiler.semantics.folding import wrap
from ofan_p4.compiler.semantics.scope import Context, GenericStruct, TypeName, fail
from ofan_p4.compiler.semantics.type_names import resolve_type
from ofan_p4.compiler.semantics.values import constant_int
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list
from ofan_p4.compiler.syntax.expressions import expression
from ofan_p4.compiler.syntax.lexer import Kind, Token
from ofan_p4.diagnostics import Span


def check_typedef(node: nd.Typedef, context: Context) -> ty.Type:
    """Return the type of a `typedef`, or the new type of a `type`."""
    target = resolve_type(node.type, context)
    if not node.distinct:
        return target

    if not isinstance(target, ty.Bits | ty.NewType) and target != ty.BOOL:
        fail(f"'type' cannot be made of {ty.show(target)}", node.type.span)

    return ty.NewType(node.name, target, node.annotations)


def declare_struct(node: nd.Struct, context: Context) -> None:
    """Declare a struct, header or header_union; those with type parameters when they are used."""
    if node.type_params:
        # Its fields must fit whatever the arguments are; a use of it can only be wrong besides.
        inner = context.nested()
        for name in node.type_params:
            inner.scope.declare(name, TypeName(ty.TypeVariable(name)), node.span)

        _struct_fields(node, inner)
        generic = GenericStruct(node, partial(_specialised, node, context))
        context.scope.declare(node.name, generic, node.span)
        return

    struct = ty.Struct(node.kind, node.name, _struct_fields(node, context), node.annotations)
    context.scope.declare(node.name, TypeName(struct), node.span)
    context.globals.spans[struct] = node.span

    # P4Info describes headers with @controller_header, whether they are used or not.
    if node.kind == "header":
        context.globals.headers.append(struct)


def _specialised(
    node: nd.Struct, context: Context, args: tuple[ty.Type, ...], span: Span
) -> ty.Struct:
    """Return the struct for these type arguments."""
    inner = context.nested()
    for param, arg in zip(node.type_params, args, strict=True):
        inner.scope.declare(param, TypeName(arg), span)

    return ty.Struct(
        node.kind,
        name=node.name,
        fields=_struct_fields(node, inner),
        annotations=node.annotations,
        args=args,
    )


def _struct_fields(node: nd.Struct, context: Context) -> tuple[ty.StructField, ...]:
    """Type the fields of a struct, header or union."""
    fields: list[ty.StructField] = []
    for item in node.fields:
        if any(item.name == present.name for present in fields):
            fail(f"field '{item.name}' is declared twice", item.span)

        field_type = resolve_type(item.type, context)
        if not _may_contain(node.kind, field_type):
            fail(f"a {node.kind} cannot have a field of type {ty.show(field_type)}", item.type.span)

        fields.append(
            ty.StructField(item.name, field_type, item.annotations, _field_lists(item, context))
        )

    if sum(ty.parts_of(item.type) for item in fields) > ty.MAX_PARTS:
        fail(f"this type has more than {ty.MAX_PARTS} fields", node.span)

    # BMv2 takes the length of one such field with the extraction.
    if sum(isinstance(item.type, ty.Varbit) for item in fields) > 1:
        fail("a header can have one varbit field only", node.span)

    return tuple(fields)


def _field_lists(node: nd.Field, context: Context) -> tuple[int, ...]:
    """Evaluate the indices of `@field_list(...)`."""
    note = find_annotation(node.annotations, "field_list")
    if note is None:
        return ()

    end = Token(Kind.END, "end of the annotation", note.span)
    # The tokens of an annotation are parsed only now, when their meaning is known: here an
    # expression, for which the grammar needs an end.
    cursor = Cursor([*note.tokens, Token(Kind.SYMBOL, ")", note.span), end])
    indices = comma_list(cursor, ")", expression)

    return tuple(
        constant_int(index, context, noun="the index of a field list", low=0, high=255)
        for index in indices
    )


def _may_contain(kind: str, field_type: ty.Type) -> bool:
    below = ty.underlying(field_type)
    if isinstance(below, ty.TypeVariable):
        return True

    # "Type nesting rules".
    match kind:
        case "header_union":
            return isinstance(below, ty.Struct) and below.kind == "header"
        case "header":
            if isinstance(below, ty.Struct) and below.kind == "struct":
                return all(_may_contain(kind, item.type) for item in below.fields)

            return isinstance(below, ty.Bits | ty.Varbit) or below == ty.BOOL
        case _:
            plain = isinstance(
                below, ty.Bits | ty.Enum | ty.Struct | ty.Stack | ty.Tuple | ty.Varbit
            )
            return plain or below in (ty.BOOL, ty.ERROR)


def check_enum(node: nd.EnumDeclaration, context: Context) -> ty.Enum:
    """Type an enum; with an underlying type, its members need values."""
    names = tuple(member.name for member in node.members)
    for index, member in enumerate(node.members):
        if member.name in names[:index]:
            fail(f"member '{member.name}' is declared twice", member.span)

    if node.underlying is None:
        valued = next((member for member in node.members if member.value is not None), None)
        if valued:
            fail(
                f"enum {node.name} has no underlying type, so its members have no values",
                valued.span,
            )

        return ty.Enum(node.name, names)

    base = resolve_type(node.underlying, context)
    # "Enumeration types": not of a `type`, nor of another enum.
    if not isinstance(base, ty.Bits):
        fail(f"an enum cannot be made of {ty.show(base)}", node.underlying.span)

    return ty.Enum(
        node.name,
        names,
        base,
        {item.name: _member_value(item, base, context) for item in node.members},
    )


def _member_value(member: nd.EnumMember, base: ty.Bits, context: Context) -> int:
    if member.value is None:
        fail(f"member '{member.name}' needs a value", member.span)

    value = context.check(member.value)
    if not isinstance(value, t.Literal) or not ty.is_numeric(ty.underlying(value.type)):
        fail("the value of a member must be a number known at compile time", member.value.span)

    # Unlike other constants, a member's value is not cut to its width.
    if wrap(int(value.value), base) != value.value:
        fail(f"{value.value} does not fit in {ty.show(base)}", member.value.span)

    return int(value.value)


def declare_names(node: nd.NameList, context: Context) -> None:
    """Add the names of `error {...}` or `match_kind {...}`, which may stand several times."""
    # Both are open: every declaration adds names to one list.
    names = context.globals.errors if node.kind == "error" else context.globals.match_kinds
    for name, span in node.names:
        if name in names:
            fail(f"{node.kind} '{name}' is declared twice", span)

        names.append(name)
