"""Widths of two's complement and saturation: at their limits, and far beyond any packet."""

import pytest

from ofan_p4.softswitch.base.arithmetic import saturate, saturate_signed, wrap

# A number of so many bits would take half a gigabyte.
HUGE = 0xFFFFFF00


@pytest.mark.parametrize(
    ("value", "bits", "wrapped", "limited", "limited_signed"),
    [
        (127, 8, 127, 127, 127),
        (128, 8, -128, 128, 127),
        (129, 8, -127, 129, 127),
        (255, 8, -1, 255, 127),
        (256, 8, 0, 255, 127),
        (-128, 8, -128, 0, -128),
        (-129, 8, 127, 0, -128),
        (0, 1, 0, 0, 0),
        (1, 1, -1, 1, 0),
        (-1, 1, -1, 0, -1),
        (-2, 1, 0, 0, -1),
        (127, HUGE, 127, 127, 127),
        (-129, HUGE, -129, 0, -129),
    ],
)
def test_values_at_the_limits_of_a_width(
    value: int, bits: int, wrapped: int, limited: int, limited_signed: int
) -> None:
    assert wrap(value, bits) == wrapped
    assert saturate(value, bits) == limited
    assert saturate_signed(value, bits) == limited_signed


@pytest.mark.parametrize("bits", [0, -1])
def test_no_bits_hold_nothing(bits: int) -> None:
    assert wrap(5, bits) == 0
