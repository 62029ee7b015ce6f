"""Constants that the compiler computes, by the language's rules, against Python's integers."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ofan_p4.compiler.semantics import folding
from ofan_p4.compiler.semantics.types import Bits
from ofan_p4.diagnostics import Source, Span

HERE = Span(Source("", []), 0, 0)
TYPES = st.builds(Bits, st.integers(1, 4096), st.booleans())


def ends(type_: Bits) -> tuple[int, int]:
    """Return the lowest and the highest number of a type."""
    if type_.signed:
        return -(2 ** (type_.width - 1)), 2 ** (type_.width - 1) - 1
    return 0, 2**type_.width - 1


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Bits, int, int]:
    type_ = draw(TYPES)
    low, high = ends(type_)
    numbers = st.one_of(st.sampled_from((low, high)), st.integers(low, high))

    return type_, draw(numbers), draw(numbers)


def folded(op: str, pair: tuple[Bits, int, int]) -> int:
    type_, first, second = pair
    return folding.fold_binary(op, left=first, right=second, type_=type_, span=HERE)


@given(pair=pairs())
def test_sums_products_and_differences_wrap(pair: tuple[Bits, int, int]) -> None:
    type_, first, second = pair
    low, high = ends(type_)
    for op, exact in (("+", first + second), ("-", first - second), ("*", first * second)):
        result = folded(op, pair)
        assert low <= result <= high
        assert (result - exact) % 2**type_.width == 0


@given(pair=pairs())
@example(pair=(Bits(8, True), -128, 1))
@example(pair=(Bits(8, True), 127, -128))
@example(pair=(Bits(8, False), 3, 5))
@example(pair=(Bits(1, True), -1, -1))
def test_saturation_stops_at_the_ends(pair: tuple[Bits, int, int]) -> None:
    type_, first, second = pair
    low, high = ends(type_)

    assert folded("|+|", pair) == min(max(first + second, low), high)
    assert folded("|-|", pair) == min(max(first - second, low), high)


@given(pair=pairs())
def test_bits_are_combined(pair: tuple[Bits, int, int]) -> None:
    type_, first, second = pair
    # In two's complement, bit by bit of the unsigned patterns.
    whole = 2**type_.width
    for op, bits in (
        ("&", first % whole & second % whole),
        ("|", first % whole | second % whole),
        ("^", first % whole ^ second % whole),
    ):
        low, high = ends(type_)
        result = folded(op, pair)
        assert result % whole == bits
        assert low <= result <= high


@given(pair=pairs(), places=st.integers(0, 5000))
def test_shifts(pair: tuple[Bits, int, int], places: int) -> None:
    type_, number, _ = pair
    low, high = ends(type_)
    moved = folded("<<", (type_, number, places))

    assert low <= moved <= high
    assert (moved - number * 2**places) % 2**type_.width == 0
    # Rounded down, which keeps the sign.
    assert folded(">>", (type_, number, places)) == number // 2**places


@given(pair=pairs())
def test_single_operators(pair: tuple[Bits, int, int]) -> None:
    type_, number, _ = pair
    low, high = ends(type_)
    for op, exact in (("-", -number), ("~", -number - 1)):
        result = folding.fold_unary(op, number, type_)
        assert low <= result <= high
        assert (result - exact) % 2**type_.width == 0
