"""Expressions to operands; effects go into the frame's flow, left to right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.assignments import as_value, assign, freeze, in_bounds
from ofan_p4.compiler.midend.flow import Object, Test
from ofan_p4.compiler.midend.frame import BlockObject, Frame, Packet
from ofan_p4.compiler.midend.layout import flat_fields, header_field
from ofan_p4.compiler.midend.operands import binary, cast, number, slice_of, unary
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

MAX_SIZE = (1 << 31) - 1


def lower(node: ty.Expression, frame: Frame) -> ir.Operand:  # noqa: C901 one line for each kind of node
    """Return the operand that an expression stands for."""
    match node:
        case t.Literal():
            return _literal(node, frame)
        case t.Ref(span, _, declaration):
            return bound(declaration, span, frame)
        case t.Field():
            return member(lower(node.base, frame), node.name, node.span)
        case t.Element():
            return _element(node, frame)
        case t.StackMember():
            return _stack_member(node, frame)
        case t.Slice(span, _, base, high, low):
            return slice_of(lower_value(base, frame), high, low)
        case t.Unary(span, type_, op, operand):
            return unary(op, lower_value(operand, frame), type_)
        case t.Binary():
            return _binary(node, frame)
        case t.Ternary():
            return _ternary(node, frame)
        case t.Cast(span, type_, operand):
            return cast(lower_value(operand, frame), type_)
        case t.Aggregate(span, type_, items):
            return ir.StructAt(type_, _names(type_), tuple(lower_all(items, frame)))
        case t.InvalidHeader(_, type_):
            return ir.Invalid(type_)
        case t.HeaderMethod(_, _, base, "isValid"):
            return is_valid(lower(base, frame), node.span)
        case t.Masked() | t.Range() | t.Everything() | t.ValueSetRef():
            return fail("this is not a value", node.span)
        case _:
            return frame.lower_call(node)


def lower_value(node: ty.Expression, frame: Frame) -> ir.Value:
    """Return the single value of an expression."""
    return as_value(lower(node, frame), node.span)


def lower_all(nodes: Sequence[ty.Expression], frame: Frame) -> list[ir.Operand]:
    """Lower operands in the order of the text.

    Effects of a later expression cannot change the value of an earlier one's fields.
    """
    operands: dict[int, ir.Operand] = {}
    order = in_text_order(nodes)
    last = max(
        (position for position, index in enumerate(order) if has_effects(nodes[index])), default=0
    )
    for position, index in enumerate(order):
        operand = lower(nodes[index], frame)
        # Only then a copy: most expressions have no effects.
        if position < last:
            operand = freeze(operand, nodes[index].span, frame)

        operands[index] = operand

    return [operands[index] for index in range(len(nodes))]


def in_text_order(nodes: Sequence[ty.Expression | None]) -> list[int]:
    """Return the indexes of nodes in the program's order, which names may change."""
    return sorted(
        range(len(nodes)), key=lambda i: -1 if (node := nodes[i]) is None else node.span.start
    )


def constant(node: ty.Expression, frame: Frame, noun: str) -> int:
    """Evaluate an expression of literals and constructor parameters."""
    value = lower(node, frame)
    if not isinstance(value, ir.Num | ir.Flag):
        fail(f"{noun} must be known at compile time", node.span)

    return int(value.value)


def size_of(node: ty.Expression, frame: Frame, noun: str) -> int:
    """Evaluate a number of entries or cells, which the formats keep in 31 bits."""
    size = constant(node, frame, noun)
    if not 0 <= size <= MAX_SIZE:
        fail(f"{noun} must be between 0 and {MAX_SIZE}, found {size}", node.span)

    return size


def bound(
    declaration: ty.Parameter | td.Variable | td.Instance, span: Span, frame: Frame
) -> ir.Operand:
    """Return the operand that a name is bound to."""
    binding = frame.bindings.get(declaration)
    if binding is None or isinstance(binding, Object | BlockObject | Packet):
        fail(f"'{declaration.name}' has no value here", span)

    return binding


def static_place(node: ty.Expression, frame: Frame) -> ir.Operand | None:
    """Return the storage that a path names, or the whole of which it is a part.

    None for the body's own variables.
    """
    match node:
        case t.Ref(_, _, declaration):
            binding = frame.bindings.get(declaration)
            return binding if isinstance(binding, ir.Operand) else None
        case t.Field(span, _, base, name):
            operand = static_place(base, frame)
            # Of an element that is not known, the whole stack counts.
            is_known = isinstance(operand, ir.StructAt | ir.HeaderAt | ir.UnionAt)
            return member(operand, name, span) if operand is not None and is_known else operand
        case t.Element(_, _, base, index):
            operand = static_place(base, frame)
            if (
                isinstance(operand, ir.StackAt)
                and isinstance(index, t.Literal)
                and int(index.value) < len(operand.elements)
            ):
                return operand.elements[int(index.value)]

            return operand
        case t.StackMember(_, _, base) | t.Slice(_, _, base):
            return static_place(base, frame)
        case _:
            return None


def _literal(node: t.Literal, frame: Frame) -> ir.Operand:
    match node.type, node.value:
        case ty.Simple("bool"), value:
            return ir.Flag(bool(value))
        case ty.Simple("error"), str(name):
            # The number of an error is its place in the JSON's list `errors`.
            return number(frame.builder.switch.program.errors.index(name), ty.Bits(32))
        case ty.Enum() as enum, str(name):
            return number(enum.value(name), enum.underlying or ty.Bits(32))
        case type_, int(value):
            return number(value, type_)

    return fail("the target has no strings", node.span)


def _names(type_: ty.Type) -> tuple[str, ...]:
    match type_:
        case ty.Struct(fields=fields) | ty.Record(fields):
            return tuple(item.name for item in fields)
        case ty.Tuple(elements):
            return tuple(str(index) for index in range(len(elements)))

    return ()


# Members


def member(base: ir.Operand, name: str, span: Span) -> ir.Operand:
    """Return `base.name`."""
    match base:
        case ir.StructAt():
            return base.item(name)
        case ir.HeaderAt():
            return header_field(base, name)
        case ir.UnionAt(_, union, members):
            return members[[item.name for item in union.fields].index(name)]
        # `hs.next.ipv4`: extract() takes a member of the next union by name.
        case ir.NextAt(stack) if base.type.kind == "header_union":
            member_type = base.type.field_type(name)
            assert isinstance(member_type, ty.Struct)
            return ir.NextMember(stack, name, member_type)
        # BMv2 has an operand of its own for this, `stack_field`.
        case ir.LastAt(stack) if base.type.kind == "header":
            return ir.LastField(stack.name, name, _plain_type(base.type, name, span))
        case ir.ElementAt(stack, index) if base.type.kind == "header":
            # BMv2 reaches a field of a computed element by its position, not by its name.
            names = [field for field, _ in flat_fields(base.type)]
            plain = _plain_type(base.type, name, span)
            return ir.ElementField(
                stack.name,
                size=len(stack.elements),
                index=index,
                offset=names.index(name),
                type=plain,
            )

    return fail("the target cannot reach this field", span)


def _plain_type(header: ty.Struct, name: str, span: Span) -> ty.Type:
    type_ = header.field_type(name)
    if type_ is None or isinstance(type_, ty.Struct | ty.Varbit):
        fail("the target cannot reach this field", span)

    return type_


def _element(node: t.Element, frame: Frame) -> ir.Operand:
    base = lower(node.base, frame)
    index = lower(node.index, frame)
    match base, index:
        case ir.StructAt(), ir.Num(value):
            return base.items[value]
        case ir.StackAt(), ir.Num(value):
            if not 0 <= value < len(base.elements):
                fail(f"index {value} is outside of 0 .. {len(base.elements) - 1}", node.span)

            return base.elements[value]
        case ir.StackAt(), _:
            return ir.ElementAt(base, as_value(index, node.span))

    return fail("the target cannot index this", node.span)


def _stack_member(node: t.StackMember, frame: Frame) -> ir.Operand:
    stack = lower(node.base, frame)
    assert isinstance(stack, ir.StackAt)
    if frame.where != "parser":
        fail(f"'{node.which}' can be used in a parser only", node.span)

    match node.which:
        case "next":
            return ir.NextAt(stack)
        case "last":
            return ir.LastAt(stack)
        case _:
            return ir.LastIndex(stack.name)


def is_valid(operand: ir.Operand, span: Span) -> ir.Value:
    """Return whether a header or union is valid."""
    match operand:
        # An element out of bounds is not valid, and asking BMv2 for it would end the switch.
        case ir.ElementAt() if (exists := in_bounds(operand)) is not None:
            return binary("&&", left=exists, right=ir.Valid(operand), type_=ty.BOOL, span=span)
        case ir.HeaderAt() | ir.UnionAt() | ir.ElementAt():
            return ir.Valid(operand)
        case ir.Invalid():
            return ir.Flag(False)
        case ir.StructAt():
            return ir.Flag(True)

    return fail("the target cannot tell whether this is valid", span)


# Operators


def _binary(node: t.Binary, frame: Frame) -> ir.Operand:
    # Steps of the right side would run before the operator, whatever the left side is.
    if node.op in ("&&", "||") and has_effects(node.right):
        return _short_circuit(node, frame)

    left, right = lower_all((node.left, node.right), frame)
    if node.op == "==":
        return equality(left, right, node.span)

    # Of headers and structs there is no `!=`, but of their equality a negation.
    if node.op == "!=" and not isinstance(left, ir.Value):
        return unary("!", equality(left, right, node.span), ty.BOOL)

    # The target, and every reader of its JSON, walks expressions in depth.
    if isinstance(left, ir.Value) and _is_deep(left):
        left = freeze(left, node.span, frame)

    # A comparison is computed in the type of its operands.
    is_comparison = node.type == ty.BOOL and node.op not in ("&&", "||")
    return binary(
        node.op,
        left=as_value(left, node.span),
        right=as_value(right, node.span),
        type_=node.left.type if is_comparison else node.type,
        span=node.span,
    )


MAX_NESTING = 40


def _is_deep(value: ir.Value) -> bool:
    """Say whether a value is computed by a long chain of operators on its left."""
    depth = 0
    while isinstance(value, ir.Compute) and depth < MAX_NESTING:
        # Of an operator with one operand, that is on the right.
        value = value.right if value.left is None or _is_mask(value) else value.left
        depth += 1

    return depth == MAX_NESTING


def _is_mask(value: ir.Compute) -> bool:
    return value.op == "&" and not isinstance(value.right, ir.Num)


def _short_circuit(node: t.Binary, frame: Frame) -> ir.Operand:
    """`a && f()` calls f only if a is true."""
    result = frame.temporary(ty.BOOL, node.span)
    assign(result, lower(node.left, frame), node.span, frame)
    with frame.collect() as inner:
        assign(result, lower(node.right, inner), node.span, inner)

    then, otherwise = (tuple(inner.out), ()) if node.op == "&&" else ((), tuple(inner.out))
    frame.emit(Test(as_value(result, node.span), then, otherwise, node.span))
    return result


def equality(left: ir.Operand, right: ir.Operand, span: Span) -> ir.Value:
    """Return whether two operands are equal.

    Headers are if both are invalid, or both valid with equal fields.
    """
    match left, right:
        case ir.StructAt(), ir.StructAt():
            return _all(
                equality(first, second, span)
                for first, second in zip(left.items, right.items, strict=True)
            )
        case ir.HeaderAt(), ir.HeaderAt():
            return _headers_equal(left, right, span)
        case ir.HeaderAt(), ir.StructAt():
            fields = _all(
                equality(header_field(left, name), item, span)
                for name, item in zip(right.names, right.items, strict=True)
            )

            return binary("&&", left=ir.Valid(left), right=fields, type_=ty.BOOL, span=span)
        case ir.StructAt(), ir.HeaderAt():
            return equality(right, left, span)
        case (ir.HeaderAt() | ir.UnionAt()) as header, ir.Invalid():
            return unary("!", ir.Valid(header), ty.BOOL)
        case ir.Invalid(), _:
            return equality(right, left, span)
        case ir.StackAt(), ir.StackAt():
            return _all(
                equality(first, second, span)
                for first, second in zip(left.elements, right.elements, strict=True)
            )
        case _:
            return binary(
                "==",
                left=as_value(left, span),
                right=as_value(right, span),
                type_=left.type,
                span=span,
            )


def _all(conditions: Iterable[ir.Value]) -> ir.Value:
    result: ir.Value = ir.Flag(True)
    for condition in conditions:
        result = (
            condition if result == ir.Flag(True) else ir.Compute("and", result, condition, ty.BOOL)
        )

    return result


def _headers_equal(left: ir.HeaderAt, right: ir.HeaderAt, span: Span) -> ir.Value:
    fields = _all(
        equality(header_field(left, item.name), header_field(right, item.name), span)
        for item in left.type.fields
    )

    first_valid = ir.Valid(left)
    second_valid = ir.Valid(right)
    # The fields of invalid headers are undefined, so they count only if both are valid.
    both = ir.Compute("and", ir.Compute("and", first_valid, second_valid, ty.BOOL), fields, ty.BOOL)
    neither = ir.Compute(
        "and", unary("!", first_valid, ty.BOOL), unary("!", second_valid, ty.BOOL), ty.BOOL
    )

    return ir.Compute("or", neither, both, ty.BOOL)


def _ternary(node: t.Ternary, frame: Frame) -> ir.Operand:
    condition = lower_value(node.condition, frame)
    # Constructor parameters are known by now, so a branch may vanish.
    if isinstance(condition, ir.Flag):
        return lower(node.then if condition.value else node.otherwise, frame)

    simple = not has_effects(node.then) and not has_effects(node.otherwise)
    with frame.collect() as then, frame.collect() as otherwise:
        left = lower(node.then, then)
        right = lower(node.otherwise, otherwise)
        # BMv2 has a ternary operator for single values; anything else takes a branch.
        if simple and isinstance(left, ir.Value) and isinstance(right, ir.Value):
            return ir.Choose(condition, left, right, node.type)

        result = frame.temporary(node.type, node.span)
        assign(result, left, node.span, then)
        assign(result, right, node.span, otherwise)

    frame.emit(Test(condition, tuple(then.out), tuple(otherwise.out), node.span))
    return result


# Effects


def has_effects(node: ty.Expression) -> bool:
    """Say whether evaluating an expression emits steps."""
    match node:
        # It moves nothing, though the lowering copies the bytes.
        case t.MethodCall(_, _, _, method) if method.name == "lookahead":
            return False
        case (
            t.FunctionCall()
            | t.ExternCall()
            | t.MethodCall()
            | t.TableApply()
            | t.ActionCall()
            | t.BlockApply()
        ):
            return True
        case (
            t.Field(_, _, base)
            | t.StackMember(_, _, base)
            | t.Slice(_, _, base)
            | t.HeaderMethod(_, _, base)
        ):
            return has_effects(base)
        case t.Unary(_, _, _, operand) | t.Cast(_, _, operand):
            return has_effects(operand)
        case t.Binary(_, _, _, left, right) | t.Element(_, _, left, right):
            return has_effects(left) or has_effects(right)
        case t.Ternary(_, _, condition, then, otherwise):
            return any(map(has_effects, (condition, then, otherwise)))
        case t.Aggregate(_, _, items):
            return any(map(has_effects, items))
        case _:
            return False
