"""The reports of switches' planners to the fabric that observes them, over a Unix socket.

Each report is a JSON object, and each has `at_ns`, the CLOCK_MONOTONIC instant of its sending. The
first report of a planner has its `switch`; an empty report each half second is a sign of life.
"""

import json
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias

SIGN_SECONDS = 0.5
SILENT_SECONDS = 2.0
NS_PER_S = 10**9
MESSAGE_BYTES = 1 << 20
Report: TypeAlias = dict[str, Any]


class Reporter:
    """The planner's end. It never waits for the fabric: reports that find no room stay here."""

    def __init__(self, path: Path, switch: int) -> None:
        # Packets keep the bounds of messages.
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.connect(str(path))
        self._channel.setblocking(False)
        self._waiting: deque[bytes] = deque()
        self.report({"switch": switch})

    def report(self, report: Report) -> None:
        """Send a report, after all earlier ones."""
        self._waiting.append(_encoded(report))
        self.flush()

    def flush(self) -> None:
        """Send the reports that found no room earlier."""
        with suppress(BlockingIOError):
            while self._waiting:
                self._channel.send(self._waiting[0])
                self._waiting.popleft()

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

    def show_life(self) -> None:
        """Let a thread give a sign of life every half second from now on."""
        Thread(target=self._show_life, daemon=True).start()

    def _show_life(self) -> None:
        # A thread of its own: the planner may wait for a frozen switch. A stopped process has none.
        with suppress(OSError):
            while True:
                with suppress(BlockingIOError):
                    self._channel.send(_encoded({}))

                time.sleep(SIGN_SECONDS)


class Reports:
    """The fabric's end, for all planners. Readable when there is something to `read`."""

    def __init__(self, path: Path) -> None:
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server.bind(str(path))
        self._server.listen(socket.SOMAXCONN)
        self._server.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._switch_of: dict[socket.socket, int] = {}
        self._heard_ns: dict[int, int] = {}

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        # Linux's selectors are descriptors themselves, readable when their own are.
        return self._selector.fileno()

    def close(self) -> None:
        """Stop listening."""
        for key in list(self._selector.get_map().values()):
            self._hang_up(key.fileobj)  # type: ignore[arg-type]

        self._selector.close()

    def read(self) -> Iterator[tuple[int, Report]]:
        """Yield (switch, report) of the reports that have come, without waiting."""
        while ready := self._selector.select(0):
            for key, _ in ready:
                if key.fileobj is self._server:
                    channel, _ = self._server.accept()
                    self._selector.register(channel, selectors.EVENT_READ)
                else:
                    yield from self._receive(key.fileobj)  # type: ignore[arg-type]

    def _receive(self, channel: socket.socket) -> Iterator[tuple[int, Report]]:
        try:
            data = channel.recv(MESSAGE_BYTES)
        except ConnectionError:
            data = b""

        if not data:
            self._hang_up(channel)
            return

        report = json.loads(data)
        switch = self._switch_of.setdefault(channel, report.get("switch", -1))
        self._heard_ns[switch] = report["at_ns"]
        yield switch, report

    def _hang_up(self, channel: socket.socket) -> None:
        self._selector.unregister(channel)
        channel.close()
        # The end of a process is reported by its parent: it does not count as silent.
        self._heard_ns.pop(self._switch_of.pop(channel, -1), None)

    def silent(self) -> set[int]:
        """Return the switches of planners that have given no sign of life for SILENT_SECONDS.

        To be called after `read`: the signs of a while may wait there.
        """
        limit_ns = time.monotonic_ns() - int(SILENT_SECONDS * NS_PER_S)
        return {switch for switch, heard_ns in self._heard_ns.items() if heard_ns < limit_ns}


def _encoded(report: Report) -> bytes:
    return json.dumps({**report, "at_ns": time.monotonic_ns()}).encode()
