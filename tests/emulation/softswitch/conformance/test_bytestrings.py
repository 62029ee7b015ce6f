"""Section 8.4 of the P4Runtime specification 1.4: numbers as bytestrings."""

from __future__ import annotations

import pytest

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.bytestrings import decode, encode

# isort: split

UNSIGNED = [
    (8, "63", 99),
    (16, "0063", 99),
    (16, "63", 99),
    (16, "3064", 12388),
    (16, "003064", 12388),
    (12, "000063", 99),
]
BAD_UNSIGNED = [(8, "0163"), (8, ""), (16, "010063"), (12, "1063"), (12, "010063"), (12, "004063")]


@pytest.mark.parametrize(("bits", "text", "value"), UNSIGNED)
def test_valid_unsigned_bytestrings(bits: int, text: str, value: int) -> None:
    """8.4, table of valid encodings: bit<W>."""
    assert decode(bytes.fromhex(text), bits, "x") == value


@pytest.mark.parametrize(("bits", "text"), BAD_UNSIGNED)
def test_invalid_unsigned_bytestrings(bits: int, text: str) -> None:
    """8.4, table of invalid encodings: bit<W>, OUT_OF_RANGE."""
    with pytest.raises(EntryError) as caught:
        decode(bytes.fromhex(text), bits, "x")

    assert caught.value.code == Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("value", "data"), [(0, "00"), (99, "63"), (256, "0100"), (0x0A000001, "0a000001")]
)
def test_the_server_writes_the_shortest_bytestring(value: int, data: str) -> None:
    """8.4: the canonical representation uses the shortest string."""
    assert encode(value).hex() == data
