"""Types, arguments and expressions: one module, as each may contain the others."""

from __future__ import annotations

from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list, describe
from ofan_p4.compiler.syntax.lexer import Kind, number, string
from ofan_p4.diagnostics import CompileError, Span

BASE_TYPES = ("bool", "error", "void", "match_kind")
SIZED_TYPES = ("bit", "int", "varbit")
MAX_CHAIN = 2000
"""Operators in one expression without parentheses; the tree leans left and is walked in depth."""

LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("++", "+", "-", "|+|", "|-|"),
    ("*", "/", "%"),
)
"""Binary operators from loose to tight; unlike in C, `a & b == c` is `(a & b) == c`."""
LEVEL_OF = {op: level for level, ops in enumerate(LEVELS) for op in ops}


# Types


def starts_type(cursor: Cursor) -> bool:
    """Say whether the next token can only begin a type."""
    token = cursor.token
    if token.kind is Kind.SYMBOL:
        return (
            token.text in BASE_TYPES
            or token.text in SIZED_TYPES
            or token.text in ("tuple", "string")
        )

    return token.kind is Kind.NAME and token.text in cursor.type_names


def type_expression(cursor: Cursor) -> n.TypeExpression:
    """`baseType | name [<args>] | tuple<args>`, each optionally a stack `[size]`."""
    cursor.deeper()
    result = _unstacked(cursor)
    while cursor.at("["):
        cursor.take()
        size = expression(cursor)
        cursor.expect("]", "after the size of a stack")
        result = n.StackTypeExpression(cursor.since(result.span), result, size)

    cursor.shallower()
    return result


def _unstacked(cursor: Cursor) -> n.TypeExpression:
    token = cursor.token
    if token.kind is Kind.SYMBOL and token.text in SIZED_TYPES:
        return _sized_type(cursor)

    if token.kind is Kind.SYMBOL and token.text in (*BASE_TYPES, "string"):
        cursor.take()
        return n.BaseType(token.span, token.text)

    if cursor.accept("tuple"):
        elements = type_args(cursor)
        return n.TupleTypeExpression(cursor.since(token.span), elements)

    cursor.accept(".")
    name = cursor.expect_name("a type")
    if name.text == "_":
        return n.BaseType(name.span, "_")

    # Behind a type, `<` cannot be a comparison.
    args = type_args(cursor) if cursor.at("<") else ()
    return n.NamedType(cursor.since(token.span), name.text, args)


def _sized_type(cursor: Cursor) -> n.TypeExpression:
    """`bit | int | bit<w> | int<w> | varbit<w>`; a bare `bit` has one bit."""
    token = cursor.take()
    if not cursor.at("<"):
        if token.text == "varbit":
            cursor.fail("expected '<' and the maximum width of the varbit")

        if token.text == "int":
            return n.BaseType(token.span, "int")

        return n.SizedType(token.span, "bit", n.IntLiteral(token.span, 1, None, False))

    cursor.take()
    # Not any expression: `>` would be taken for a comparison. Others stand in parentheses.
    width = postfix(cursor)
    close_angle(cursor)

    return n.SizedType(cursor.since(token.span), token.text, width)


def type_args(cursor: Cursor) -> tuple[n.TypeExpression, ...]:
    """`< [type (, type)*] >`."""
    cursor.expect("<")
    # `tuple<>` has no elements; for other types without arguments there is an error later.
    if cursor.accept(">"):
        return ()

    args = [type_expression(cursor)]
    while cursor.accept(","):
        args.append(type_expression(cursor))

    close_angle(cursor)
    return tuple(args)


def close_angle(cursor: Cursor) -> None:
    """Take the `>` that ends type arguments."""
    if not cursor.at(">"):
        cursor.fail(f"expected '>', found {describe(cursor.token)}")

    cursor.take()


def type_params(cursor: Cursor) -> tuple[str, ...]:
    """`[< name (, name)* >]`; the names are types from here on."""
    if not cursor.at("<"):
        return ()

    cursor.take()
    names = [cursor.expect_name("a type parameter").text]
    while cursor.accept(","):
        names.append(cursor.expect_name("a type parameter").text)

    close_angle(cursor)
    cursor.type_names.update(names)
    return tuple(names)


# Expressions


def expression(cursor: Cursor) -> n.Expression:
    """`binary [? expression : expression]`."""
    cursor.deeper()
    condition = _binary(cursor, 0)
    if cursor.accept("?"):
        then = expression(cursor)
        cursor.expect(":", "between the two values of '?'")
        otherwise = expression(cursor)
        condition = n.Ternary(cursor.since(condition.span), condition, then, otherwise)

    cursor.shallower()
    return condition


def _binary(cursor: Cursor, level: int) -> n.Expression:
    """`unary (op unary)*` with operators of at least this level (precedence climbing)."""
    left = _unary(cursor)
    for _ in range(MAX_CHAIN):
        op = _operator(cursor)
        if op is None or LEVEL_OF[op] < level:
            return left

        # `>>` comes as two tokens (see `_operator`).
        for _ in range(2 if op == ">>" else 1):
            cursor.take()

        # One level up on the right makes every operator left associative.
        right = _binary(cursor, LEVEL_OF[op] + 1)
        left = n.Binary(cursor.since(left.span), op, left, right)

    return cursor.fail("too many operators in one expression")


def _operator(cursor: Cursor) -> str | None:
    """Return the next operator: `>>` is two adjacent tokens, `>>=` an assignment."""
    token = cursor.token
    if token.kind is not Kind.SYMBOL or token.text not in LEVEL_OF:
        return None
    if token.text != ">":
        return token.text
    # `a >>= b` is an assignment, which ends the expression before it.
    if _adjacent(cursor, ">="):
        return None

    return ">>" if _adjacent(cursor, ">") else ">"


def _adjacent(cursor: Cursor, text: str) -> bool:
    following = cursor.peek()
    return following.text == text and following.span.start == cursor.span.end


def _unary(cursor: Cursor) -> n.Expression:
    """`(! | ~ | - | +) unary | (type) unary | postfix`."""
    token = cursor.token
    cursor.deeper()
    if cursor.accept("!", "~", "-", "+"):
        operand = _unary(cursor)
        result: n.Expression = n.Unary(cursor.since(token.span), token.text, operand)
    else:
        result = _cast(cursor) or postfix(cursor)

    cursor.shallower()
    return result


def _cast(cursor: Cursor) -> n.Expression | None:
    """`(type) unary`, where only a known type may stand in the parentheses."""
    if not cursor.at("("):
        return None

    start = cursor.span
    position = cursor.position
    cursor.take()

    # `(T.member)` is a parenthesis around a member of an enum, not a cast to T.
    if not starts_type(cursor) or cursor.peek().text == ".":
        cursor.position = position
        return None

    target = cursor.attempt(_parenthesised_type)
    if target is None:
        cursor.position = position
        return None

    operand = _unary(cursor)
    return n.Cast(cursor.since(start), target, operand)


def _parenthesised_type(cursor: Cursor) -> n.TypeExpression:
    target = type_expression(cursor)
    cursor.expect(")")
    return target


def postfix(cursor: Cursor) -> n.Expression:
    """`primary (.member | [index] | [high:low] | [<types>](args))*`."""
    result = _primary(cursor)
    for _ in range(MAX_CHAIN):
        start = result.span
        if cursor.accept("."):
            name = cursor.take()
            # `apply` is a member like others; keywords are not.
            if not (name.kind is Kind.NAME or name.text in ("apply",)):
                raise CompileError(f"expected a member, found {describe(name)}", name.span)

            result = n.Member(cursor.since(start), result, name.text, name.span)
        elif cursor.at("["):
            result = _subscript(cursor, result)
        elif cursor.at("("):
            cursor.take()
            args = comma_list(cursor, ")", argument)
            result = n.Call(cursor.since(start), result, (), args)
        elif (types := _call_type_args(cursor, result)) is not None:
            cursor.expect("(")
            args = comma_list(cursor, ")", argument)
            result = n.Call(cursor.since(start), result, types, args)
        else:
            return result

    return cursor.fail("too many members in one expression")


def _subscript(cursor: Cursor, base: n.Expression) -> n.Expression:
    """`[index]`, `[high:low]` or `[low+:width]`."""
    cursor.take()
    first = expression(cursor)
    if cursor.accept("+:"):
        width = expression(cursor)
        cursor.expect("]", "after a slice")
        # `a[low+:width]` is `a[low + width - 1 : low]`, and both bounds must be constant anyway.
        end = n.Binary(first.span, "+", first, width)
        high = n.Binary(first.span, "-", end, n.IntLiteral(first.span, 1, None, False))

        return n.Slice(cursor.since(base.span), base, high, first)

    if cursor.accept(":"):
        low = expression(cursor)
        cursor.expect("]", "after a slice")
        return n.Slice(cursor.since(base.span), base, first, low)

    cursor.expect("]", "after an index")
    return n.Index(cursor.since(base.span), base, first)


def _call_type_args(cursor: Cursor, function: n.Expression) -> tuple[n.TypeExpression, ...] | None:
    """`<types>` of a call: only if a type begins it and a `(` follows it.

    Otherwise `<` is a comparison.
    """
    if not cursor.at("<") or not isinstance(function, n.Name | n.Member):
        return None

    cursor.position += 1
    # A type argument that is an unknown name is left to the comparison, which has the better
    # message.
    could_be_type = starts_type(cursor) or cursor.token.text == "_"
    cursor.position -= 1

    return cursor.attempt(_type_args_before_call) if could_be_type else None


def _type_args_before_call(cursor: Cursor) -> tuple[n.TypeExpression, ...]:
    args = type_args(cursor)
    if not cursor.at("("):
        cursor.fail("not a call")

    return args


def argument(cursor: Cursor) -> n.Argument:
    """`[name =] expression`."""
    start = cursor.span
    name = None
    if cursor.at_name() and cursor.peek().text == "=" and cursor.peek().kind is Kind.SYMBOL:
        name = cursor.take().text
        cursor.take()

    value = expression(cursor)
    return n.Argument(cursor.since(start), name, value)


def _primary(cursor: Cursor) -> n.Expression:
    token = cursor.token
    match token.kind:
        case Kind.NUMBER:
            return _number(cursor)
        case Kind.STRING:
            cursor.take()
            return n.StringLiteral(token.span, string(token))
        case Kind.NAME:
            cursor.take()
            if token.text == "_":
                return n.DefaultExpression(token.span, "_")

            return n.Name(token.span, token.text, False)
        case _:
            return _symbol_primary(cursor)


def _symbol_primary(cursor: Cursor) -> n.Expression:
    token = cursor.token
    if token.text in ("true", "false"):
        cursor.take()
        return n.BoolLiteral(token.span, token.text == "true")

    # `error` is a type, but `error.NoMatch` begins with it as a name.
    if token.text in ("error", "this"):
        cursor.take()
        return n.Name(token.span, token.text, False)

    if token.text in ("default", "..."):
        cursor.take()
        return n.DefaultExpression(token.span, token.text)

    if token.text == "." and cursor.peek().kind is Kind.NAME:
        cursor.take()
        name = cursor.take()
        return n.Name(cursor.since(token.span), name.text, True)

    if token.text == "(":
        cursor.take()
        inner = expression(cursor)
        cursor.expect(")", "to close the parenthesis")

        return inner

    if token.text == "{#}":
        cursor.take()
        return n.InvalidExpression(token.span)

    if token.text == "{":
        return _braces(cursor)

    return cursor.fail(f"expected an expression, found {describe(token)}")


def _number(cursor: Cursor) -> n.IntLiteral:
    token = cursor.take()
    value, width, signed = number(token)
    if width is None:
        return n.IntLiteral(token.span, value, None, False)
    # Width 0 is for varbit types only.
    if width == 0 or (signed and width < 1):
        raise CompileError("a number needs at least one bit", token.span)

    if width > MAX_WIDTH or value >= 1 << width:
        raise CompileError(
            f"{value} does not fit in {'int' if signed else 'bit'}<{width}>", token.span
        )

    # A signed number's digits are its bits: 8s0b1010_1010 is -86, and 1s1 is -1 (P4_16, 6.4.3.2).
    if signed and value >> (width - 1):
        value -= 1 << width

    return n.IntLiteral(token.span, value, width, signed)


MAX_WIDTH = 2048
"""Widest number that the target takes; p4c refuses more as well."""

MAX_VARBIT = 1 << 16
"""Longest varbit, in bits: no packet has more than a header of this length."""


def _braces(cursor: Cursor) -> n.Expression:
    """`{a, b} | {x = a, y = b}`."""
    start = cursor.take().span
    if cursor.at_name() and cursor.peek().text == "=" and cursor.peek().kind is Kind.SYMBOL:
        fields = comma_list(cursor, "}", argument)
        return n.StructExpression(cursor.since(start), fields)

    items = comma_list(cursor, "}", expression)
    return n.ListExpression(cursor.since(start), items)


def key_set(cursor: Cursor) -> tuple[n.Expression, ...]:
    """`simple | (simple, ...)`: the keys of a select case or a table entry."""
    if cursor.at("("):
        position = cursor.position
        cursor.take()
        # `(a, b) : next` is a tuple of keys, `(a) & b : next` an expression; a colon decides.
        keys = cursor.attempt(lambda ahead: comma_list(ahead, ")", simple_key))

        if keys is not None and cursor.at(":"):
            return keys

        cursor.position = position

    return (simple_key(cursor),)


def simple_key(cursor: Cursor) -> n.Expression:
    """`expression [&&& expression | .. expression] | default | _`."""
    # `&&&` and `..` bind looser than everything else, so they are no levels of `_binary`.
    start: Span = cursor.span
    left = expression(cursor)
    for op in ("&&&", ".."):
        if cursor.accept(op):
            right = expression(cursor)
            return n.Binary(cursor.since(start), op, left, right)

    return left
