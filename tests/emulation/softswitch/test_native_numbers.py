"""Numbers in machine code against Python's integers, for widths from 1 to 4,096 bits.

A function is made for some forms of numbers (bits, sign) and then run on many values of them: its
result must be exact, in the range that its own form promises.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import ir

from ofan_p4.softswitch.native import machine, values
from ofan_p4.softswitch.native.values import MAX_BITS, Number, UnsupportedError, container

WIDTHS = st.one_of(
    st.sampled_from((1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 1024, 4095)),
    st.integers(1, MAX_BITS),
)
EXACT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
BITWISE = {"and_": operator.and_, "or_": operator.or_, "xor": operator.xor}
ORDER = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Form:
    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - self.signed)) - 1

    @property
    def size(self) -> int:
        """The bits of its container."""
        return int(container(self.bits).width)


FORMS = st.builds(Form, WIDTHS, st.booleans())


def numbers_of(form: Form) -> st.SearchStrategy[int]:
    ends = sorted({form.low, min(form.low + 1, form.high), 0, form.high - 1, form.high})
    inside = [number for number in ends if form.low <= number <= form.high]
    return st.one_of(st.sampled_from(inside), st.integers(form.low, form.high))


Made = Callable[[values.Builder, list[Number]], Number]


def compiled(made: Made, forms: Sequence[Form]) -> tuple[Callable[[Sequence[int]], int], Number]:
    """Return a function of numbers in memory, and the known properties of its result."""
    module = ir.Module()
    arguments = [container(form.bits).as_pointer() for form in forms]
    pointer = ir.IntType(8).as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [*arguments, pointer]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    operands = [
        Number(builder.load(argument), form.bits, form.signed)
        for argument, form in zip(function.args, forms, strict=False)
    ]
    result = made(builder, operands)
    out = builder.bitcast(function.args[-1], result.value.type.as_pointer())
    builder.store(result.value, out)
    builder.ret_void()

    # Without LLVM's effort, which would only make the code of wide numbers take longer to make.
    maker = machine._machine(0)
    parsed = llvm.parse_assembly(str(module))
    parsed.triple = llvm.get_process_triple()
    parsed.data_layout = str(maker.target_data)
    parsed.verify()
    code = machine.load(maker.emit_object(parsed), "f")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(forms) + 1))(code.addresses[0])

    def run(numbers: Sequence[int], _keeper: Any = code) -> int:
        rooms = [room(number, form.size) for number, form in zip(numbers, forms, strict=True)]
        answer = room(0, result.width)
        call(*(ctypes.addressof(buffer) for buffer in (*rooms, answer)))
        raw = int.from_bytes(answer.raw, "little") & ((1 << result.width) - 1)

        # The container, not only the bits of the number, must hold the value.
        return raw - (1 << result.width) if result.is_signed and raw >> result.width - 1 else raw

    return run, result


def room(number: int, bits: int) -> Any:
    # Aligned as LLVM expects of numbers of 128 bits and more.
    size = -(-bits // 128) * 16
    return ctypes.create_string_buffer((number % (1 << 8 * size)).to_bytes(size, "little"), size)


def check(
    data: st.DataObject, made: Made, forms: Sequence[Form], right: Callable[..., int]
) -> None:
    """Compare a function with Python on some values of each form."""
    try:
        run, result = compiled(made, forms)
    except UnsupportedError:
        # Beyond 4,096 bits the Python engine takes over.
        return

    for _ in range(6):
        numbers = [data.draw(numbers_of(form)) for form in forms]
        assert_exact(run(numbers), result, right(*numbers))


def assert_exact(actual: int, result: Number, right: int) -> None:
    promised = Form(result.bits, result.is_signed) if result.bits else Form(1, False)

    assert actual == right
    assert promised.low <= actual <= promised.high


@pytest.mark.parametrize("op", EXACT)
@given(data=st.data(), left=FORMS, right=FORMS)
@settings(max_examples=15)
def test_sums_and_products_are_exact(op: str, data: st.DataObject, left: Form, right: Form) -> None:
    # A product of two wide numbers takes LLVM minutes.
    if op == "mul":
        left, right = (Form(min(form.bits, 400), form.signed) for form in (left, right))
    check(data, lambda b, n: values.added(b, n[0], n[1], op), (left, right), EXACT[op])


@pytest.mark.parametrize("op", EXACT)
@pytest.mark.parametrize("bits", [1, 2, 8, 16, 31, 32, 33, 64, 100])
def test_results_at_the_ends_of_signed_numbers_fit(op: str, bits: int) -> None:
    # The product of the two lowest numbers alone needs all the bits of both together.
    form = Form(bits, True)
    run, result = compiled(lambda b, n: values.added(b, n[0], n[1], op), (form, form))
    for first in (form.low, form.high):
        for second in (form.low, form.high):
            assert_exact(run((first, second)), result, EXACT[op](first, second))


@pytest.mark.parametrize("op", EXACT)
@given(data=st.data(), left=FORMS, right=FORMS, bits=st.integers(1, 300))
@settings(max_examples=12)
def test_the_low_bits_of_sums_and_products(
    op: str, data: st.DataObject, left: Form, right: Form, bits: int
) -> None:
    check(
        data,
        lambda b, n: values.modular(b, n[0], n[1], op, bits),
        (left, right),
        lambda first, second: EXACT[op](first, second) % (1 << bits),
    )


@pytest.mark.parametrize("op", BITWISE)
@given(data=st.data(), left=FORMS, right=FORMS)
@settings(max_examples=12)
def test_bits_are_combined_as_of_endless_numbers(
    op: str, data: st.DataObject, left: Form, right: Form
) -> None:
    check(data, lambda b, n: values.bitwise(b, n[0], n[1], op), (left, right), BITWISE[op])


@given(data=st.data(), form=FORMS, bits=WIDTHS)
@settings(max_examples=25)
def test_low_bits_are_cut_out(data: st.DataObject, form: Form, bits: int) -> None:
    check(
        data, lambda b, n: values.cut(b, n[0], bits), (form,), lambda number: number % (1 << bits)
    )


@given(data=st.data(), form=FORMS, bits=WIDTHS)
@settings(max_examples=25)
def test_low_bits_are_read_as_a_signed_number(data: st.DataObject, form: Form, bits: int) -> None:
    half = 1 << (bits - 1)
    check(
        data,
        lambda b, n: values.wrapped(b, n[0], bits),
        (form,),
        lambda number: (number + half) % (2 * half) - half,
    )


@pytest.mark.parametrize("op", ORDER)
@given(data=st.data(), left=FORMS, right=FORMS)
@settings(max_examples=15)
def test_numbers_are_compared_whatever_their_forms(
    op: str, data: st.DataObject, left: Form, right: Form
) -> None:
    def made(builder: values.Builder, numbers: list[Number]) -> Number:
        truth = values.compared(builder, op, numbers[0], numbers[1])
        return Number(builder.zext(truth, values.I32), 1)

    check(data, made, (left, right), lambda first, second: int(ORDER[op](first, second)))


@given(data=st.data(), left=FORMS, right=FORMS)
@settings(max_examples=15)
def test_one_of_two_numbers_is_chosen(data: st.DataObject, left: Form, right: Form) -> None:
    def made(builder: values.Builder, numbers: list[Number]) -> Number:
        first, second = numbers
        return values.selected(builder, values.compared(builder, "<", first, second), first, second)

    check(data, made, (left, right), min)


@given(number=st.integers(-(1 << 4000), 1 << 4000))
def test_constants_have_the_fewest_bits(number: int) -> None:
    result = values.constant(number)
    bits = (~number).bit_length() + 1 if number < 0 else number.bit_length()

    assert (result.bits, result.is_signed) == (bits, number < 0)
    assert result.value.constant == number


@pytest.mark.parametrize("bits", range(1, MAX_BITS + 1, 97))
def test_containers_hold_their_numbers(bits: int) -> None:
    assert container(bits).width >= bits
    assert values.stored(bits).width >= bits
