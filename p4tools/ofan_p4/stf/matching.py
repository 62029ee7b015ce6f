"""Matches as scripts write them, as pairs of numbers that the tables of the switch keep."""

from __future__ import annotations

from ofan_p4.softswitch.codegen.program import KeyField

BASES = {"0x": 4, "0b": 1, "0o": 3}


class MatchError(ValueError):
    """A match that does not fit its key; one line."""


def match_of(key: KeyField, text: str | None) -> tuple[int, int]:
    """Return the pair that `tables.Match` has for one key.

    None is a key that the script leaves out.
    """
    if text is None:
        return (0, _full(key)) if key.kind == "range" else (0, 0)

    try:
        pair = {"lpm": _prefix, "ternary": _masked, "optional": _masked, "range": _range}.get(
            key.kind, _exact
        )(key, text)
    except ValueError as error:
        raise MatchError(
            str(error) if isinstance(error, MatchError) else f"{key.name}: cannot read {text!r}"
        ) from None

    # The second number of a prefix is its length, not bits.
    if any(value >> key.bits for value in (pair[:1] if key.kind == "lpm" else pair)):
        raise MatchError(f"{key.name}: {text} does not fit in {key.bits} bits")

    return pair


def _full(key: KeyField) -> int:
    return (1 << key.bits) - 1


def _exact(_key: KeyField, text: str) -> tuple[int, int]:
    return int(text, 0), 0


def _range(_key: KeyField, text: str) -> tuple[int, int]:
    low, mark, high = text.partition("->")
    return int(low, 0), int(high if mark else low, 0)


def _masked(key: KeyField, text: str) -> tuple[int, int]:
    """A digit matches itself and `*` all digits.

    Bits above the first digit are not looked at, as the format has it.
    """
    value, mark, mask = text.partition("&&&")
    if mark:
        return int(value, 0) & int(mask, 0), int(mask, 0)

    bits = BASES.get(text[:2].lower())
    # A decimal number has no wildcards: it matches exactly.
    if bits is None:
        return int(text), _full(key)

    ones = {4: "f", 1: "1", 3: "7"}[bits]
    digits = text[2:]
    mask_digits = "".join("0" if digit == "*" else ones for digit in digits)

    return int(digits.replace("*", "0"), 1 << bits), int(mask_digits, 1 << bits) & _full(key)


def _prefix(key: KeyField, text: str) -> tuple[int, int]:
    """`VALUE/LENGTH`; else the digits before the first `*` are the prefix."""
    value, mark, length = text.partition("/")
    if not mark:
        bits = BASES.get(text[:2].lower())
        # Every digit that is not `*` counts with all its bits, so a prefix ends at a digit.
        length = str(key.bits if bits is None else (len(text) - 2 - text.count("*")) * bits)
        value = text.replace("*", "0")

    if int(length) > key.bits:
        raise MatchError(f"{key.name}: a prefix of {length} bits does not fit in {key.bits} bits")

    return int(value, 0), int(length)
