"""Compiled functions read named tuples by address as Python reads them."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import config
from numba.extending import intrinsic

from sim.kernels.bundles import IS_BY_ADDRESS, by_address
from sim.kernels.jit import inlined, kernel

if config.DISABLE_JIT or not IS_BY_ADDRESS:
    pytest.skip("kernels get named tuples as numba passes them", allow_module_level=True)

PAIR = np.dtype([("low", np.int16), ("high", np.int64)])


class Inner(NamedTuple):
    number: int
    row: Any


@by_address
class Outer(NamedTuple):
    before: int
    is_odd: bool
    inner: Inner
    table: Any
    every_other: Any
    records: Any
    absent: int | None
    share: float


def outer(number: int = 8, absent: int | None = None) -> Outer:
    records = np.zeros(3, PAIR).view(np.recarray)
    records.high = 5, 6, 2**40
    return Outer(
        before=-(2**62),
        is_odd=True,
        inner=Inner(number, np.arange(4, dtype=np.uint8)),
        table=np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        every_other=np.arange(10)[1::2],
        records=records,
        absent=absent,
        share=0.75,
    )


@inlined  # type: ignore[untyped-decorator]
def halved(bundle: Any) -> Any:
    return bundle.share / 2


@kernel
def contents(bundle: Any, numbers: Any) -> Any:
    numbers[0] = bundle.before
    numbers[1] = bundle.inner.number
    numbers[2] = bundle.inner.row[3]
    numbers[3] = bundle.table[1, 2, 3] + 100 * len(bundle.table) + 1000 * bundle.table.size
    numbers[4] = bundle.every_other[2] + 100 * len(bundle.every_other)
    numbers[5] = bundle.records[2].high
    numbers[6] = 0 if bundle.absent is None else bundle.absent
    numbers[7] = bundle.table[:, 2, 1][1] + 100 * bundle.is_odd
    return halved(bundle)


@kernel
def stored(bundle: Any, value: int) -> Any:
    bundle.records[1].low = value
    bundle.inner.row[0] = bundle.inner.row[1] + 40
    return bundle.inner.row[0]


@intrinsic  # type: ignore[untyped-decorator]
def supposed(_typing: Any, bundle: Any) -> Any:
    """Return the bundle, of which the compiler supposes another number."""

    def generate(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return bundle.knowing({"inner": {"number": 3}})(bundle), generate


@kernel
def both_numbers(bundle: Any) -> Any:
    return 1000 * bundle.inner.number + supposed(bundle).inner.number


def test_known_numbers_are_constants_to_the_compiler() -> None:
    assert both_numbers(outer(number=8)) == 8003


@pytest.mark.parametrize("absent", [None, 3])
def test_every_kind_of_field_is_read(absent: int | None) -> None:
    bundle = outer(absent=absent)
    numbers = np.zeros(8, dtype=np.int64)
    assert contents(bundle, numbers) == 0.375
    expected = np.zeros(8, dtype=np.int64)
    contents.py_func(bundle, expected)
    assert numbers.tolist() == expected.tolist()
    assert expected.tolist() == [-(2**62), 8, 3, 23 + 200 + 24_000, 505, 2**40, absent or 0, 121]


def test_stores_go_to_the_arrays_themselves() -> None:
    bundle = outer()
    assert stored(bundle, -9) == 41
    assert bundle.records.low.tolist() == [0, -9, 0]
    assert bundle.inner.row.tolist() == [41, 1, 2, 3]


def test_each_call_reads_the_tuple_that_it_gets() -> None:
    numbers = np.zeros(8, dtype=np.int64)
    for number in (1, 2):
        contents(outer(number), numbers)
        assert numbers[1] == number


def test_an_array_of_another_kind_is_another_type() -> None:
    bundle = outer()
    wider = bundle._replace(inner=bundle.inner._replace(row=np.arange(4, dtype=np.int64) - 2))
    assert stored(wider, 1) == 39


def test_an_item_that_is_not_of_its_type_is_refused() -> None:
    stored(outer(), 1)
    with pytest.raises(TypeError):
        stored.overloads[stored.signatures[0]].entry_point(
            outer()._replace(records=np.zeros(3, np.int16)), 1
        )
