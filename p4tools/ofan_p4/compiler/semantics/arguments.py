"""Arguments of calls: their parameters, and the types for the type parameters."""

from __future__ import annotations

from collections.abc import Iterable

from ofan_p4.compiler.hints import did_you_mean
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.conversion import coerce, unify
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.type_names import resolve_type
from ofan_p4.compiler.semantics.values import check_value, is_left_value
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import Span

Bound = dict[ty.TypeVariable, ty.Type]


def align(
    params: tuple[ty.Parameter, ...], args: Iterable[n.Argument], span: Span
) -> list[n.Argument | None]:
    """Return the argument of every parameter, None where its default is to be used."""
    positional = [arg for arg in args if arg.name is None]
    named = {arg.name: arg for arg in args if arg.name is not None}
    if len(positional) > len(params):
        fail(
            f"expected {len(params)} arguments, found {len(positional)}",
            positional[len(params)].span,
        )

    aligned: list[n.Argument | None] = []
    for index, param in enumerate(params):
        arg = positional[index] if index < len(positional) else named.pop(param.name, None)
        if arg is None and param.default is None:
            fail(f"the argument for '{param.name}' is missing", span)

        aligned.append(arg)

    for name, arg in named.items():
        hint = did_you_mean(str(name), (param.name for param in params))
        fail(f"there is no parameter '{name}' left{hint}", arg.span)

    return aligned


def match_args(
    params: tuple[ty.Parameter, ...], node: n.Call, context: Context, bound: Bound
) -> td.Args:
    """Check the arguments against the parameters, binding the type variables in `bound`."""
    aligned = align(params, node.args, node.span)
    raw = [_raw_argument(arg, param, context) for arg, param in zip(aligned, params, strict=True)]
    # Arguments with a width first: the types that they bind decide the type of an `int`.
    for known_only in (True, False):
        for value, param in zip(raw, params, strict=True):
            if value is not None and (value.type != ty.INT) == known_only:
                unify(param.type, value.type, bound)

    return tuple(_argument(value, param, bound) for value, param in zip(raw, params, strict=True))


def _raw_argument(
    arg: n.Argument | None, param: ty.Parameter, context: Context
) -> ty.Expression | None:
    if arg is None:
        return ty.default_of(param)
    # `_`: the result is not wanted.
    if isinstance(arg.value, n.DefaultExpression) and param.direction == "out":
        return None

    value = check_value(arg.value, context)
    if param.direction in ("out", "inout") and not is_left_value(arg.value, value):
        fail(
            f"the argument for {param.direction} parameter '{param.name}' must be writable",
            arg.span,
        )

    if isinstance(value, t.StackMember) and value.which == "next" and param.direction != "out":
        fail("'next' may only be written to", arg.span)

    return value


def _argument(
    value: ty.Expression | None, param: ty.Parameter, bound: Bound
) -> ty.Expression | None:
    if value is None:
        return None

    param_type = ty.substitute(param.type, bound)
    if param_type != param.type:
        _require_inferred(value, param_type, param)

    # Nothing is converted on the way out, so the types must be the same.
    if param.direction in ("out", "inout") and value.type != param_type:
        fail(f"expected {ty.show(param_type)}, found {ty.show(value.type)}", value.span)

    if param_type == ty.DONT_CARE:
        fail(f"cannot infer the type of '{param.name}'", value.span)

    return coerce(value, param_type)


def _require_inferred(value: ty.Expression, parameter_type: ty.Type, param: ty.Parameter) -> None:
    """Refuse a type that cannot be inferred from an argument."""
    if parameter_type == ty.INT and param.direction:
        fail("the width of this number cannot be inferred", value.span)

    if isinstance(parameter_type, ty.Record):
        fail(f"cannot infer the type of '{param.name}'", value.span)

    if parameter_type in (ty.STRING, ty.MATCH_KIND, ty.VOID) and param.direction:
        fail(f"a parameter of type {ty.show(parameter_type)} has no direction", value.span)


def bind_types(
    params: tuple[ty.TypeVariable, ...],
    args: tuple[n.TypeExpression, ...],
    context: Context,
    span: Span,
) -> Bound:
    """Start the inference with the type arguments that are given."""
    if args and len(args) != len(params):
        fail(f"expected {len(params)} type arguments, found {len(args)}", span)

    types = [resolve_type(arg, context) for arg in args] or [ty.DONT_CARE] * len(params)
    return dict(zip(params, types, strict=True))


def pick(
    signatures: Iterable[ty.Signature], args: tuple[n.Argument, ...], span: Span
) -> ty.Signature:
    """Choose the overload with parameters that take these arguments."""
    candidates = list(signatures)
    for signature in candidates:
        # Overloads differ in the number and names of arguments, never in types alone.
        required = sum(param.default is None for param in signature.params)
        names = {param.name for param in signature.params}
        if required <= len(args) <= len(signature.params) and all(
            arg.name in (None, *names) for arg in args
        ):
            return signature

    counts = " or ".join(sorted({str(len(signature.params)) for signature in candidates}))
    return fail(f"'{candidates[0].name}' takes {counts} arguments, found {len(args)}", span)
