"""Type expressions to types, and the constants that they need."""

from __future__ import annotations

from collections.abc import Iterator

from ofan_p4.compiler.hints import WORDS, did_you_mean
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import Context, GenericStruct, TypeName, fail
from ofan_p4.compiler.semantics.values import constant_int
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.expressions import MAX_VARBIT, MAX_WIDTH
from ofan_p4.diagnostics import Span

_SIMPLE = {
    kind.name: kind
    for kind in (ty.BOOL, ty.INT, ty.STRING, ty.ERROR, ty.VOID, ty.MATCH_KIND, ty.DONT_CARE)
}
MAX_STACK = 4096


def resolve_type(node: n.TypeExpression, context: Context) -> ty.Type:
    """Return the type that is written; raises CompileError if it does not exist."""
    match node:
        # `_` is among them: a type to be inferred.
        case n.BaseType(_, name):
            return _SIMPLE[name]
        case n.SizedType(_, name, width):
            return _sized(name, width, context)
        case n.StackTypeExpression(span, element, size):
            inner = resolve_type(element, context)
            # Stacks of structs are not in the language ("Header stacks").
            if not isinstance(inner, ty.Struct) or inner.kind == "struct":
                fail(f"only headers and unions form stacks, not {ty.show(inner)}", span)

            number = constant_int(size, context, noun="the size of a stack", low=1, high=MAX_STACK)
            return check_parts(ty.Stack(inner, number), span)
        case n.TupleTypeExpression(span, elements):
            parts = tuple(_element(element, context) for element in elements)
            return check_parts(ty.Tuple(parts), span)
        case n.NamedType():
            return _named(node, context)


def check_parts(type_: ty.Type, span: Span) -> ty.Type:
    """Return a type unless it has too many fields."""
    if ty.parts_of(type_) > ty.MAX_PARTS:
        fail(f"this type has more than {ty.MAX_PARTS} fields", span)

    return type_


def _element(node: n.TypeExpression, context: Context) -> ty.Type:
    type_ = resolve_type(node, context)
    if type_ in (ty.VOID, ty.DONT_CARE):
        fail(f"a tuple cannot have a field of type {ty.show(type_)}", node.span)

    return type_


def _sized(name: str, width: n.Expression, context: Context) -> ty.Type:
    if name == "varbit":
        return ty.Varbit(constant_int(width, context, noun="a width", low=0, high=MAX_VARBIT))

    bits = constant_int(width, context, noun="a width", low=1, high=MAX_WIDTH)
    return ty.Bits(bits, signed=name == "int")


def _named(node: n.NamedType, context: Context) -> ty.Type:
    symbol = context.scope.find(node.name)
    args = tuple(resolve_type(arg, context) for arg in node.args)
    match symbol:
        case TypeName(result) if not args:
            return result
        case GenericStruct():
            return _specialised(symbol, args, node)
        case ty.ExternDefinition(type_params=params):
            return ty.Extern(symbol, _filled(args, params, node))
        case ty.BlockDefinition(type_params=params):
            return ty.Block(symbol, _filled(args, params, node))
        case TypeName():
            return fail(f"{node.name} takes no type arguments", node.span)
        case None:
            hint = did_you_mean(node.name, type_words(context))
            return fail(f"unknown type '{node.name}'{hint}", node.span)
        case _:
            return fail(f"'{node.name}' is not a type that can be used here", node.span)


def type_words(context: Context) -> Iterator[str]:
    """Yield the words that can stand where an unknown type does, as hints."""
    yield from context.scope.names(
        TypeName,
        GenericStruct,
        ty.ExternDefinition,
        ty.BlockDefinition,
        td.Control,
        td.ParserBlock,
    )
    # `transtion accept;` looks like the declaration of a variable.
    yield from WORDS


def _specialised(symbol: GenericStruct, args: tuple[ty.Type, ...], node: n.NamedType) -> ty.Struct:
    params = symbol.node.type_params
    if len(args) != len(params):
        fail(f"{node.name} takes {len(params)} type arguments, found {len(args)}", node.span)

    if any(isinstance(arg, ty.Struct) and arg.name == node.name for arg in args):
        fail(f"{node.name} cannot be an argument of itself", node.span)

    return symbol.instance(args, node.span)


def _filled(
    args: tuple[ty.Type, ...], params: tuple[ty.TypeVariable, ...], node: n.NamedType
) -> tuple[ty.Type, ...]:
    """Return the type arguments, or don't cares to be inferred where none are given."""
    # `packet_in`, or an extern that gets its types from the constructor's arguments.
    if not args:
        return (ty.DONT_CARE,) * len(params)

    if len(args) != len(params):
        fail(f"{node.name} takes {len(params)} type arguments, found {len(args)}", node.span)

    return args
