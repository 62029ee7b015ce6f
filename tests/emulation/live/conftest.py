"""A page that is really served, over a short virtual run."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import pytest

from emulation.live.hub import Hub
from emulation.live.virtual_source import VirtualSource
from emulation.live.web import application, listen, new_token
from fattree.experiment.model import Collective, Fabric, Scenario


@dataclass(frozen=True, slots=True)
class Served:
    """A running server, as its clients see it."""

    port: int
    token: str
    hub: Hub

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/{self.token}/"

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request as it stands; header names take _ for -."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.putrequest(
                method, path, skip_host="Host" in fields, skip_accept_encoding=True
            )
            for name, value in {"Content-Length": str(len(body or b"")), **fields}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, name: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Get an address of the page."""
        return self.ask("GET", f"/{self.token}/{name}", None, **headers)

    def post(self, name: str, command: Any, **headers: str) -> tuple[int, dict[str, Any]]:
        """Send a command as the page does."""
        fields = {"Content_Type": "application/json", "Origin": f"http://{self.host}", **headers}
        status, _, body = self.ask(
            "POST", f"/{self.token}/{name}", json.dumps(command).encode(), **fields
        )
        return status, json.loads(body)


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., Served]]:
    """Return a function that serves a scenario; everything ends with the module."""
    loop, stops = asyncio.new_event_loop(), []
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin(scenario: Scenario, speed: float) -> Served:
        hub, token = Hub(VirtualSource(scenario, speed)), new_token()
        server, port = listen(application(hub, token))
        task = asyncio.ensure_future(hub.run())

        async def stop() -> None:
            task.cancel()
            server.stop()
            await server.close_all_connections()
            await asyncio.gather(task, return_exceptions=True)
            hub.close()

        stops.append(stop)
        return Served(port, token, hub)

    def begun(scenario: Scenario | None = None, speed: float = 1e-7) -> Served:
        usual = Scenario(fabric=Fabric(k=4), collective=Collective(message_bytes=64 * 4096))
        return asyncio.run_coroutine_threadsafe(begin(scenario or usual, speed), loop).result(60)

    yield begun
    for stop in stops:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(scope="module")
def served(serve: Callable[..., Served]) -> Served:
    return serve()
