"""Thrift's binary protocol, as far as BMv2's services use it.

Annotations define the wire's types: an argument or a field is `I16`, `I32`, `I64`, `bool`, `float`,
`str`, `bytes`, a list, a dict of strings, or a dataclass with fields numbered from 1 in their
order. `| None` marks a field that may be absent.
"""

from __future__ import annotations

import dataclasses
import math
import struct
import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

# Of answers: a program of a thousand tables has some 10 MB of JSON.
MOST_BYTES = 256 << 20
MOST_ITEMS = 1 << 24
MOST_NESTED = 16


class Kind(IntEnum):
    """The protocol's types."""

    STOP = 0
    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15


I16 = Annotated[int, Kind.I16]
I32 = Annotated[int, Kind.I32]
I64 = Annotated[int, Kind.I64]
FIXED = {
    Kind.BOOL: ">?",
    Kind.BYTE: ">b",
    Kind.DOUBLE: ">d",
    Kind.I16: ">h",
    Kind.I32: ">i",
    Kind.I64: ">q",
}


class WireError(Exception):
    """Bytes that break the protocol or do not fit the method; the message is one line."""


class Reader:
    """Takes values from a buffered stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = MOST_BYTES
        self._end = math.inf

    def expect(self, limit_bytes: int, seconds: float) -> None:
        """Take no more than so many bytes from now on, and wait no longer."""
        self._left = limit_bytes
        self._end = time.monotonic() + seconds

    def take(self, size: int) -> bytes:
        """Return exactly `size` bytes; EOFError where the stream ends before."""
        self._left -= size
        if self._left < 0:
            raise WireError("a message that is too long")

        data = bytearray()
        while len(data) < size:
            part = self._stream.read1(size - len(data))
            # A sender of byte after byte is never late with the next byte.
            if not part or time.monotonic() > self._end:
                raise EOFError

            data += part

        return bytes(data)

    def number(self, kind: Kind) -> Any:
        """Return a number or a bool."""
        form = FIXED[kind]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def kind(self) -> Kind:
        """Return the type of the following value."""
        number = self.take(1)[0]
        try:
            return Kind(number)
        except ValueError:
            raise WireError(f"Thrift has no type {number}") from None

    def count(self, limit: int = MOST_ITEMS) -> int:
        """Return a length."""
        number = int(self.number(Kind.I32))
        if not 0 <= number <= limit:
            raise WireError(f"a length of {number}")

        return number

    def string(self) -> bytes:
        """Return a string or binary."""
        return self.take(self.count(MOST_BYTES))

    def skip(self, kind: Kind, depth: int = MOST_NESTED) -> None:
        """Skip a value of an unknown member."""
        if not depth:
            raise WireError("nested too deeply")

        match kind:
            case Kind.STRING:
                self.string()
            case Kind.STRUCT:
                while (inner := self.kind()) != Kind.STOP:
                    self.take(2)
                    self.skip(inner, depth - 1)
            case Kind.LIST | Kind.SET:
                self._skip_items((self.kind(),), depth)
            case Kind.MAP:
                self._skip_items((self.kind(), self.kind()), depth)
            case Kind.STOP:
                raise WireError("a value has no type")
            case _:
                self.number(kind)

    def _skip_items(self, kinds: tuple[Kind, ...], depth: int) -> None:
        for _ in range(self.count()):
            for kind in kinds:
                self.skip(kind, depth - 1)


class Codec(NamedTuple):
    """Reader and writer of one type's values."""

    kind: Kind
    write: Callable[[Any], bytes]
    read: Callable[[Reader], Any]


class Member(NamedTuple):
    """One field of a struct, or one argument of a method."""

    name: str
    codec: Codec
    is_optional: bool


Members = Mapping[int, Member]


def members_of(hints: Mapping[str, Any], first: int = 1) -> Members:
    """Return the members with these annotations, numbered from `first`."""
    members = {}
    for number, (name, hint) in enumerate(hints.items(), first):
        is_optional = _is_optional(hint)
        members[number] = Member(name, codec(_required(hint)), is_optional)

    return members


def write_members(members: Members, values: Mapping[str, Any]) -> bytes:
    """Return a struct with these values; those that are None are left out."""
    parts = []
    for number, member in members.items():
        value = values[member.name]
        if value is not None:
            parts.append(struct.pack(">bh", member.codec.kind, number) + member.codec.write(value))

    return b"".join(parts) + bytes([Kind.STOP])


def read_members(members: Members, reader: Reader, noun: str) -> dict[str, Any]:
    """Return a struct's values by name; unknown members are skipped."""
    values: dict[str, Any] = {}
    while (kind := reader.kind()) != Kind.STOP:
        member = members.get(reader.number(Kind.I16))
        if member is None:
            reader.skip(kind)
        elif kind != member.codec.kind:
            raise WireError(f"{noun}: {member.name} is of another type")
        else:
            values[member.name] = member.codec.read(reader)

    for member in members.values():
        if not member.is_optional and member.name not in values:
            raise WireError(f"{noun}: {member.name} is missing")

    return {member.name: values.get(member.name) for member in members.values()}


@cache
def codec(form: Any) -> Codec:
    """Return the codec of an annotated type."""
    if form in _PLAIN:
        return _PLAIN[form]
    if get_origin(form) is Annotated:
        return _number(get_args(form)[1])
    if get_origin(form) is list:
        return _list(codec(get_args(form)[0]))
    if get_origin(form) is dict:
        return _map(*(codec(part) for part in get_args(form)))

    return _struct(form)


def _is_optional(hint: Any) -> bool:
    # Annotations make the older form.
    return get_origin(hint) in (UnionType, Union)


def _required(hint: Any) -> Any:
    if not _is_optional(hint):
        return hint

    return next(part for part in get_args(hint) if part is not NoneType)


def _number(kind: Kind) -> Codec:
    form = FIXED[kind]
    return Codec(kind, lambda value: struct.pack(form, value), lambda reader: reader.number(kind))


def _text(reader: Reader) -> str:
    try:
        return reader.string().decode()
    except UnicodeDecodeError:
        raise WireError("a string is not UTF-8") from None


def _write_bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


_PLAIN: dict[Any, Codec] = {
    bool: _number(Kind.BOOL),
    float: _number(Kind.DOUBLE),
    str: Codec(Kind.STRING, lambda value: _write_bytes(value.encode()), _text),
    bytes: Codec(Kind.STRING, _write_bytes, Reader.string),
}


def _list(item: Codec) -> Codec:
    def write(values: list[Any]) -> bytes:
        return struct.pack(">bi", item.kind, len(values)) + b"".join(map(item.write, values))

    def read(reader: Reader) -> list[Any]:
        kind, size = reader.kind(), reader.count()
        if size and kind != item.kind:
            raise WireError("the items of a list are of another type")

        return [item.read(reader) for _ in range(size)]

    return Codec(Kind.LIST, write, read)


def _map(key: Codec, value: Codec) -> Codec:
    def write(values: dict[Any, Any]) -> bytes:
        pairs = b"".join(key.write(name) + value.write(item) for name, item in values.items())
        return struct.pack(">bbi", key.kind, value.kind, len(values)) + pairs

    def read(reader: Reader) -> dict[Any, Any]:
        kinds, size = (reader.kind(), reader.kind()), reader.count()
        if size and kinds != (key.kind, value.kind):
            raise WireError("the items of a map are of another type")

        return {key.read(reader): value.read(reader) for _ in range(size)}

    return Codec(Kind.MAP, write, read)


def _struct(form: Any) -> Codec:
    hints = get_type_hints(form, include_extras=True)
    members = members_of({field.name: hints[field.name] for field in dataclasses.fields(form)})

    def write(value: Any) -> bytes:
        return write_members(members, {name: getattr(value, name) for name in hints})

    def read(reader: Reader) -> Any:
        return form(**read_members(members, reader, form.__name__))

    return Codec(Kind.STRUCT, write, read)
