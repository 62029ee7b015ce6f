"""The connections that the page of `ofan serve` takes, and those that it turns away."""

import logging
import resource
import time
from typing import Any
from weakref import WeakSet

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

# A browser opens six. A connection without the token is closed after `web.HEADER_SECONDS`, and
# earlier where other connections need its place.
MOST_CONNECTIONS = 128
# The least time between two messages about connections that were turned away.
NEWS_SECONDS = 60


class Reception(HTTPServer):
    """A server that closes connections beyond its limit, those without a token first.

    Without a limit any user of this machine could open all descriptors that this process may have,
    and then every attempt to accept a connection is an error. If the newest connections were
    closed instead, silent connections could keep the page's owner out.
    """

    def initialize(self, *arguments: Any, **settings: Any) -> None:
        """Begin without connections."""
        super().initialize(*arguments, **settings)
        self._guests: WeakSet[IOStream] = arguments[0].settings["guests"]
        # The oldest first.
        self._streams: list[IOStream] = []
        self._turned_away = 0
        self._said_s = float("-inf")

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Take a connection; where there are too many, close the oldest one without a token."""
        self._streams = [opened for opened in self._streams if not opened.closed()]
        if len(self._streams) >= most_connections():
            strangers = (opened for opened in self._streams if opened not in self._guests)
            oldest = next(strangers, stream)
            oldest.close()
            self._turn_away()

        if not stream.closed():
            self._streams.append(stream)
            super().handle_stream(stream, address)

    def _turn_away(self) -> None:
        """Count a connection that is closed, and report the count once in a while."""
        self._turned_away += 1
        now_s = time.monotonic()
        if now_s >= self._said_s + NEWS_SECONDS:
            logging.getLogger(__name__).warning(
                "%d connections turned away: there are %d already",
                self._turned_away,
                len(self._streams),
            )
            self._said_s = now_s
            self._turned_away = 0


def most_connections() -> int:
    """Return how many connections the page takes: descriptors are left for everything else."""
    return min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
