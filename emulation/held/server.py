"""The server of a held emulation's control socket (`emulation.held.client` is its client).

It has no thread of its own: the emulation's event loop calls back when a descriptor is ready, so
that commands, timers and failures never overlap. The socket has mode 0600 in a folder of mode 0700.
"""

import os
import selectors
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from controller.errors import ControllerError
from emulation.errors import EmulationError
from emulation.held.messages import (
    CHUNK_BYTES,
    SOCKET,
    MessageError,
    Request,
    answer_line,
    error_line,
    read_request,
)
from fattree.errors import FabricError

# A handler gets a request and a function that takes its answer, now or later.
Handler: TypeAlias = Callable[[Any, Callable[[Any], None]], None]
Handlers: TypeAlias = Mapping[type[Request[Any]], Handler]
# None of ours is longer than a few hundred bytes.
LONGEST_REQUEST = 1 << 20
SEND_SECONDS = 2.0


class Client:
    """One connection: the bytes of a request that have arrived."""

    __slots__ = ("data", "stream")

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self.data = b""

    def is_open(self) -> bool:
        """Return whether the client is still connected."""
        return self.stream.fileno() >= 0

    def answer(self, value: Any) -> None:
        """Send an answer and close the connection; a client that has gone is no error."""
        self._reply(answer_line(value))

    def refuse(self, reason: str) -> None:
        """Send an error and close the connection."""
        self._reply(error_line(reason))

    def _reply(self, line: bytes) -> None:
        # A client that does not read must not stop the emulation, which has this thread alone.
        with suppress(OSError):
            self.stream.settimeout(SEND_SECONDS)
            self.stream.sendall(line)

        self.stream.close()


class ControlServer:
    """Requests of any number of clients."""

    def __init__(
        self,
        listener: socket.socket,
        selector: selectors.BaseSelector,
        handlers: Handlers,
    ) -> None:
        self._listener = listener
        self._selector = selector
        self._handlers = handlers
        self._requests = {kind.command: kind for kind in handlers}
        self._clients: list[Client] = []
        selector.register(listener, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        stream, _ = self._listener.accept()
        stream.setblocking(False)
        client = Client(stream)
        # Those that have their answer are forgotten now; the others are hung up on at the end.
        self._clients = [*filter(Client.is_open, self._clients), client]
        self._selector.register(stream, selectors.EVENT_READ, lambda: self._read(client))

    def close(self) -> None:
        """Close all connections and the listening socket."""
        self._selector.unregister(self._listener)
        for client in filter(Client.is_open, self._clients):
            if client.stream in self._selector.get_map():
                self._selector.unregister(client.stream)

            client.stream.close()

    def _read(self, client: Client) -> None:
        try:
            chunk = client.stream.recv(CHUNK_BYTES)
        except OSError:
            chunk = b""

        # Bytes beyond the longest request are judged as they stand: they are no JSON.
        client.data += chunk
        if chunk and b"\n" not in chunk and len(client.data) < LONGEST_REQUEST:
            return

        # A handler may keep the client waiting; there is nothing more to be read from it.
        self._selector.unregister(client.stream)
        if chunk:
            self._dispatch(client)
        else:
            client.stream.close()

    def _dispatch(self, client: Client) -> None:
        try:
            request = read_request(client.data.partition(b"\n")[0], self._requests)
            self._handlers[type(request)](request, client.answer)
        except (MessageError, EmulationError, FabricError, ControllerError) as error:
            client.refuse(str(error))
        # A mistake of ours in one command is no reason to take a network down that others use.
        except Exception as error:
            client.refuse(f"this command has failed here, which is a mistake of ours: {error!r}")


@contextmanager
def control_server(
    run_folder: Path, selector: selectors.BaseSelector, handlers: Handlers
) -> Iterator[ControlServer]:
    """Listen on the control socket; callbacks are the selector's data."""
    path = run_folder / SOCKET
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # Made with mode 0600: between a bind and a chmod others could connect.
        old = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(old)

        listener.listen()
        listener.setblocking(False)
        server = ControlServer(listener, selector, handlers)

        try:
            yield server
        finally:
            server.close()
            path.unlink(missing_ok=True)
