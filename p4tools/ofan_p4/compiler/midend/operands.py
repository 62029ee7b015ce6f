"""Arithmetic on operands: computed now, or expressions with results that stay in their type.

BMv2 computes with unlimited precision, so whatever can leave the range is reduced: by a mask, or,
for signed types, by the operation two_comp_mod.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.semantics import folding
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

MAX_SHIFT_WIDTH = 8
"""Wider run-time shifts are guarded, since the target would really build the huge number."""


def number(value: int, type_: ty.Type) -> ir.Num:
    """Return a number as an operand."""
    return ir.Num(value, type_)


def bits_of(type_: ty.Type) -> ty.Type:
    """Return how a type is stored: errors and plain enums as bit<32>."""
    below = ty.underlying(type_)
    return ty.Bits(32) if below == ty.ERROR or isinstance(below, ty.Enum) else below


def is_signed(type_: ty.Type) -> bool:
    """Say whether a type is int<>."""
    below = ty.underlying(type_)
    return isinstance(below, ty.Bits) and below.signed


def reduce_to(value: ir.Value, type_: ty.Type) -> ir.Value:
    """Bring a value into the range of a type."""
    match bits_of(type_):
        case ty.Bits(width, signed=True):
            return ir.Compute("two_comp_mod", value, number(width, ty.INT), type_)
        case ty.Bits(width) as bits:
            return ir.Compute("&", value, number((1 << width) - 1, bits), type_)

    return value


def unary(op: str, operand: ir.Value, type_: ty.Type) -> ir.Value:
    """Return `op operand`."""
    if isinstance(operand, ir.Flag):
        return ir.Flag(not operand.value)
    if isinstance(operand, ir.Num):
        return number(folding.fold_unary(op, operand.value, type_), type_)

    match op:
        case "!":
            return ir.Compute("not", None, operand, ty.BOOL)
        case "-":
            return reduce_to(ir.Compute("-", number(0, type_), operand, type_), type_)
        case _:
            return reduce_to(ir.Compute(op, None, operand, type_), type_)


def binary(  # noqa: C901 one line for each kind of operator
    op: str, left: ir.Value, right: ir.Value, type_: ty.Type, span: Span
) -> ir.Value:
    """Return `left op right`.

    Both operands have the same type but for shifts and concatenations.
    """
    if op in ("&&", "||"):
        return _logical(op, left, right)
    # `++` needs the widths, which `_concatenation` knows.
    if isinstance(left, ir.Num | ir.Flag) and isinstance(right, ir.Num | ir.Flag) and op != "++":
        return _fold(op, left, right, type_=type_, span=span)

    match op:
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            return ir.Compute(op, left, right, ty.BOOL)
        case "+" | "-" | "*":
            return reduce_to(ir.Compute(op, left, right, type_), type_)
        # Bits of both sides are in range, so are those of the result.
        case "&" | "|" | "^":
            return ir.Compute(op, left, right, type_)
        case "|+|" | "|-|":
            return _saturating(op, left, right, type_)
        case "<<" | ">>":
            return _shift(op, left, right, type_)
        case "++":
            return _concatenation(left, right, type_)
        case _:
            return _division(op, left, right, type_=type_, span=span)


def _fold(
    op: str, left: ir.Num | ir.Flag, right: ir.Num | ir.Flag, type_: ty.Type, span: Span
) -> ir.Value:
    if op in folding.COMPARISONS:
        return ir.Flag(folding.fold_comparison(op, int(left.value), int(right.value)))

    return number(
        folding.fold_binary(
            op, left=int(left.value), right=int(right.value), type_=type_, span=span
        ),
        type_,
    )


def _logical(op: str, left: ir.Value, right: ir.Value) -> ir.Value:
    for flag, operand in ((left, right), (right, left)):
        if isinstance(flag, ir.Flag):
            return flag if flag.value == (op == "||") else operand

    return ir.Compute("and" if op == "&&" else "or", left, right, ty.BOOL)


def _saturating(op: str, left: ir.Value, right: ir.Value, type_: ty.Type) -> ir.Value:
    cast = "sat_cast" if is_signed(type_) else "usat_cast"
    # `|+|` is `+` without limit, then brought to the nearest value of the type.
    exact = ir.Compute(op[1], left, right, type_)
    return ir.Compute(cast, exact, number(ty.width_of(type_), ty.INT), type_)


def _shift(op: str, left: ir.Value, right: ir.Value, type_: ty.Type) -> ir.Value:
    width = ty.width_of(type_)
    if isinstance(right, ir.Num):
        # Everything is shifted out, but the sign of an int<> stays.
        if right.value >= width and not (op == ">>" and is_signed(type_)):
            return number(0, type_)

        right = number(min(right.value, width), right.type)

    shifted: ir.Value = ir.Compute(op, left, right, type_)
    shifted = reduce_to(shifted, type_) if op == "<<" else shifted
    # At most 255 places: a number that BMv2 can build.
    if isinstance(right, ir.Num) or ty.width_of(right.type) <= MAX_SHIFT_WIDTH:
        return shifted

    too_far = ir.Compute(">=", right, number(width, right.type), ty.BOOL)
    filled = (
        ir.Compute(op, left, number(width, ty.INT), type_)
        if op == ">>" and is_signed(type_)
        else number(0, type_)
    )

    return ir.Choose(too_far, filled, shifted, type_)


def _concatenation(left: ir.Value, right: ir.Value, type_: ty.Type) -> ir.Value:
    width = ty.width_of(right.type)
    # A negative right side would fill the left side with ones.
    low = right if not is_signed(right.type) else reduce_to(right, ty.Bits(width))
    if isinstance(left, ir.Num) and isinstance(right, ir.Num):
        joined = (left.value << width) | (right.value & ((1 << width) - 1))
        return number(folding.wrap(joined, type_), type_)

    return ir.Compute("|", ir.Compute("<<", left, number(width, ty.INT), type_), low, type_)


def _division(op: str, left: ir.Value, right: ir.Value, type_: ty.Type, span: Span) -> ir.Value:
    """The target divides by powers of two only, by shift and mask."""
    if isinstance(left, ir.Num) and left.value == 0:
        return number(0, type_)

    if not isinstance(right, ir.Num):
        fail(f"the right side of '{op}' must be known at compile time", span)

    if right.value <= 0 or right.value & (right.value - 1):
        fail(
            f"the target can compute '{op}' of run-time values only with a power of two "
            "on the right",
            span,
        )

    if op == "%":
        return ir.Compute("&", left, number(right.value - 1, type_), type_)

    return _shift(">>", left, number(right.value.bit_length() - 1, ty.INT), type_)


def slice_of(value: ir.Value, high: int, low: int) -> ir.Value:
    """Return bits `high` down to `low`."""
    type_ = ty.Bits(high - low + 1)
    if isinstance(value, ir.Num):
        return number((value.value >> low) & ((1 << type_.width) - 1), type_)
    # The whole of an unsigned value is itself.
    if low == 0 and ty.width_of(value.type) == type_.width and not is_signed(value.type):
        return value

    # Nothing stands above, so the shift alone does it.
    if high == ty.width_of(value.type) - 1 and not is_signed(value.type):
        return ir.Compute(">>", value, number(low, ty.INT), type_)

    shifted = ir.Compute(">>", value, number(low, ty.INT), value.type) if low else value
    return reduce_to(shifted, type_)


def with_slice(base: ir.Value, high: int, low: int, value: ir.Value) -> ir.Value:
    """Return `base` with bits `high` down to `low` replaced."""
    width = ty.width_of(base.type)
    plain = ty.Bits(width)
    # Everything but the slice; 0 where the slice is all there is.
    hole = ((1 << width) - 1) & ~(((1 << (high - low + 1)) - 1) << low)
    kept = ir.Compute("&", base, number(hole, plain), plain)
    moved = (
        number(value.value << low, plain)
        if isinstance(value, ir.Num)
        else _moved(value, low, plain)
    )

    joined: ir.Value = ir.Compute("|", kept, moved, plain) if hole else moved
    return reduce_to(joined, base.type) if is_signed(base.type) else joined


def _moved(value: ir.Value, low: int, type_: ty.Bits) -> ir.Value:
    return ir.Compute("<<", value, number(low, ty.INT), type_) if low else value


def cast(value: ir.Value, target: ty.Type) -> ir.Value:
    """Convert explicitly; the checker has allowed the conversion."""
    goal = bits_of(target)
    source = bits_of(value.type)
    if isinstance(value, ir.Num | ir.Flag):
        plain = int(value.value)
        if goal == ty.BOOL:
            return ir.Flag(bool(plain))

        return number(folding.wrap(plain, goal), target)

    if goal == ty.BOOL:
        return value if source == ty.BOOL else ir.Compute("!=", value, number(0, source), ty.BOOL)
    if source == ty.BOOL:
        return ir.Compute("b2d", None, value, target)
    if not isinstance(goal, ty.Bits) or not isinstance(source, ty.Bits):
        return value
    if goal == source:
        return value
    if goal.signed == source.signed and goal.width > source.width:
        return widened(value, target)

    return reduce_to(value, target)


def widened(value: ir.Value, target: ty.Type) -> ir.Value:
    """Return a value with a wider type of the same sign, which keeps the number."""
    match value:
        # The field stays as narrow as it is stored, while `++` and lists need the new width.
        case ir.FieldRef() | ir.LastField() | ir.ElementField():
            return ir.Widened(value, target)
        case ir.Widened(stored):
            return ir.Widened(stored, target)

    return replace(value, type=target)


# The parts of operands


def leaves(operand: ir.Operand) -> Iterator[tuple[str, str | None]]:  # noqa: C901 one case for each kind
    """Yield the (header, field) pairs that an operand reads; field None is a header as a whole."""
    match operand:
        case ir.FieldRef(header, name):
            yield header, name
        case ir.HeaderAt(name) | ir.LastIndex(name) | ir.LastField(name):
            yield name, None
        case ir.UnionAt(name, _, members) | ir.StackAt(name, _, members):
            yield name, None
            for member in members:
                yield from leaves(member)
        case ir.ElementAt(stack, index):
            yield from leaves(stack)
            yield from leaves(index)
        case ir.NextAt(stack) | ir.LastAt(stack) | ir.NextMember(stack):
            yield from leaves(stack)
        case ir.ElementField(stack_name, _, index):
            yield stack_name, None
            yield from leaves(index)
        case _:
            for part in _parts(operand):
                yield from leaves(part)


def _parts(operand: ir.Operand) -> tuple[ir.Operand, ...]:
    match operand:
        case ir.StructAt(_, _, items):
            return items
        case ir.Compute(_, left, right):
            return (right,) if left is None else (left, right)
        case ir.Choose(condition, then, otherwise):
            return (condition, then, otherwise)
        case ir.Valid(of):
            return (of,)
        case ir.Widened(stored):
            return (stored,)
        case _:
            return ()


def fits(index: ir.Value, size: int) -> bool:
    """Return whether an index is below the size of a stack for every packet."""
    match index:
        case ir.Num(value):
            return value < size
        # `hs[i & 3]`, the usual way to stay inside.
        case ir.Compute("&", _, ir.Num(mask)):
            return mask < size
        case ir.LastIndex():
            return True
        case ir.Widened(stored):
            return fits(stored, size)
        case _:
            return not is_signed(index.type) and 1 << ty.width_of(index.type) <= size


def stored_ranges(low: int, high: int, type_: ty.Type, span: Span) -> list[tuple[int, int]]:
    """Return a range as ranges of the bits that are stored: across zero, these are two."""
    if low > high:
        fail(f"the range {low} .. {high} is empty", span)

    full = (1 << ty.width_of(type_)) - 1
    if low < 0 <= high:
        return [(low & full, full), (0, high)]

    return [(low & full, high & full)]


def inside(index: ir.Value, size: int) -> ir.Value:
    """Return whether an index is at least 0 and below the size of a stack."""
    below: ir.Value = ir.Compute("<", index, number(size, index.type), ty.BOOL)
    if not is_signed(index.type):
        return below

    return ir.Compute(
        "and", ir.Compute(">=", index, number(0, index.type), ty.BOOL), below, ty.BOOL
    )


def overlap(first: ir.Operand, second: ir.Operand) -> bool:
    """Say whether two operands share storage."""
    ours = set(leaves(first))
    # Without a field, a header as a whole shares storage with each of its fields.
    headers = {header for header, _ in ours}
    return any(
        (header, name) in ours or (header, None) in ours or (name is None and header in headers)
        for header, name in leaves(second)
    )


def is_constant(operand: ir.Operand) -> bool:
    """Say whether no step can change an operand."""
    return isinstance(operand, ir.Num | ir.Flag | ir.RunTime | ir.Invalid)
