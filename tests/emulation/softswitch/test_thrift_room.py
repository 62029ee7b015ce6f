"""Connections that a full runtime API closes: the longest silent, none that has just called."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from ofan_p4.softswitch.daemon.thrift import server as module
from ofan_p4.softswitch.daemon.thrift.server import ThriftServer

# The first byte of a call; the server waits for the rest.
BEGUN = b"\x80"


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def server(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThriftServer]:
    """A server with room for two."""
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(module, "calls_of", lambda *_: [])
    nobody: Any = SimpleNamespace()
    thrift = ThriftServer(nobody, nobody, 0)
    yield thrift
    thrift.close()


@pytest.fixture
def clients(server: ThriftServer, clock: Clock) -> Iterator[list[socket.socket]]:
    """Two connections, a tenth of a second apart."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(server, number, clock)) for number in (1, 2)]


def connected(server: ThriftServer, number: int, clock: Clock) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), 10)
    until(lambda: len(server._called) == number)
    clock.now += 0.1
    return client


def until(is_so: Any) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_open(client: socket.socket) -> bool:
    client.settimeout(0.3)
    try:
        return client.recv(1) != b""
    except TimeoutError:
        return True


def test_who_has_just_called_is_not_hung_up_on(
    server: ThriftServer, clock: Clock, clients: list[socket.socket]
) -> None:
    clock.now += 0.5
    with socket.create_connection(("127.0.0.1", server.port), 10) as newcomer:
        assert not is_open(newcomer)
    assert [is_open(client) for client in clients] == [True, True]


def test_the_longest_silent_makes_room(
    server: ThriftServer, clock: Clock, clients: list[socket.socket]
) -> None:
    clock.now += 5
    with socket.create_connection(("127.0.0.1", server.port), 10) as newcomer:
        assert is_open(newcomer)
    assert [is_open(client) for client in clients] == [False, True]


def test_a_call_counts_and_not_the_connection(
    server: ThriftServer, clock: Clock, clients: list[socket.socket]
) -> None:
    clock.now += 5
    clients[0].sendall(BEGUN)
    until(lambda: clock.now in server._called.values())
    with socket.create_connection(("127.0.0.1", server.port), 10) as newcomer:
        assert is_open(newcomer)
    assert [is_open(client) for client in clients] == [True, False]
