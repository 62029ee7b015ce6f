"""Constructors: externs, controls, parsers and packages that are made at compile time."""

from __future__ import annotations

from ofan_p4.compiler.hints import did_you_mean
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.arguments import Bound, align, bind_types, pick
from ofan_p4.compiler.semantics.conversion import coerce, unify
from ofan_p4.compiler.semantics.scope import Context, TypeName, fail
from ofan_p4.compiler.semantics.type_names import type_words
from ofan_p4.compiler.semantics.values import is_compile_time
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import Span


def check_constructor(
    node: n.TypeExpression, args: tuple[n.Argument, ...], span: Span, context: Context
) -> tuple[td.InstanceType, tuple[ty.Expression | td.Instance, ...]]:
    """Type `T(args)`: the instance's type and the checked arguments."""
    symbol = context.scope.find(node.name) if isinstance(node, n.NamedType) else None
    # `typedef register<bit<8>> cells; cells(16) r;` has its type arguments already.
    if isinstance(symbol, TypeName) and isinstance(symbol.type, ty.Extern):
        assert isinstance(node, n.NamedType)
        if node.args:
            fail(f"{node.name} takes no type arguments", node.span)

        return _extern_object(symbol.type, args, span, context)

    match symbol:
        case None if isinstance(node, n.NamedType):
            hint = did_you_mean(node.name, type_words(context))
            return fail(f"unknown type '{node.name}'{hint}", node.span)
        case td.Control() | td.ParserBlock():
            return symbol, _constructor_args(
                symbol.constructor, args, span, context=context, bound={}
            )
        case ty.BlockDefinition(kind="package"):
            assert isinstance(node, n.NamedType)
            bound = bind_types(symbol.type_params, node.args, context, span)
            return symbol, _constructor_args(
                symbol.params, args, span, context=context, bound=bound
            )
        case ty.ExternDefinition():
            assert isinstance(node, n.NamedType)
            return _extern_constructor(symbol, node, args, span=span, context=context)

    return fail("expected the constructor of an extern, control or parser", node.span)


def _extern_constructor(
    definition: ty.ExternDefinition,
    node: n.NamedType,
    args: tuple[n.Argument, ...],
    span: Span,
    context: Context,
) -> tuple[ty.Extern, tuple[ty.Expression | td.Instance, ...]]:
    if not definition.constructors:
        fail(f"extern {definition.name} has no constructor", node.span)

    signature = pick(definition.constructors, args, span)
    bound = bind_types(definition.type_params, node.args, context, node.span)
    values = _constructor_args(signature.params, args, span, context=context, bound=bound)
    types = tuple(bound[param] for param in definition.type_params)

    if ty.DONT_CARE in types:
        fail(f"{definition.name} needs {len(types)} type arguments", node.span)

    return ty.Extern(definition, types), values


def _extern_object(
    extern: ty.Extern, args: tuple[n.Argument, ...], span: Span, context: Context
) -> tuple[ty.Extern, tuple[ty.Expression | td.Instance, ...]]:
    """Type the constructor of an extern with type arguments from a typedef."""
    signature = pick(extern.definition.constructors, args, span)
    bound = dict(zip(extern.definition.type_params, extern.args, strict=True))
    return extern, _constructor_args(signature.params, args, span, context=context, bound=bound)


def _constructor_args(
    params: tuple[ty.Parameter, ...],
    args: tuple[n.Argument, ...],
    span: Span,
    context: Context,
    bound: Bound,
) -> tuple[ty.Expression | td.Instance, ...]:
    aligned = align(params, args, span)
    return tuple(
        _constructor_arg(arg, param, context, bound=bound, span=span)
        for arg, param in zip(aligned, params, strict=True)
    )


def _constructor_arg(
    arg: n.Argument | None, param: ty.Parameter, context: Context, bound: Bound, span: Span
) -> ty.Expression | td.Instance:
    if arg is None:
        return ty.default_of(param)

    # `V1Switch(MyParser(), ...)`: an argument may make an instance in place.
    made = constructed(arg.value, context, param.name)
    if made is not None:
        _check_block(made, param, bound, arg.span)
        return made

    value = context.check(arg.value)
    unify(param.type, value.type, bound)
    result = coerce(value, ty.substitute(param.type, bound))

    if not is_compile_time(result):
        fail(f"the argument for '{param.name}' must be known at compile time", arg.span)

    return result


def constructed(node: n.Expression, context: Context, name: str) -> td.Instance | None:
    """Return the instance that an argument makes (`P()`) or names, None if it is a value."""
    match node:
        case n.Name(_, instance):
            symbol = context.scope.find(instance)
            return symbol if isinstance(symbol, td.Instance) else None
        case n.Call(span, n.Name(name_span, type_name), type_args, args):
            symbol = context.scope.find(type_name)
            if isinstance(
                symbol, td.Control | td.ParserBlock | ty.ExternDefinition | ty.BlockDefinition
            ):
                written = n.NamedType(name_span, type_name, type_args)
                made, values = check_constructor(written, args, span, context)
                return td.Instance(
                    span, name, type=made, args=values, annotations=(), anonymous=True
                )

    return None


def _check_block(  # noqa: C901 one message for each thing that can differ
    made: td.Instance, param: ty.Parameter, bound: Bound, span: Span
) -> None:
    """Check that a parser or control fits the block type of a package's parameter."""
    if not isinstance(param.type, ty.Block):
        if (
            isinstance(made.type, ty.Extern)
            and isinstance(param.type, ty.Extern)
            and unify(param.type, made.type, bound)
        ):
            return

        fail(f"expected {ty.show(param.type)}, found {made.name}", span)

    definition = param.type.definition
    kind = (
        "control"
        if isinstance(made.type, td.Control)
        else "parser"
        if isinstance(made.type, td.ParserBlock)
        else ""
    )

    if kind != definition.kind or not isinstance(made.type, td.Control | td.ParserBlock):
        fail(f"expected a {definition.kind}, found {made.name}", span)

    # The type parameters of the block type are bound by the block that is given ...
    type_args: Bound = dict.fromkeys(definition.type_params, ty.DONT_CARE)
    if len(made.type.params) != len(definition.params):
        fail(
            f"{made.type.name} has {len(made.type.params)} parameters, "
            f"{definition.name} {len(definition.params)}",
            span,
        )

    for actual, declared in zip(made.type.params, definition.params, strict=True):
        if actual.direction != declared.direction or not unify(
            declared.type, actual.type, type_args
        ):
            expected = (
                f"{declared.direction} {ty.show(ty.substitute(declared.type, type_args))}".strip()
            )
            fail(f"parameter '{actual.name}' of {made.type.name} must be {expected}", span)

    # ... and must then agree with the package's other blocks: one H, one M.
    for pattern, variable in zip(param.type.args, definition.type_params, strict=True):
        if not unify(pattern, type_args[variable], bound):
            shown = ty.show(type_args[variable])
            wanted_type = ty.show(ty.substitute(pattern, bound))
            fail(f"{made.type.name} uses {shown} where the others use {wanted_type}", span)
