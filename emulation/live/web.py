"""The page of `ofan serve`: fixed files, a stream of snapshots, and commands with a token.

Every address begins with a random token; the Host header must name loopback (against rebound
names), an Origin header must be the page's own (against other pages), and commands are JSON by
POST. Nothing of a request becomes a path or a command line.
"""

import asyncio
import hmac
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib import resources
from operator import itemgetter
from typing import Any, NoReturn
from weakref import WeakSet

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.iostream import StreamClosedError
from tornado.web import Application, HTTPError, RequestHandler

from controller.fabric_controller import LinkChange
from emulation.errors import EmulationError, NetworkError
from emulation.held.client import ControlError
from emulation.live.hub import Hub
from emulation.live.model import Snapshot
from emulation.live.picture import picture
from emulation.live.reception import Reception
from emulation.live.source import Source
from emulation.outcomes.changes import Change, sides
from fattree.demand.traffic import flows
from fattree.errors import FabricError
from fattree.experiment.failures import LEAST_SHARE
from fattree.experiment.model import Scenario
from fattree.routes.failures import timeline
from fattree.routes.slow_links import FULL, at_rate

LOOPBACK = "127.0.0.1"
HOST_NAMES = ("127.0.0.1", "localhost")
TOKEN_BYTES = 24
# A command is a line of JSON: longer or slower input is refused.
MOST_BODY_BYTES = 4096
MOST_HEADER_BYTES = 16384
HEADER_SECONDS = 15
BODY_SECONDS = 5
SEND_SECONDS = 10
FAREWELL_SECONDS = 0.2
MOST_VIEWERS = 32
REFUSED = (EmulationError, FabricError, ControlError)

FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "pointing.js": ("pointing.js", "text/javascript; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}

# The page loads no other site, is in no cache and no frame, and sends no address to other pages.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Order(BaseModel):
    """A command as JSON; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LinkOrder(Order):
    """Fail or mend a link."""

    link: str = Field(max_length=60)
    up: bool


class RateOrder(Order):
    """Let a link carry a share of its rate."""

    link: str = Field(max_length=60)
    rate: float = Field(ge=LEAST_SHARE, le=FULL)


class StartOrder(Order):
    """Run the collective with a load balancer."""

    # The name of a user's file can be longer than our names.
    policy: str = Field(max_length=255)


class PaceOrder(Order):
    """Change the speed of virtual time."""

    factor: float = Field(gt=0, le=1000)
    paused: bool


def message_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as the page needs it.

    Links as short lists, in the order of the layout.
    """
    links = [
        (
            link.is_up,
            link.load_up,
            link.load_down,
            link.queue_up,
            link.queue_down,
            link.lost_to_failure,
            link.rate,
        )
        for link in snapshot.links
    ]

    return {
        **asdict(snapshot.header),
        "fabric": snapshot.header.tree.label,
        "time_ps": snapshot.time_ps,
        "cct_ps": snapshot.cct_ps,
        "progress": snapshot.progress,
        "dropped": snapshot.dropped,
        "lost_to_failure": snapshot.lost_to_failure,
        "links": links,
        "hosts": snapshot.hosts,
        "tiers": [asdict(tier) for tier in snapshot.tiers],
        "phases": [asdict(phase) for phase in snapshot.phases],
        "changes": _worded(snapshot.changes),
    }


def planned(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the file's events of links, as the changes of snapshots."""
    line = timeline(scenario, flows(scenario))
    events = [
        *((dated.time_ps, LinkChange(down=dated.down, up=dated.up)) for dated in line.changes),
        *((dated.time_ps, LinkChange(paced=dated.links)) for dated in line.rates),
    ]

    return _worded(
        change
        for time_ps, event in sorted(events, key=itemgetter(0))
        for change in sides(scenario.tree, event, time_ps)
    )


def _worded(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [asdict(change) | {"word": change.word} for change in changes]


def is_own(request: HTTPServerRequest) -> bool:
    """Return whether a request names this machine as its host, and no other page as its origin."""
    # A page of another site sends its own host name, also if that name was rebound to 127.0.0.1; a
    # page that just posts here sends its origin.
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    return host.rpartition(":")[0] in HOST_NAMES and (origin is None or origin == f"http://{host}")


class Door(RequestHandler):
    """Admits requests with the token, from this machine's own pages.

    Everything else is refused before it is read.
    """

    def initialize(self, hub: Hub, token: str) -> None:
        """Take the application's hub and token."""
        self.hub = hub
        self._token = token

    def set_default_headers(self) -> None:
        """Set the headers of every answer."""
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuse strangers."""
        # In constant time: the time of a refusal must not depend on how much of the token is right.
        token = self.request.path.partition("/")[2].partition("/")[0]
        if not (is_own(self.request) and hmac.compare_digest(token.encode(), self._token.encode())):
            raise HTTPError(403, reason="Forbidden")

        connection = self.request.connection
        assert isinstance(connection, HTTP1Connection)
        self.settings["guests"].add(connection.stream)

    def write_error(self, status_code: int, **_: Any) -> None:
        """Answer with one line."""
        self.finish({"error": self._reason})

    def fail(self, status: int, reason: str) -> None:
        """Answer with an error of ours."""
        self.set_status(status)
        self.finish({"error": reason})


class Files(Door):
    """The page's files, by their fixed names."""

    def get(self, name: str) -> None:
        """Send a file."""
        file, kind = FILES[name]
        self.set_header("Content-Type", kind)
        self.finish((resources.files("emulation.live") / "page" / file).read_bytes())


class Unknown(Door):
    """Everywhere else."""

    def get(self) -> NoReturn:
        """Refuse."""
        raise HTTPError(404)


class Layout(Door):
    """The constants of a page: coordinates of nodes and links, load balancers, events of links."""

    def get(self) -> None:
        """Send it."""
        source = self.hub.source
        policies = list(source.policies.items())
        scenario = source.scenario
        self.finish({"policies": policies, "planned": planned(scenario), **picture(scenario.tree)})


class Events(Door):
    """The stream of snapshots.

    A slow viewer misses some, and a viewer that takes none is disconnected.
    """

    async def get(self) -> None:
        """Send until the viewer or the source goes."""
        if self.hub.viewers >= MOST_VIEWERS:
            self.fail(503, f"{MOST_VIEWERS} viewers look already")
            return

        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        self.hub.viewers += 1
        try:
            await self._stream()
        # The viewer has gone, or takes no bytes: no answer reaches it. Cancelled: the server ends,
        # and Tornado would try to send an error page into the stream, and complain that it cannot.
        except (StreamClosedError, asyncio.TimeoutError, asyncio.CancelledError):
            self.detach().close()
        finally:
            self.hub.viewers -= 1

    async def _stream(self) -> None:
        # Curves begin with the snapshots that earlier viewers have seen.
        await self._send("history", self.hub.history)
        version = 0
        while True:
            version = await self.hub.next(version)
            if self.hub.ended is not None:
                await self._send("ended", self.hub.ended)
                return

            if self.hub.latest is not None:
                await self._send("snapshot", message_of(self.hub.latest))

    async def _send(self, event: str, data: Any) -> None:
        self.write(f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n")
        await asyncio.wait_for(self.flush(), SEND_SECONDS)


class Command(Door):
    """A command: its JSON is checked, then the source carries it out or refuses with a reason."""

    order: type[Order]

    async def obey(self, order: Any) -> str:
        """Carry a checked order out; return a sentence about it."""
        raise NotImplementedError

    async def post(self) -> None:
        """Check, obey, answer."""
        # A form of another page can post, but not as application/json without asking first (CORS).
        if self.request.headers.get("Content-Type", "").partition(";")[0] != "application/json":
            self.fail(415, "commands are application/json")
            return

        try:
            self.finish(
                {"message": await self.obey(self.order.model_validate_json(self.request.body))}
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            self.fail(400, f"{'.'.join(map(str, first['loc'])) or 'command'}: {first['msg']}")
        except REFUSED as error:
            self.fail(409, str(error))


class LinkCommand(Command):
    """Fail or mend a link."""

    order = LinkOrder

    async def obey(self, order: LinkOrder) -> str:
        """Do so at the present moment."""
        await self.hub.call(self.hub.source.set_link, order.link, order.up)
        return f"{order.link} {'is mended' if order.up else 'has failed'}"


class RateCommand(Command):
    """Slow a link down, or give it its rate back."""

    order = RateOrder

    async def obey(self, order: RateOrder) -> str:
        """Do so at the present moment."""
        await self.hub.call(self.hub.source.set_rate, order.link, order.rate)
        return f"{order.link} is {at_rate(order.rate)}"


class StartCommand(Command):
    """Run the collective."""

    order = StartOrder

    async def obey(self, order: StartOrder) -> str:
        """Start it, again."""
        await self.hub.call(self.hub.source.start, order.policy)
        return f"{self.hub.source.policies[order.policy]} has started"


class PaceCommand(Command):
    """Change the speed of virtual time."""

    order = PaceOrder

    async def obey(self, order: PaceOrder) -> str:
        """Set it."""
        await self.hub.call(self.hub.source.set_pace, order.factor, order.paused)
        return "paused" if order.paused else f"{order.factor:g} times the first speed"


def application(hub: Hub, token: str) -> Application:
    """Return the web application; unknown paths get the same refusals."""
    arguments: dict[str, Any] = {"hub": hub, "token": token}
    names = "|".join(name.replace(".", r"\.") for name in FILES)
    routes: list[Any] = [
        (rf"/[^/]*/({names})", Files, arguments),
        (r"/[^/]*/layout", Layout, arguments),
        (r"/[^/]*/events", Events, arguments),
        (r"/[^/]*/link", LinkCommand, arguments),
        (r"/[^/]*/rate", RateCommand, arguments),
        (r"/[^/]*/start", StartCommand, arguments),
        (r"/[^/]*/pace", PaceCommand, arguments),
    ]

    # `guests`: the connections that have shown the token.
    return Application(
        routes,
        default_handler_class=Unknown,
        default_handler_args=arguments,
        log_function=lambda _: None,
        guests=WeakSet(),
    )


def new_token() -> str:
    """Return a token that only the user gets."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def listen(application: Application, port: int = 0) -> tuple[HTTPServer, int]:
    """Serve on loopback, by default on a free port; return the server and its port.

    Raises NetworkError.
    """
    try:
        listener = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise NetworkError(
            f"cannot listen on {LOOPBACK}:{port}: {os.strerror(error.errno or 0)}"
        ) from None

    listener.setblocking(False)
    server = Reception(
        application,
        max_body_size=MOST_BODY_BYTES,
        max_header_size=MOST_HEADER_BYTES,
        idle_connection_timeout=HEADER_SECONDS,
        body_timeout=BODY_SECONDS,
    )

    server.add_socket(listener)
    return server, listener.getsockname()[1]


async def serve(source: Source, port: int, on_ready: Callable[[str], object]) -> str | None:
    """Serve a source's page until it has ended (return why) or this is cancelled.

    Tell `on_ready` its address.
    """
    hub = Hub(source)
    token = new_token()
    server, port = listen(application(hub, token), port)
    on_ready(f"http://{LOOPBACK}:{port}/{token}/")

    try:
        await hub.run()
        return hub.ended
    finally:
        server.stop()
        await hub.end("the server has been stopped")
        # Time for the streams to tell their viewers why they end.
        await asyncio.sleep(FAREWELL_SECONDS)
        hub.close()
        await server.close_all_connections()
