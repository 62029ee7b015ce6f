"""The runtime API's server: a thread per connection; the dataplane's thread runs the calls."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from io import BufferedReader
from typing import Any, cast

from ofan_p4.softswitch.base.errors import SoftswitchError
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.dataplane import Dataplane
from ofan_p4.softswitch.daemon.thrift.array_calls import (
    CounterCalls,
    DirectCalls,
    MeterCalls,
    RegisterCalls,
)
from ofan_p4.softswitch.daemon.thrift.crc_calls import CrcCalls
from ofan_p4.softswitch.daemon.thrift.messages import CallError, Part, Refusal
from ofan_p4.softswitch.daemon.thrift.profile_calls import ProfileCalls
from ofan_p4.softswitch.daemon.thrift.replication_calls import (
    Engine,
    MirroringCalls,
    MulticastCalls,
)
from ofan_p4.softswitch.daemon.thrift.rpc import Call, serve_one
from ofan_p4.softswitch.daemon.thrift.state import Runtime
from ofan_p4.softswitch.daemon.thrift.switch_calls import ManagementCalls, QueueCalls
from ofan_p4.softswitch.daemon.thrift.table_calls import IndirectCalls, TableCalls
from ofan_p4.softswitch.daemon.thrift.wire import Reader, WireError

# Any user of this machine may set tables, and no other machine.
HOST = "127.0.0.1"
MOST_CONNECTIONS = 256
# Of a call, which has names and a few bytes; how long it may take to come, or its answer to go.
MOST_CALL_BYTES = 1 << 20
CALL_SECONDS = 10.0
# A connection without a call for so long makes room for a new connection, the oldest first.
IDLE_SECONDS = 1.0


class ThriftError(SoftswitchError):
    """The server cannot listen."""


def calls_of(switch: Switch, dataplane: Dataplane, port: int) -> list[Part]:
    """Return the parts that answer the methods of all services."""
    runtime = Runtime(switch)
    engine = Engine(runtime)
    return [
        TableCalls(runtime),
        IndirectCalls(runtime),
        DirectCalls(runtime),
        ProfileCalls(runtime),
        CounterCalls(runtime),
        MeterCalls(runtime),
        RegisterCalls(runtime),
        CrcCalls(runtime),
        ManagementCalls(runtime, dataplane, port),
        MulticastCalls(engine),
        MirroringCalls(engine),
        QueueCalls(runtime, dataplane),
    ]


class ThriftServer(socketserver.ThreadingTCPServer):
    """Serves the runtime API on a port of this machine until `close`."""

    allow_reuse_address = True
    daemon_threads = True
    # With socketserver's own 5, every seventh of a crowd waits a second.
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, switch: Switch, dataplane: Dataplane, port: int) -> None:
        try:
            super().__init__((HOST, port), _Connection)
        except OSError as error:
            text = error.strerror or str(error)
            raise ThriftError(f"cannot listen on {HOST}:{port}: {text}") from None

        self.port: int = self.server_address[1]
        self._dataplane = dataplane
        self._calls = calls_of(switch, dataplane, self.port)
        self._places = threading.Semaphore(MOST_CONNECTIONS)
        # When each connection has called last; the server's own thread asks, theirs tell.
        self._called: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, name="thrift", daemon=True).start()

    def run(self, call: Call) -> Any:
        """Have the dataplane's thread run a call between packets; its result."""
        part = next(item for item in self._calls if type(item) is call.method.part)
        action = partial(getattr(part, call.method.name), **call.arguments)
        future: Future[Any] = Future()
        self._dataplane.submit(_answer(action, future))
        try:
            return future.result()
        except (CallError, Refusal):
            raise
        except Exception as error:
            # Whatever it is, the client gets to know, and other calls go on.
            raise CallError(f"{call.method.name}: internal error: {error!r}") from error

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Take a connection if there are not too many, or if an idle connection can end."""
        if self._places.acquire(blocking=False):
            return True

        with self._lock:
            oldest = min(self._called, key=self._called.__getitem__, default=None)
            if oldest is None or time.monotonic() - self._called[oldest] < IDLE_SECONDS:
                return False

            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)

        return self._places.acquire(timeout=IDLE_SECONDS)

    def called(self, connection: socket.socket) -> None:
        """Note that there is a call, or a connection."""
        with self._lock:
            self._called[connection] = time.monotonic()

    def ended(self, connection: socket.socket) -> None:
        """Make room for another connection."""
        with self._lock:
            self._called.pop(connection, None)

        self._places.release()

    def close(self) -> None:
        """Take no more connections; those that are open end with the process."""
        self.shutdown()
        self.server_close()


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Answer calls until the client leaves, or sends something that is no call."""
        server = cast(ThriftServer, self.server)
        stream = cast(BufferedReader, self.rfile)
        reader = Reader(stream)
        try:
            server.called(self.connection)
            # Until a call begins there is time: somebody may be typing it.
            while stream.peek(1):
                server.called(self.connection)
                self.connection.settimeout(CALL_SECONDS)
                reader.expect(MOST_CALL_BYTES, CALL_SECONDS)
                self.wfile.write(serve_one(reader, server.run))
                self.connection.settimeout(None)
        except (EOFError, OSError, WireError):
            return
        finally:
            server.ended(self.connection)


def _answer(action: Any, future: Future[Any]) -> Iterator[None]:
    """Run a call and hand its result or exception to the thread that waits for it."""
    try:
        future.set_result(action())
    except Exception as error:
        future.set_exception(error)

    yield
