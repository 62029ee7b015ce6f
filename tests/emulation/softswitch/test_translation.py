"""Strings of the control plane and the numbers that stand for them."""

import pytest

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.translation import Names


@pytest.mark.parametrize(("value", "said"), [(b"", "an empty string"), (b"\xff", "not UTF-8")])
def test_what_is_no_name_is_refused(value: bytes, said: str) -> None:
    with pytest.raises(EntryError, match=said) as refused:
        Names(8, {}).number(value, "port")

    assert refused.value.code == Code.INVALID_ARGUMENT


def test_given_names_have_their_numbers_the_empty_one_too() -> None:
    names = Names(8, {"": 0, "vrf": 7})

    assert [names.number(value, "vrf") for value in (b"", b"vrf")] == [0, 7]
    assert [names.text(number) for number in (0, 7)] == [b"", b"vrf"]


def test_digits_name_their_own_number_and_others_are_chosen_from_the_top() -> None:
    names = Names(4, {})
    numbers = [names.number(value, "port") for value in (b"3", b"a", b"16", b"b", b"3")]

    assert numbers == [3, 14, 13, 12, 3]
    assert names.text(13) == b"16"
    assert names.text(5) == b"5"


def test_when_all_numbers_have_a_name_the_next_one_is_refused() -> None:
    names = Names(1, {})

    assert [names.number(value, "bit") for value in (b"a", b"b")] == [0, 1]

    with pytest.raises(EntryError, match="all numbers of 1 bits") as refused:
        names.number(b"c", "bit")

    assert refused.value.code == Code.RESOURCE_EXHAUSTED
