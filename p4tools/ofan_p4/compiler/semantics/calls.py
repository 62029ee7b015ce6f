"""Calls: functions, actions, methods of externs and headers, `apply`, constructors."""

from __future__ import annotations

from ofan_p4.compiler.hints import did_you_mean
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.arguments import Bound, bind_types, match_args, pick
from ofan_p4.compiler.semantics.scope import (
    Context,
    GenericFunction,
    Overloads,
    Symbol,
    TypeName,
    fail,
)
from ofan_p4.compiler.semantics.values import constant_int, is_left_value
from ofan_p4.compiler.syntax import nodes as n

HEADER_METHODS = {"isValid": ty.BOOL, "setValid": ty.VOID, "setInvalid": ty.VOID}
STACK_METHODS = ("push_front", "pop_front")
SIZES = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")


def check_call(node: n.Call, context: Context) -> ty.Expression:
    """Type a call."""
    if isinstance(node.function, n.Member):
        return _member_call(node, node.function, context)
    if not isinstance(node.function, n.Name):
        return fail("this cannot be called", node.function.span)

    name = node.function
    symbol = (context.scope.root() if name.absolute else context.scope).find(name.name)
    match symbol:
        case Overloads(signatures):
            return _extern_call(node, signatures, context)
        case td.Function():
            _no_type_args(node)
            args = match_args(symbol.params, node, context, {})
            return t.FunctionCall(node.span, symbol.returns, symbol, args)
        case GenericFunction():
            return _generic_call(node, symbol, context)
        case td.Action():
            return _action_call(node, symbol, context)
        case None:
            hint = did_you_mean(name.name, context.scope.names())
            return fail(f"'{name.name}' is not declared{hint}", name.span)
        case _:
            return fail(f"'{name.name}' cannot be called here", name.span)


def _no_type_args(node: n.Call) -> None:
    if node.type_args:
        fail("this takes no type arguments", node.type_args[0].span)


# Functions and actions


def _extern_call(node: n.Call, signatures: list[ty.Signature], context: Context) -> ty.Expression:
    signature = pick(signatures, node.args, node.span)
    bound = bind_types(signature.type_params, node.type_args, context, node.span)
    args = match_args(signature.params, node, context, bound)
    if signature.name == "verify" and context.place != "parser":
        fail("'verify' can be called in parsers only", node.span)

    # The only extern function that is evaluated at compile time.
    if signature.name == "static_assert":
        return _static_assert(node, args)

    returns = ty.substitute(signature.returns, bound)
    types = tuple(bound[param] for param in signature.type_params)
    return t.ExternCall(node.span, returns, function=signature, type_args=types, args=args)


def _static_assert(node: n.Call, args: td.Args) -> ty.Expression:
    condition = args[0]
    if not isinstance(condition, t.Literal):
        fail("the condition of static_assert must be known at compile time", node.span)

    if not condition.value:
        message = args[1].value if len(args) > 1 and isinstance(args[1], t.Literal) else "failed"
        fail(f"static_assert: {message}", node.span)

    return t.Literal(node.span, ty.BOOL, 1)


def _generic_call(node: n.Call, symbol: GenericFunction, context: Context) -> ty.Expression:
    signature = symbol.signature
    bound = bind_types(signature.type_params, node.type_args, context, node.span)
    args = match_args(signature.params, node, context, bound)
    types = tuple(bound[param] for param in signature.type_params)

    # `int` has no width, so the body could not store a value of it.
    if ty.DONT_CARE in types or ty.INT in types:
        fail(f"cannot infer the type arguments of '{signature.name}'", node.span)

    function = symbol.instance(types)
    return t.FunctionCall(node.span, function.returns, function, args)


def _action_call(node: n.Call, action: td.Action, context: Context) -> ty.Expression:
    _no_type_args(node)
    if context.place not in ("control", "action"):
        fail("actions can be called in controls and actions only", node.span)

    return t.ActionCall(node.span, ty.VOID, action, match_args(action.params, node, context, {}))


# Methods


def _member_call(node: n.Call, member: n.Member, context: Context) -> ty.Expression:
    if isinstance(member.base, n.Name):
        symbol = context.scope.find(member.base.name)
        handled = _symbol_call(node, member, symbol, context)
        if handled is not None:
            return handled

    return _value_method(node, member, context)


def _symbol_call(
    node: n.Call, member: n.Member, symbol: Symbol | None, context: Context
) -> ty.Expression | None:
    """Type a call on a table, an instance, a control or a type; None for a call on a value."""
    match symbol:
        case td.Table() if member.name == "apply":
            return _table_apply(node, symbol, context)
        case td.Instance(type=ty.Extern() as extern) | ty.Parameter(type=ty.Extern() as extern):
            return _extern_method(node, member, target=symbol, extern=extern, context=context)
        case td.Instance(type=td.Control() | td.ParserBlock() as block) if member.name == "apply":
            kind = "control" if isinstance(block, td.Control) else "parser"
            return _block_apply(
                node, instance=symbol, kind=kind, params=block.params, context=context
            )
        case ty.Parameter(type=ty.Block(definition, args)) if member.name == "apply":
            types = dict(zip(definition.type_params, args, strict=True))
            params = tuple(_specialised(param, types) for param in definition.params)
            return _block_apply(
                node, instance=symbol, kind=definition.kind, params=params, context=context
            )
        case td.Control() | td.ParserBlock() if member.name == "apply":
            return _direct_application(node, member, symbol, context)
        case TypeName(type_) if member.name in SIZES:
            return t.Literal(node.span, ty.INT, _size(member.name, type_))
        case td.Table() | td.Instance() | td.Control() | td.ParserBlock():
            hint = did_you_mean(member.name, ("apply",))
            return fail(f"'{symbol.name}' has no method '{member.name}'{hint}", member.name_span)
        case _:
            return None


def _table_apply(node: n.Call, table: td.Table, context: Context) -> ty.Expression:
    # A key is evaluated where its table is applied, which is in the block as well.
    if context.place not in ("control", "key"):
        fail("tables can be applied in the apply block of a control only", node.span)

    if node.args:
        fail("apply() of a table takes no arguments", node.args[0].span)

    return t.TableApply(node.span, t.RESULT, table, "")


def _block_apply(
    node: n.Call,
    instance: td.Instance | ty.Parameter,
    kind: str,
    params: tuple[ty.Parameter, ...],
    context: Context,
) -> ty.Expression:
    # Parsers are applied by parsers and controls by controls; actions apply neither.
    if context.place != kind:
        where = "apply block" if kind == "control" else "states"
        fail(f"a {kind} can be applied in the {where} of a {kind} only", node.span)

    return t.BlockApply(node.span, ty.VOID, instance, match_args(params, node, context, {}))


def _direct_application(
    node: n.Call, member: n.Member, block: td.Control | td.ParserBlock, context: Context
) -> ty.Expression:
    """`C.apply(...)`: an instance without a name of its own, made for this call."""
    if block.constructor:
        fail(f"{block.name} has constructor parameters, so it needs an instance", member.span)

    instance = td.Instance(
        member.span, name=block.name, type=block, args=(), annotations=(), anonymous=True
    )
    # Outside of a block: a function has no instances.
    if context.direct_applications is None:
        fail(f"{block.name} cannot be applied here", node.span)

    context.direct_applications.append(instance)
    kind = "control" if isinstance(block, td.Control) else "parser"
    return _block_apply(node, instance, kind, params=block.params, context=context)


def _extern_method(
    node: n.Call,
    member: n.Member,
    target: td.Instance | ty.Parameter,
    extern: ty.Extern,
    context: Context,
) -> ty.Expression:
    methods = [method for method in extern.definition.methods if method.name == member.name]
    if not methods:
        hint = did_you_mean(member.name, (item.name for item in extern.definition.methods))
        fail(f"extern {extern.name} has no method '{member.name}'{hint}", member.name_span)

    method = pick(methods, node.args, node.span)
    # First the type arguments of the object, then those of the method.
    outer = dict(zip(extern.definition.type_params, extern.args, strict=True))
    method_types = bind_types(method.type_params, node.type_args, context, node.span)
    params = tuple(_specialised(param, outer) for param in method.params)
    args = match_args(params, node, context, method_types)
    returns = ty.substitute(ty.substitute(method.returns, outer), method_types)

    if returns == ty.DONT_CARE:
        fail(f"the type argument of '{method.name}' is missing", node.span)

    types = tuple(method_types[param] for param in method.type_params)
    if extern.name == "packet_in":
        _check_packet_call(node, method.name, args, types)

    return t.MethodCall(
        node.span, returns, object=target, method=method, type_args=types, args=args
    )


def _check_packet_call(node: n.Call, name: str, args: td.Args, types: tuple[ty.Type, ...]) -> None:
    """Check the rules of extract and lookahead that core.p4 cannot express."""
    if name not in ("extract", "lookahead"):
        return

    header = types[0]
    has_varbit = ty.has_varbit(header)
    if name == "lookahead":
        if has_varbit:
            fail(f"{ty.show(header)} has no fixed width", node.span)

        return

    # `extract<T>(_)` and a type variable have no fields yet.
    if isinstance(header, ty.TypeVariable) or header == ty.DONT_CARE:
        return

    if not isinstance(header, ty.Struct) or header.kind != "header":
        fail(f"extract() needs a header, not {ty.show(header)}", node.span)

    if has_varbit != (len(args) == 2):
        verb = "needs" if has_varbit else "has no varbit field for"
        fail(f"header {header.name} {verb} the length of its varbit field", node.span)


def _specialised(param: ty.Parameter, bound: Bound) -> ty.Parameter:
    return ty.Parameter(
        param.span,
        name=param.name,
        direction=param.direction,
        type=ty.substitute(param.type, bound),
        default=param.default,
    )


def _value_method(node: n.Call, member: n.Member, context: Context) -> ty.Expression:
    """Methods of headers, unions and stacks, and the sizes of any value."""
    base = context.check(member.base)
    if member.name in SIZES:
        return t.Literal(node.span, ty.INT, _size(member.name, base.type))

    match base.type:
        case ty.Struct(kind="header" | "header_union" as kind) if member.name in HEADER_METHODS:
            if node.args:
                fail(f"{member.name}() takes no arguments", node.args[0].span)

            # A union becomes valid through its members ("Operations on header unions").
            if member.name != "isValid" and (
                kind == "header_union" or not is_left_value(member.base, base)
            ):
                fail(f"{member.name}() needs a header that can be written to", member.base.span)

            return t.HeaderMethod(
                node.span, HEADER_METHODS[member.name], base=base, name=member.name, amount=0
            )
        case ty.Stack(_, size) if member.name in STACK_METHODS:
            if len(node.args) != 1:
                fail(f"{member.name}() takes one argument", node.span)

            amount = constant_int(
                node.args[0].value, context, noun="the number of headers", low=0, high=1 << 16
            )
            if not is_left_value(member.base, base):
                fail(f"{member.name}() needs a stack that can be written to", member.base.span)

            # Pushing more than the size empties the stack just the same.
            return t.HeaderMethod(
                node.span, ty.VOID, base=base, name=member.name, amount=min(amount, size)
            )

    hint = did_you_mean(member.name, (*HEADER_METHODS, *STACK_METHODS, *SIZES))
    return fail(f"{ty.show(base.type)} has no method '{member.name}'{hint}", member.name_span)


def _size(method: str, type_: ty.Type) -> int:
    bits = _smallest(type_) if method.startswith("min") else ty.width_of(type_)
    return (bits + 7) // 8 if method.endswith("Bytes") else bits


def _smallest(type_: ty.Type) -> int:
    match type_:
        case ty.Varbit():
            return 0
        # All members may be invalid.
        case ty.Struct(kind="header_union"):
            return 0
        case ty.Struct(fields=fields):
            return sum(_smallest(item.type) for item in fields)
        case _:
            return ty.width_of(type_)
