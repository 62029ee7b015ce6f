"""Numbers as P4Runtime's binary strings (P4Runtime specification, "Bytestrings")."""

from __future__ import annotations

from ofan_p4.softswitch.base.errors import Code, EntryError


def decode(value: bytes, bits: int, noun: str) -> int:
    """Return the unsigned integer of a string of any length.

    OUT_OF_RANGE where it does not fit into `bits` bits.
    """
    number = int.from_bytes(value, "big")
    # 8.4: any length will do as long as the value fits, but not no byte at all.
    if not value or number >> bits:
        shown = "an empty string" if not value else f"0x{value.hex()}"
        raise EntryError(Code.OUT_OF_RANGE, f"{noun}: {shown} is not a value of {bits} bits")

    return number


def encode(number: int) -> bytes:
    """Return the shortest string of an unsigned integer."""
    # 8.4, canonical form: no leading zero bytes, one byte for 0.
    return number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")
