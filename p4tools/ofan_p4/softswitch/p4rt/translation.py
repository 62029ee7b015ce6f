"""Types that the control plane names by strings (P4Runtime 18.1, `sdn_string`).

The switch chooses the number behind each string and keeps it for its life, over all pipelines:
"vrf-80" never becomes another VRF.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from p4.config.v1 import p4info_pb2

from ofan_p4.softswitch.base.errors import Code, EntryError

# SAI's `@p4runtime_translation_mappings({ {"", 0}, })`, which gives some strings their number.
_MAPPINGS = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*,\s*(0[xX][0-9a-fA-F]+|[0-9]+)\s*\}')


class Names:
    """The strings of one type, and the numbers of `bits` bits that stand for them."""

    def __init__(self, bits: int, numbers: dict[str, int]) -> None:
        self._bits = bits
        self._numbers = dict(numbers)
        self._texts = {number: text for text, number in numbers.items()}
        self._free = self._downwards()

    def number(self, value: bytes, noun: str) -> int:
        """Return the number of a string, a new one if it is new; EntryError if none is free."""
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise EntryError(Code.INVALID_ARGUMENT, f"{noun}: the string is not UTF-8") from None

        if text in self._numbers:
            return self._numbers[text]
        if not text:
            raise EntryError(Code.INVALID_ARGUMENT, f"{noun}: an empty string")

        return self._keep(text, self._choose(text, noun))

    def text(self, number: int) -> bytes:
        """Return the string of a number; a number without a string is called by its digits."""
        if number not in self._texts:
            self._keep(str(number), number)

        return self._texts[number].encode()

    def _keep(self, text: str, number: int) -> int:
        self._texts[number] = text
        # Digits that have become the name of another number keep that meaning.
        self._numbers.setdefault(text, number)
        return number

    def _choose(self, text: str, noun: str) -> int:
        # The name of a port is its number, so that "1" is the port 1 of the switch.
        if text.isascii() and text.isdigit() and text == str(int(text)):
            number = int(text)
            if number >> self._bits == 0 and number not in self._texts:
                return number

        number = next(self._free, -1)
        if number < 0:
            raise EntryError(
                Code.RESOURCE_EXHAUSTED, f"{noun}: all numbers of {self._bits} bits have a name"
            )

        return number

    def _downwards(self) -> Iterator[int]:
        """Yield free numbers from the top, far from ports, as a port's name is its number.

        All ones and 0 mean something of their own to many programs, and come last.
        """
        last = (1 << self._bits) - 1
        for number in (*range(last - 1, 0, -1), 0, last):
            if number not in self._texts:
                yield number


class Translations:
    """The names of all translated types of a switch."""

    def __init__(self) -> None:
        self._types: dict[tuple[str, int], Names] = {}

    def of(self, type_name: str, bits: int, p4info: p4info_pb2.P4Info) -> Names | None:
        """Return the names of a type, None for a type that the control plane knows as a number."""
        declared = _declared(type_name, p4info)
        if declared is None or declared.translated_type.WhichOneof("sdn_type") != "sdn_string":
            return None

        key = (type_name, bits)
        if key not in self._types:
            self._types[key] = Names(bits, _mappings(declared.annotations))

        return self._types[key]


def member_types(spec: Any, p4info: p4info_pb2.P4Info) -> list[str]:
    """Return the `type` of each member of a digest's P4DataTypeSpec, "" where it has none."""
    match spec.WhichOneof("type_spec"):
        case "struct":
            struct = _entry(p4info.type_info.structs, spec.struct.name)
            return [member.type_spec.new_type.name for member in struct.members] if struct else []
        case "tuple":
            return [member.new_type.name for member in spec.tuple.members]
        case _:
            return [spec.new_type.name]


def _declared(type_name: str, p4info: p4info_pb2.P4Info) -> p4info_pb2.P4NewTypeSpec | None:
    return _entry(p4info.type_info.new_types, type_name)


def _entry(items: Any, name: str) -> Any:
    # The published message classes show their maps as lists of pairs.
    if hasattr(items, "add"):
        return next((pair.value for pair in items if pair.key == name), None)

    return items.get(name)


def _mappings(annotations: list[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for text in annotations:
        if text.startswith("@p4runtime_translation_mappings"):
            numbers |= {name: int(number, 0) for name, number in _MAPPINGS.findall(text)}

    return numbers
