"""Hostile calls of BMv2's runtime API: an answer or an end, and the next call is served."""

import json
import random
import socket
import tempfile
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import p4src
from benchmarks.fuzz.failure import FuzzFailure
from benchmarks.fuzz.server import switch_process
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.daemon.thrift.interface import Method, methods
from ofan_p4.softswitch.daemon.thrift.rpc import (
    Client,
    Message,
    header,
    read_header,
)
from ofan_p4.softswitch.daemon.thrift.wire import Kind, Reader, WireError, write_members

HOST = "127.0.0.1"
WAIT_S = 15.0
CHECKED = 500

WIDTHS = {Kind.BYTE: 8, Kind.I16: 16, Kind.I32: 32, Kind.I64: 64}


class Caller:
    """Draws calls: damaged bytes, and whole calls with names of the program and any values."""

    def __init__(self, port: int, draw: random.Random, names: list[str]) -> None:
        self.port = port
        self.draw = draw
        self.names = names
        self.methods = methods()
        self.outcomes: Counter[str] = Counter()

    def call(self) -> None:
        """Make one call on a connection of its own; anything but an answer or an end fails."""
        name = self.draw.choice(list(self.methods))
        data = header(Message.CALL, name, 1) + self.arguments(self.methods[name])
        if self.draw.random() < 0.4:
            data = self.damaged(data)

        with closing(socket.create_connection((HOST, self.port), WAIT_S)) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = self._answer(connection, name)

        if b"internal error" in answer:
            raise FuzzFailure(f"{name}: {answer!r}, sent {data!r}")

        self.outcomes[_kind_of(answer)] += 1

    def _answer(self, connection: socket.socket, name: str) -> bytes:
        parts = []
        try:
            while part := connection.recv(1 << 16):
                parts.append(part)
        except TimeoutError:
            raise FuzzFailure(f"{name}: no answer in {WAIT_S:.0f} s") from None
        except ConnectionError:
            pass

        return b"".join(parts)

    def arguments(self, method: Method) -> bytes:
        """Return drawn arguments of a method."""
        hints = get_type_hints(getattr(method.part, method.name), include_extras=True)
        values = {name: self.value(hint) for name, hint in hints.items() if name != "return"}
        if method.part.has_context:
            values["cxt_id"] = 0

        return write_members(method.arguments, values)

    def value(self, hint: Any) -> Any:
        """Return a drawn value of an annotated type."""
        draw = self.draw
        if get_origin(hint) in (types.UnionType, Union):
            inner = next(part for part in get_args(hint) if part is not type(None))
            return self.value(inner) if draw.random() < 0.6 else None
        if get_origin(hint) is Annotated:
            return self._number(WIDTHS[get_args(hint)[1]])
        if get_origin(hint) is list:
            return [self.value(get_args(hint)[0]) for _ in range(draw.choice([0, 1, 1, 2, 5]))]
        if get_origin(hint) is dict:
            return {}
        if is_dataclass(hint):
            return self._struct(hint)

        return self._plain(hint)

    def _struct(self, form: Any) -> Any:
        inside = get_type_hints(form, include_extras=True)
        return form(**{item.name: self.value(inside[item.name]) for item in fields(form)})

    def _number(self, bits: int) -> int:
        top = 1 << bits - 1
        return self.draw.choice([0, 0, 1, 1, 2, 3, 8, -1, 255, top - 1, -top])

    def _plain(self, hint: Any) -> Any:
        draw = self.draw
        if hint is bool:
            return draw.random() < 0.5
        if hint is float:
            return draw.choice([0.0, 1.0, -1.0, 1e300, float("nan"), float("inf")])
        if hint is str:
            return draw.choice(["", "x", "\u20ac", *draw.sample(self.names, 8)])

        return draw.randbytes(draw.choice([0, 1, 1, 2, 4, 6, 16]))

    def damaged(self, content: bytes) -> bytes:
        """Return a call's bytes, some of them changed, lost or doubled."""
        draw = self.draw
        data = bytearray(content)
        for _ in range(draw.randrange(1, 4)):
            index = draw.randrange(len(data) + 1)
            match draw.randrange(4):
                case 0 if index < len(data):
                    data[index] = draw.randrange(256)
                case 1:
                    del data[index:]
                case 2:
                    data[index:index] = data[index : index + draw.randrange(1, 20)]
                case _:
                    data[index : index + 4] = draw.choice(
                        [b"\x7f\xff\xff\xff", b"\xff" * 4, bytes(4)]
                    )

        return bytes(data) or b"\0"

    def check_alive(self) -> None:
        """Raise FuzzFailure unless a client's call gets its answer."""
        with closing(Client(HOST, self.port)) as client:
            if client.call("standard:bm_mgmt_get_info").thrift_port != self.port:
                raise FuzzFailure("the switch does not know its own port")


def _kind_of(answer: bytes) -> str:
    if not answer:
        return "connection ended"

    with suppress(WireError, EOFError):
        kind, _, _ = read_header(Reader(_Bytes(answer)))
        return kind.name.lower()

    return "no message"


class _Bytes:
    """Bytes as a stream that a Reader takes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read1(self, size: int) -> bytes:
        """Return the next bytes."""
        part, self._data = self._data[:size], self._data[size:]
        return part


@contextmanager
def _switch(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Run a switch with our program; yield its Thrift port and the names in the program."""
    compiled = compile_file(p4src.path("ofan"), defines={"MAX_UPLINKS": "8"})
    program = folder / "ofan.json"
    program.write_text(json.dumps(compiled.json), encoding="utf-8")
    names = sorted(
        item["name"]
        for kind in ("actions", "register_arrays", "counter_arrays", "meter_arrays")
        for item in compiled.json[kind]
    )
    names += [
        table["name"] for pipeline in compiled.json["pipelines"] for table in pipeline["tables"]
    ]
    with closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]

    options = [str(program), "--device-id", "1", "--thrift-port", str(port)]
    with switch_process(folder, options):
        yield port, names


def fuzz_thrift(count: int, seed: int = 1) -> dict[str, Any]:
    """Make `count` hostile calls to a switch process; return how many ended how."""
    with tempfile.TemporaryDirectory() as folder, _switch(Path(folder)) as (port, names):
        caller = Caller(port, random.Random(seed), names)
        for number in range(count):
            caller.call()
            if number % CHECKED == CHECKED - 1:
                caller.check_alive()

        caller.check_alive()

    return {"calls": count, "outcomes": dict(sorted(caller.outcomes.items()))}
