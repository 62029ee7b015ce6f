"""Expressions: names, members, operators."""

from __future__ import annotations

from emulation.compiler.diagnostics import Span
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.calls import check_call
from emulation.compiler.semantics.conversion import cast_to, coerce, try_coerce
from emulation.compiler.semantics.folding import (
    COMPARISONS,
    fold_binary,
    fold_comparison,
    fold_unary,
)
from emulation.compiler.semantics.scope import ConstantName, Context, TypeName, fail
from emulation.compiler.semantics.type_names import resolve_type
from emulation.compiler.semantics.values import check_as, check_value, constant_int
from emulation.compiler.syntax import nodes as n
from emulation.compiler.syntax.expressions import MAX_WIDTH

SHIFTS = ("<<", ">>")
ORDERED = ("<", "<=", ">", ">=")
LOGICAL = ("&&", "||")
MAX_TEXT = 1 << 16


def check(node: n.Expression, context: Context) -> t.Expression:  # noqa: C901 one line for each kind of node
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


def _name(node: n.Name, context: Context) -> t.Expression:
    # A leading dot skips all inner scopes ("Name resolution").
    symbol = (context.scope.root() if node.absolute else context.scope).find(node.name)
    match symbol:
        case ConstantName(value):
            return _respan(value, node.span)
        case ty.Parameter() | t.Variable() | t.Instance(type=ty.Extern()):
            return t.Ref(node.span, symbol.type, symbol)  # type: ignore[arg-type]
        case None:
            return fail(f"'{node.name}' is not declared", node.span)
        case _:
            return fail(f"'{node.name}' is not a value", node.span)


def _respan(value: t.Expression, span: Span) -> t.Expression:
    # A message about a constant points at its use, not at its declaration.
    return t.Literal(span, value.type, value.value) if isinstance(value, t.Literal) else value


def _member(node: n.Member, context: Context) -> t.Expression:
    # Before the base is typed: a type is no value.
    constant = _type_member(node, context)
    if constant is not None:
        return constant

    base = check(node.base, context)
    match base.type:
        case ty.Struct() as struct:
            return _field(node, base, struct)
        case ty.Record(fields):
            found = next((i for i, item in enumerate(fields) if item.name == node.name), None)
            if found is not None and isinstance(base, t.Aggregate):
                return base.items[found]
        case ty.Stack():
            if node.name in ("next", "last", "lastIndex") and context.place != "parser":
                fail(f"'{node.name}' can be used in a parser only", node.name_span)

            return _stack_member(node, base, base.type)
        case ty.TableResult():
            return _table_member(node, base)

    return fail(f"{ty.show(base.type)} has no member '{node.name}'", node.name_span)


def _type_member(node: n.Member, context: Context) -> t.Expression | None:
    """`Enum.member` and `error.member`."""
    if not isinstance(node.base, n.Name):
        return None

    # `error` is a keyword, so no declaration can hide it.
    if node.base.name == "error":
        if node.name not in context.globals.errors:
            fail(f"error '{node.name}' is not declared", node.name_span)

        return t.Literal(node.span, ty.ERROR, node.name)

    symbol = context.scope.find(node.base.name)
    if not isinstance(symbol, TypeName):
        return None
    if not isinstance(symbol.type, ty.Enum):
        return fail(f"type {node.base.name} has no member '{node.name}'", node.name_span)

    if node.name not in symbol.type.members:
        fail(f"enum {node.base.name} has no member '{node.name}'", node.name_span)

    return t.Literal(node.span, symbol.type, node.name)


def _field(node: n.Member, base: t.Expression, struct: ty.Struct) -> t.Expression:
    field_type = struct.field_type(node.name)
    if field_type is None:
        fail(f"{struct.kind} {struct.name} has no field '{node.name}'", node.name_span)

    return t.Field(node.span, field_type, base, node.name)


def _stack_member(node: n.Member, base: t.Expression, stack: ty.Stack) -> t.Expression:
    match node.name:
        case "size":
            return t.Literal(node.span, ty.Bits(32), stack.size)
        case "lastIndex":
            return t.StackMember(node.span, ty.Bits(32), base, "lastIndex")
        case "next" | "last":
            return t.StackMember(node.span, stack.element, base, node.name)

    return fail(f"a stack has no member '{node.name}'", node.name_span)


def _table_member(node: n.Member, base: t.Expression) -> t.Expression:
    assert isinstance(base, t.TableApply)
    if node.name not in ("hit", "miss", "action_run"):
        fail(f"the result of apply() has no member '{node.name}'", node.name_span)

    if node.name == "action_run":
        fail("'action_run' may only be the subject of 'switch'", node.name_span)

    return t.TableApply(node.span, ty.BOOL, base.table, node.name)


def _index(node: n.Index, context: Context) -> t.Expression:
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


def _within(index: t.Expression, size: int, span: Span) -> None:
    if isinstance(index, t.Literal) and not 0 <= int(index.value) < size:
        fail(f"index {index.value} is outside of 0 .. {size - 1}", span)


def _slice(node: n.Slice, context: Context) -> t.Expression:
    """`base[high:low]`, of type bit<high - low + 1>."""
    base = check(node.base, context)
    bits = ty.underlying(base.type)
    if not isinstance(bits, ty.Bits):
        fail(f"only bit<> and int<> can be sliced, not {ty.show(base.type)}", node.base.span)

    high = constant_int(
        node.high, context, what="the upper bound of a slice", low=0, high=bits.width - 1
    )
    low = constant_int(node.low, context, what="the lower bound of a slice", low=0, high=high)
    sliced = ty.Bits(high - low + 1)

    # Negative numbers slice as in two's complement, which Python's shift and mask do.
    if isinstance(base, t.Literal):
        return t.Literal(node.span, sliced, (int(base.value) >> low) & ((1 << sliced.width) - 1))

    return t.Slice(node.span, sliced, base, high, low)


def _record(node: n.StructExpression, context: Context) -> t.Expression:
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


def _cast(span: Span, target: ty.Type, operand: t.Expression) -> t.Expression:
    convert = coerce if isinstance(operand, t.InvalidHeader) else cast_to
    result = convert(operand, target)
    return t.Literal(span, result.type, result.value) if isinstance(result, t.Literal) else result


def _unary(node: n.Unary, context: Context) -> t.Expression:
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


def _binary(node: n.Binary, context: Context) -> t.Expression:
    if node.op in ("&&&", ".."):
        fail(f"'{node.op}' may only stand in a select case or a table entry", node.span)

    # Neither side says which type is meant.
    untyped = (n.ListExpression, n.StructExpression)
    if isinstance(node.left, untyped) and isinstance(node.right, untyped):
        fail(f"'{node.op}' cannot be applied to two lists", node.span)

    left = check_value(node.left, context)
    right = check_value(node.right, context)
    return binary(node.span, node.op, left, right)


def binary(span: Span, op: str, left: t.Expression, right: t.Expression) -> t.Expression:
    """Type `left op right` and compute it if both are known."""
    # Logical operators want bool, and the next two take operands of different types; for the rest,
    # both operands first get one type.
    if op in LOGICAL:
        return _logical(span, op, coerce(left, ty.BOOL), coerce(right, ty.BOOL))
    if op == "++":
        return _concatenation(span, left, right)
    if op in SHIFTS:
        return _shift(span, op, left, right)

    if op in ("/", "%"):
        _check_division(span, op, left, right)

    left, right = _balance(span, op, left, right)
    if op in COMPARISONS:
        return _comparison(span, op, left, right)

    _require_arithmetic(span, op, left)
    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        value = fold_binary(
            op, left=int(left.value), right=int(right.value), type_=left.type, span=span
        )
        return t.Literal(span, left.type, value)

    return t.Binary(span, left.type, op, left, right)


def _logical(span: Span, op: str, left: t.Expression, right: t.Expression) -> t.Expression:
    if isinstance(left, t.Literal):
        # Only a known left side decides: the right one may have effects, which `&&` and `||` skip.
        decided = bool(left.value) == (op == "||")
        return left if decided else right

    return t.Binary(span, ty.BOOL, op, left, right)


def _balance(
    span: Span, op: str, left: t.Expression, right: t.Expression
) -> tuple[t.Expression, t.Expression]:
    """Give both operands one type."""
    # Two members of one enum are compared as such, others by their numbers.
    if op not in ("==", "!=") or left.type != right.type:
        left = _as_number(left)
        right = _as_number(right)

    if left.type == right.type and not isinstance(left.type, ty.Tuple | ty.Record):
        return left, right

    # An `int` or a list takes the type of the other side, whichever side that is.
    for first, second, swap in ((left, right, False), (right, left, True)):
        converted = try_coerce(first, second.type)
        if converted is not None:
            return (second, converted) if swap else (converted, second)

    return fail(f"'{op}' cannot be applied to {ty.show(left.type)} and {ty.show(right.type)}", span)


def _as_number(value: t.Expression) -> t.Expression:
    if isinstance(value.type, ty.Enum) and value.type.underlying:
        return coerce(value, value.type.underlying)

    return value


def _comparison(span: Span, op: str, left: t.Expression, right: t.Expression) -> t.Expression:
    if op in ORDERED and not ty.is_numeric(ty.underlying(left.type)):
        fail(f"'{op}' cannot be applied to {ty.show(left.type)}", span)

    nothing = isinstance(left.type, ty.Simple) and left.type not in (ty.BOOL, ty.INT, ty.ERROR)
    if nothing or isinstance(left.type, ty.TypeVariable):
        fail(f"'{op}' cannot be applied to {ty.show(left.type)}", span)

    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        return t.Literal(span, ty.BOOL, int(fold_comparison(op, left.value, right.value)))

    return t.Binary(span, ty.BOOL, op, left, right)


def _require_arithmetic(span: Span, op: str, operand: t.Expression) -> None:
    """Refuse operands without arithmetic, and divisions that the target cannot do at run time."""
    if not ty.is_numeric(operand.type) or (op in ("|+|", "|-|") and operand.type == ty.INT):
        fail(f"'{op}' cannot be applied to {ty.show(operand.type)}", span)

    # Neither division nor modulo is defined for int<>.
    if op in ("/", "%") and isinstance(operand.type, ty.Bits) and operand.type.signed:
        fail(f"'{op}' cannot be applied to {ty.show(operand.type)}", span)


def _check_division(span: Span, op: str, left: t.Expression, right: t.Expression) -> None:
    """Refuse what no packet could make right."""
    known = [
        side.value
        for side in (left, right)
        if isinstance(side, t.Literal) and isinstance(side.value, int)
    ]
    if any(value < 0 for value in known):
        fail(f"'{op}' is not defined for negative numbers", span)

    if isinstance(right, t.Literal) and right.value == 0:
        fail("division by zero", span)


def _concatenation(span: Span, left: t.Expression, right: t.Expression) -> t.Expression:
    """`left ++ right`; the result has the sign of the left operand."""
    left = _as_number(left)
    right = _as_number(right)
    if left.type == right.type == ty.STRING:
        assert isinstance(left, t.Literal) and isinstance(right, t.Literal)
        text = f"{left.value}{right.value}"
        if len(text) > MAX_TEXT:
            fail(f"this string has more than {MAX_TEXT} characters", span)

        return t.Literal(span, ty.STRING, text)

    if not isinstance(left.type, ty.Bits) or not isinstance(right.type, ty.Bits):
        found = f"{ty.show(left.type)} and {ty.show(right.type)}"
        fail(f"'++' needs operands with a width, found {found}", span)

    joined = ty.Bits(left.type.width + right.type.width, left.type.signed)
    if joined.width > MAX_WIDTH:
        fail(f"this number has more than {MAX_WIDTH} bits", span)

    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        low = int(right.value) & ((1 << right.type.width) - 1)
        return t.Literal(span, joined, int(left.value) << right.type.width | low)

    return t.Binary(span, joined, "++", left, right)


def _shift(span: Span, op: str, left: t.Expression, right: t.Expression) -> t.Expression:
    left = _as_number(left)
    right = _as_number(right)
    if not ty.is_numeric(left.type):
        fail(f"'{op}' cannot be applied to {ty.show(left.type)}", span)

    if not ty.is_numeric(right.type) or (isinstance(right.type, ty.Bits) and right.type.signed):
        fail(
            f"the number of bits to shift must be unsigned, found {ty.show(right.type)}", right.span
        )

    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        return t.Literal(
            span,
            left.type,
            fold_binary(
                op, left=int(left.value), right=int(right.value), type_=left.type, span=span
            ),
        )

    if left.type == ty.INT:
        fail("the left side of a shift by a run-time value needs a width", left.span)

    if isinstance(right, t.Literal) and int(right.value) < 0:
        fail("the number of bits to shift is negative", right.span)

    return t.Binary(span, left.type, op, left, right)


def _ternary(node: n.Ternary, context: Context) -> t.Expression:
    condition = check_as(node.condition, ty.BOOL, context)
    then = check_value(node.then, context)
    otherwise = check_value(node.otherwise, context)
    if then.type != otherwise.type:
        then, otherwise = _balance(node.span, "?", then, otherwise)

    if isinstance(condition, t.Literal):
        return then if condition.value else otherwise

    return t.Ternary(node.span, then.type, condition, then, otherwise)
