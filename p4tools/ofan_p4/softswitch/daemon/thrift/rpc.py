"""Calls and answers as messages: both ends."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, BinaryIO

from ofan_p4.softswitch.daemon.thrift.interface import Method, methods
from ofan_p4.softswitch.daemon.thrift.messages import UNKNOWN_METHOD, CallError, Ouch, Refusal
from ofan_p4.softswitch.daemon.thrift.wire import (
    I32,
    Kind,
    Reader,
    WireError,
    members_of,
    read_members,
    write_members,
)

VERSION = 0x80010000
ANSWER_SECONDS = 60.0
FAILURE = members_of({"message": str | None, "type": I32 | None})
MOST_NAME = 256


class Message(IntEnum):
    """The kinds of messages."""

    CALL = 1
    REPLY = 2
    EXCEPTION = 3
    ONEWAY = 4


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it has arrived."""

    method: Method
    arguments: Mapping[str, Any]


def header(kind: Message, name: str, sequence: int) -> bytes:
    """Return how a message begins."""
    encoded = name.encode()
    return struct.pack(">II", VERSION | kind, len(encoded)) + encoded + struct.pack(">i", sequence)


def read_header(reader: Reader) -> tuple[Message, str, int]:
    """Return kind, name and sequence number of the next message."""
    word = struct.unpack(">I", reader.take(4))[0]
    if word & 0xFFFFFF00 != VERSION or word & 0xFF not in set(Message):
        raise WireError("this is not Thrift's binary protocol")

    name = reader.take(reader.count(MOST_NAME)).decode(errors="replace")
    return Message(word & 0xFF), name, int(reader.number(Kind.I32))


def serve_one(reader: Reader, run: Callable[[Call], Any]) -> bytes:
    """Read a call, have it run and return the answer; EOFError where there is no other."""
    kind, name, sequence = read_header(reader)
    if kind is not Message.CALL:
        raise WireError("only calls are answered")

    try:
        return _answer(reader, name, sequence, run)
    except CallError as error:
        failure = {"message": str(error), "type": error.code}
        return header(Message.EXCEPTION, name, sequence) + write_members(FAILURE, failure)


def _answer(reader: Reader, name: str, sequence: int, run: Callable[[Call], Any]) -> bytes:
    method = methods().get(name)
    if method is None:
        reader.skip(Kind.STRUCT)
        plain = name.rpartition(":")[2]
        raise CallError(f"{plain} is not supported by this switch", UNKNOWN_METHOD)

    arguments = read_members(method.arguments, reader, method.name)
    context = arguments.pop("cxt_id", 0)
    if context:
        raise CallError(f"{method.name}: this switch has context 0 only, not {context}")

    result: dict[str, Any] = {"success": None, "ouch": None}
    try:
        result["success"] = run(Call(method, arguments))
    except Refusal as refusal:
        result["ouch"] = Ouch(refusal.code)

    return header(Message.REPLY, name, sequence) + write_members(method.answer, result)


class Client:
    """A connection to a switch's services; CallError for an answer that reports a failure."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), ANSWER_SECONDS)
        self._stream: BinaryIO = self._socket.makefile("rb")
        self._sequence = 0

    def call(self, name: str, **arguments: Any) -> Any:
        """Return the result of `service:method`; Refusal where the switch refuses with a code."""
        method = methods()[name]
        self._sequence += 1
        values = {**({"cxt_id": 0} if method.part.has_context else {}), **arguments}
        self._socket.sendall(
            header(Message.CALL, name, self._sequence) + write_members(method.arguments, values)
        )

        reader = Reader(self._stream)
        kind, _, _ = read_header(reader)
        if kind is Message.EXCEPTION:
            failure = read_members(FAILURE, reader, method.name)
            raise CallError(failure["message"] or f"{method.name} has failed")

        answer = read_members(method.answer, reader, method.name)
        if answer.get("ouch") is not None and method.part.codes is not None:
            raise Refusal(method.part.codes(answer["ouch"].code))

        return answer.get("success")

    def close(self) -> None:
        """End the connection."""
        self._stream.close()
        self._socket.close()
