"""Numbers, addresses and matches as scripts write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address

from ofan_p4.runtime_cli.names import InputError
from ofan_p4.softswitch.codegen.program import Action, KeyField, TableSpec
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.keys import encode
from ofan_p4.softswitch.daemon.thrift.messages import MatchType
from ofan_p4.softswitch.state.tables import needs_priority

MAC = re.compile(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}")
MOST_INT = 1 << 31


def whole(text: str, label: str) -> int:
    """Return a number as Python writes it: decimal, 0x..., 0b..."""
    try:
        return int(text, 0)
    except ValueError:
        pass

    # Leading zeros are decimal digits, as for BMv2's own tool.
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{label} must be a number, not {text}") from None


def i32(text: str, label: str) -> int:
    """Return a number that the API carries in 32 bits."""
    number = whole(text, label)
    if not -MOST_INT <= number < MOST_INT:
        raise InputError(f"{label} must have 32 bits at most, not {text}")

    return number


def bits_of(text: str, bits: int, label: str) -> int:
    """Return a number of so many bits as the signed number that the API carries."""
    number = whole(text, label)
    if not 0 <= number < 1 << bits:
        raise InputError(f"{label} has {bits} bits, and {text} does not fit")

    return number - (1 << bits) if number >> bits - 1 else number


def truth(text: str, label: str) -> bool:
    """Return a truth: true, false, or a number."""
    named = {"true": True, "True": True, "false": False, "False": False}
    return named[text] if text in named else bool(whole(text, label))


def value(text: str, bits: int, label: str) -> bytes:
    """Return a number or an IPv4, IPv6 or MAC address in whole bytes."""
    number = _address(text, bits)
    if number is None:
        number = whole(text, label)
    if not 0 <= number < 1 << bits:
        raise InputError(f"{label} has {bits} bits, and {text} does not fit")

    return encode(number, bits)


def _address(text: str, bits: int) -> int | None:
    with suppress(ValueError):
        if bits == 32 and "." in text:
            return int(IPv4Address(text))
        if bits == 128 and ":" in text:
            return int(IPv6Address(text))

    if bits == 48 and MAC.fullmatch(text):
        return sum(int(part, 16) << 8 * i for i, part in enumerate(reversed(text.split(":"))))

    return None


def data(action: Action, texts: Sequence[str]) -> list[bytes]:
    """Return the arguments of an action."""
    if len(texts) != len(action.parameter_bits):
        raise InputError(
            f"action {action.name} takes {len(action.parameter_bits)} parameters,"
            f" found {len(texts)}"
        )

    parts = zip(texts, action.parameter_bits, action.parameter_names, strict=True)
    return [value(text, bits, f"parameter {name}") for text, bits, name in parts]


def match_key(table: TableSpec, texts: Sequence[str]) -> list[m.MatchParam]:
    """Return the key of an entry."""
    if len(texts) != len(table.key):
        raise InputError(f"table {table.name} has {len(table.key)} key fields, found {len(texts)}")

    return [_param(field, text) for field, text in zip(table.key, texts, strict=True)]


def with_priority(table: TableSpec, texts: list[str]) -> tuple[list[str], int]:
    """Return the words without the priority at their end, and the priority, 0 where none is due."""
    if not needs_priority(table):
        return texts, 0
    if not texts:
        raise InputError(f"an entry of table {table.name} ends in its priority")

    return texts[:-1], i32(texts[-1], f"the priority at the end of an entry of {table.name}")


def rates(texts: Sequence[str]) -> list[m.MeterRate]:
    """Return rates of the form units per microsecond:burst."""
    meter_rates = []
    for text in texts:
        rate, _, burst = text.partition(":")
        try:
            meter_rates.append(m.MeterRate(float(rate), i32(burst, "a burst")))
        except ValueError:
            raise InputError(f"a rate looks like 0.5:100, not {text}") from None

    return meter_rates


def port_map(texts: Sequence[str]) -> str:
    """Return ports as a string of bits, port 0 last."""
    ports = [i32(text, "a port") for text in texts]
    if len({*ports}) < len(ports) or min(ports, default=0) < 0:
        raise InputError("ports are numbers from 0 up, each given once")

    return "".join("1" if port in ports else "0" for port in range(max(ports, default=-1), -1, -1))


def _param(field: KeyField, text: str) -> m.MatchParam:
    name = f"key {field.name}"
    match field.kind:
        case "exact":
            return m.MatchParam(MatchType.EXACT, exact=m.Exact(value(text, field.bits, name)))
        case "lpm":
            prefix, length = _halves(text, "/", name)
            lpm = m.Lpm(value(prefix, field.bits, name), i32(length, f"the prefix of {name}"))
            return m.MatchParam(MatchType.LPM, lpm=lpm)
        case "range":
            low, high = (value(part, field.bits, name) for part in _halves(text, "->", name))
            return m.MatchParam(MatchType.RANGE, range=m.Range(low, high))
        case _:
            return m.MatchParam(MatchType.TERNARY, ternary=_ternary(field, text, name))


def _ternary(field: KeyField, text: str, name: str) -> m.Ternary:
    # BMv2's own tool knows no optional fields: a value alone is meant as a whole.
    if field.kind == "optional" and "&&&" not in text:
        full = encode((1 << field.bits) - 1, field.bits)
        return m.Ternary(value(text, field.bits, name), full)

    first, mask = (value(part, field.bits, name) for part in _halves(text, "&&&", name))
    return m.Ternary(first, mask)


def _halves(text: str, separator: str, name: str) -> tuple[str, str]:
    first, mark, second = text.partition(separator)
    if not mark:
        raise InputError(f"{name} needs a value with {separator}, not {text}")

    return first, second
