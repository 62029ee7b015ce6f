"""Expressions: names, members, operators."""

from __future__ import annotations

from ofan_p4.compiler.hints import did_you_mean
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.calls import check_call
from ofan_p4.compiler.semantics.conversion import cast_to, coerce
from ofan_p4.compiler.semantics.folding import (
    fold_unary,
)
from ofan_p4.compiler.semantics.operators import balance, binary
from ofan_p4.compiler.semantics.scope import ConstantName, Context, TypeName, fail
from ofan_p4.compiler.semantics.type_names import resolve_type
from ofan_p4.compiler.semantics.values import check_as, check_value, constant_int, is_compile_time
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import Span


def check(node: n.Expression, context: Context) -> ty.Expression:  # noqa: C901 one line for each kind of node
    """Type an expression.

    Its type may still be `int`, a tuple or a record that the context converts.
    """
    match node:
        case n.IntLiteral(span, value, width, signed):
            return t.Literal(span, ty.INT if width is None else ty.Bits(width, signed), value)
        case n.BoolLiteral(span, value):
            # Booleans are 0 and 1 throughout, so that folding needs no case of its own.
            return t.Literal(span, ty.BOOL, int(value))
        case n.StringLiteral(span, text):
            return t.Literal(span, ty.STRING, text)
        case n.Name():
            return _name(node, context)
        case n.Member():
            return _member(node, context)
        case n.Index():
            return _index(node, context)
        case n.Slice():
            return _slice(node, context)
        case n.Call():
            return check_call(node, context)
        case n.Unary():
            return _unary(node, context)
        case n.Binary():
            return _binary(node, context)
        case n.Ternary():
            return _ternary(node, context)
        case n.Cast(span, target, operand):
            return _cast(span, resolve_type(target, context), check(operand, context))
        case n.ListExpression(span, items):
            checked = tuple(check_value(item, context) for item in items)
            return t.Aggregate(span, ty.Tuple(tuple(item.type for item in checked)), checked)
        case n.StructExpression():
            return _record(node, context)
        case n.InvalidExpression(span):
            # Of no type yet: the place where it stands knows which header is meant.
            return t.InvalidHeader(span, ty.DONT_CARE)
        case n.DefaultExpression(span, spelling):
            return fail(f"'{spelling}' has no value here", span)


# Names and members


def _name(node: n.Name, context: Context) -> ty.Expression:
    # A leading dot skips all inner scopes ("Name resolution").
    symbol = (context.scope.root() if node.absolute else context.scope).find(node.name)
    match symbol:
        case ConstantName(value):
            return _respan(value, node.span)
        case ty.Parameter() | td.Variable() | td.Instance(type=ty.Extern()):
            return t.Ref(node.span, symbol.type, symbol)  # type: ignore[arg-type]
        case None:
            hint = did_you_mean(node.name, context.scope.names())
            return fail(f"'{node.name}' is not declared{hint}", node.span)
        case _:
            return fail(f"'{node.name}' is not a value", node.span)


def _respan(value: ty.Expression, span: Span) -> ty.Expression:
    # A message about a constant points at its use, not at its declaration.
    return t.Literal(span, value.type, value.value) if isinstance(value, t.Literal) else value


def _member(node: n.Member, context: Context) -> ty.Expression:
    # Before the base is typed: a type is no value.
    constant = _type_member(node, context)
    if constant is not None:
        return constant

    base = check(node.base, context)
    match base.type:
        case ty.Struct() as struct:
            return _field(node, base, struct)
        case ty.Record(fields):
            index = next((i for i, item in enumerate(fields) if item.name == node.name), None)
            if index is not None and isinstance(base, t.Aggregate):
                # The other fields may have effects.
                item = base.items[index]
                return item if is_compile_time(base) else _field_of(node, base, item.type)
        case ty.Stack():
            if node.name in ("next", "last", "lastIndex") and context.place != "parser":
                fail(f"'{node.name}' can be used in a parser only", node.name_span)

            return _stack_member(node, base, base.type)
        case ty.TableResult():
            return _table_member(node, base)

    return fail(f"{ty.show(base.type)} has no member '{node.name}'", node.name_span)


def _type_member(node: n.Member, context: Context) -> ty.Expression | None:
    """`Enum.member` and `error.member`."""
    if not isinstance(node.base, n.Name):
        return None

    # `error` is a keyword, so no declaration can hide it.
    if node.base.name == "error":
        if node.name not in context.globals.errors:
            hint = did_you_mean(node.name, context.globals.errors)
            fail(f"error '{node.name}' is not declared{hint}", node.name_span)

        return t.Literal(node.span, ty.ERROR, node.name)

    symbol = context.scope.find(node.base.name)
    if not isinstance(symbol, TypeName):
        return None
    if not isinstance(symbol.type, ty.Enum):
        return fail(f"type {node.base.name} has no member '{node.name}'", node.name_span)

    if node.name not in symbol.type.members:
        hint = did_you_mean(node.name, symbol.type.members)
        fail(f"enum {node.base.name} has no member '{node.name}'{hint}", node.name_span)

    return t.Literal(node.span, symbol.type, node.name)


def _field(node: n.Member, base: ty.Expression, struct: ty.Struct) -> ty.Expression:
    field_type = struct.field_type(node.name)
    if field_type is None:
        hint = did_you_mean(node.name, (item.name for item in struct.fields))
        fail(f"{struct.kind} {struct.name} has no field '{node.name}'{hint}", node.name_span)

    return _field_of(node, base, field_type)


def _field_of(node: n.Member, base: ty.Expression, type_: ty.Type) -> ty.Expression:
    return t.Field(node.span, type_, base, node.name)


def _stack_member(node: n.Member, base: ty.Expression, stack: ty.Stack) -> ty.Expression:
    match node.name:
        case "size":
            return t.Literal(node.span, ty.Bits(32), stack.size)
        case "lastIndex":
            return t.StackMember(node.span, ty.Bits(32), base, "lastIndex")
        case "next" | "last":
            return t.StackMember(node.span, stack.element, base, node.name)

    hint = did_you_mean(node.name, ("size", "lastIndex", "next", "last"))
    return fail(f"a stack has no member '{node.name}'{hint}", node.name_span)


def _table_member(node: n.Member, base: ty.Expression) -> ty.Expression:
    assert isinstance(base, t.TableApply)
    if node.name not in ("hit", "miss", "action_run"):
        hint = did_you_mean(node.name, ("hit", "miss", "action_run"))
        fail(f"the result of apply() has no member '{node.name}'{hint}", node.name_span)

    if node.name == "action_run":
        fail("'action_run' may only be the subject of 'switch'", node.name_span)

    return t.TableApply(node.span, ty.BOOL, base.table, node.name)


def _index(node: n.Index, context: Context) -> ty.Expression:
    base = check(node.base, context)
    index = check(node.index, context)
    if isinstance(index, t.Literal):
        # A literal index is compared with the size as a number, whatever width it was given.
        index = cast_to(index, ty.INT) if ty.is_numeric(ty.underlying(index.type)) else index

    if not ty.is_numeric(ty.underlying(index.type)):
        fail(f"an index must be a number, found {ty.show(index.type)}", node.index.span)

    match base.type:
        case ty.Stack(element, size):
            _within(index, size, node.index.span)
            return t.Element(node.span, element, base, index)
        case ty.Tuple(elements):
            if not isinstance(index, t.Literal):
                fail("the index of a tuple must be known at compile time", node.index.span)

            _within(index, len(elements), node.index.span)
            return t.Element(node.span, elements[int(index.value)], base, index)

    return fail(f"{ty.show(base.type)} cannot be indexed", node.base.span)


def _within(index: ty.Expression, size: int, span: Span) -> None:
    if isinstance(index, t.Literal) and not 0 <= int(index.value) < size:
        fail(f"index {index.value} is outside of 0 .. {size - 1}", span)


def _slice(node: n.Slice, context: Context) -> ty.Expression:
    """`base[high:low]`, of type bit<high - low + 1>."""
    base = check(node.base, context)
    bits = ty.underlying(base.type)
    if not isinstance(bits, ty.Bits):
        fail(f"only bit<> and int<> can be sliced, not {ty.show(base.type)}", node.base.span)

    high = constant_int(
        node.high, context, noun="the upper bound of a slice", low=0, high=bits.width - 1
    )
    low = constant_int(node.low, context, noun="the lower bound of a slice", low=0, high=high)
    sliced = ty.Bits(high - low + 1)

    # Negative numbers slice as in two's complement, which Python's shift and mask do.
    if isinstance(base, t.Literal):
        return t.Literal(node.span, sliced, (int(base.value) >> low) & ((1 << sliced.width) - 1))

    return t.Slice(node.span, sliced, base, high, low)


def _record(node: n.StructExpression, context: Context) -> ty.Expression:
    names = [item.name for item in node.fields]
    for item in node.fields:
        if item.name is None:
            fail("every field of a struct expression needs a name", item.span)

        if names.count(item.name) > 1:
            fail(f"field '{item.name}' is given twice", item.span)

    values = tuple(check_value(item.value, context) for item in node.fields)
    fields = tuple(
        ty.StructField(name or "", value.type) for name, value in zip(names, values, strict=True)
    )
    return t.Aggregate(node.span, ty.Record(fields), values)


# Operators


def _cast(span: Span, target: ty.Type, operand: ty.Expression) -> ty.Expression:
    convert = coerce if isinstance(operand, t.InvalidHeader) else cast_to
    result = convert(operand, target)
    return t.Literal(span, result.type, result.value) if isinstance(result, t.Literal) else result


def _unary(node: n.Unary, context: Context) -> ty.Expression:
    operand = check(node.operand, context)
    below = ty.underlying(operand.type)
    if node.op == "!":
        operand = coerce(operand, ty.BOOL)
    elif not (isinstance(below, ty.Bits) or (below == ty.INT and node.op != "~")):
        fail(f"'{node.op}' cannot be applied to {ty.show(operand.type)}", node.span)

    # Arithmetic on an enum is arithmetic on its underlying type.
    if isinstance(operand.type, ty.Enum):
        operand = coerce(operand, below)

    if isinstance(operand, t.Literal) and isinstance(operand.value, int):
        return t.Literal(node.span, operand.type, fold_unary(node.op, operand.value, operand.type))

    # Unary plus does nothing.
    return operand if node.op == "+" else t.Unary(node.span, operand.type, node.op, operand)


def _binary(node: n.Binary, context: Context) -> ty.Expression:
    if node.op in ("&&&", ".."):
        fail(f"'{node.op}' may only stand in a select case or a table entry", node.span)

    # Neither side has a type.
    untyped = (n.ListExpression, n.StructExpression)
    if isinstance(node.left, untyped) and isinstance(node.right, untyped):
        fail(f"'{node.op}' cannot be applied to two lists", node.span)

    left = check_value(node.left, context)
    right = check_value(node.right, context)
    return binary(node.span, node.op, left, right)


def _ternary(node: n.Ternary, context: Context) -> ty.Expression:
    condition = check_as(node.condition, ty.BOOL, context)
    then = check_value(node.then, context)
    otherwise = check_value(node.otherwise, context)
    if then.type != otherwise.type:
        then, otherwise = balance(node.span, "?", then, otherwise)

    if isinstance(condition, t.Literal):
        return then if condition.value else otherwise

    return t.Ternary(node.span, then.type, condition, then, otherwise)
