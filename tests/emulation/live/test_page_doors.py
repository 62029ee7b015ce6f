"""The doors of the page: who has the token, on this machine, from the page itself, comes in.

No other client does.
"""

import json
import re
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from importlib import resources
from typing import Any

import pytest

from emulation.errors import NetworkError
from emulation.live import reception, web
from tests.emulation.live.conftest import Served

LINK, OTHER_LINK = "agg0_0-core0_0", "agg0_0-core0_1"
FILES = ("", "page.js", "pointing.js", "page.css", "icon.svg")


def failed(served: Served) -> bool:
    source: Any = served.hub.source
    return LINK in source.snapshot().failed


@pytest.mark.parametrize("name", [*FILES, "layout"])
def test_whoever_has_the_token_gets_the_page(served: Served, name: str) -> None:
    status, headers, body = served.get(name)
    assert (status, bool(body)) == (200, True)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Cache-Control"] == "no-store"
    assert "Server" not in headers


@pytest.mark.parametrize("name", [*FILES, "layout", "events", "nothing"])
@pytest.mark.parametrize("token", ["", "x", "{token}x", "{short}", "../{token}", "%00"])
def test_without_the_token_everything_is_forbidden(served: Served, name: str, token: str) -> None:
    shown_token = token.format(token=served.token, short=served.token[:-1])
    status, _, body = served.ask("GET", f"/{shown_token}/{name}")
    assert (status, body) == (403, b'{"error": "Forbidden"}')


def test_the_bare_address_is_forbidden(served: Served) -> None:
    assert [
        served.ask("GET", path)[0] for path in ("/", "/page.html", "//", "/?token=" + served.token)
    ] == [403] * 4


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "", "0.0.0.0:{port}"],
)
def test_a_foreign_host_name_is_refused(served: Served, host: str) -> None:
    assert served.get(Host=host.format(port=served.port))[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "localhost:1234"])
def test_loopbacks_names_are_welcome(served: Served, host: str) -> None:
    assert served.get(Host=host.format(port=served.port))[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1",
        "https://127.0.0.1:{port}",
        "http://localhost:{port}",
    ],
)
def test_another_pages_requests_are_refused(served: Served, origin: str) -> None:
    foreign = origin.format(port=served.port)
    assert served.get("layout", Origin=foreign)[0] == 403
    assert served.post("link", {"link": LINK, "up": False}, Origin=foreign)[0] == 403
    assert not failed(served)


def test_a_command_needs_the_token(served: Served) -> None:
    body = json.dumps({"link": LINK, "up": False}).encode()
    for path in ("/link", "//link", "/wrong/link"):
        assert served.ask("POST", path, body, Content_Type="application/json")[0] == 403
    assert not failed(served)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_could_send_is_no_command(served: Served, kind: str) -> None:
    assert served.post("link", {"link": LINK, "up": False}, Content_Type=kind)[0] in (400, 415)
    assert not failed(served)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("link", {"link": LINK}),
        ("link", {"link": LINK, "up": "no"}),
        ("link", {"link": LINK, "up": False, "shell": "rm"}),
        ("link", {"link": "a" * 100, "up": False}),
        ("link", [LINK, False]),
        ("rate", {"link": LINK, "rate": 0}),
        ("rate", {"link": LINK, "rate": 1.5}),
        ("start", {"policy": None}),
        ("pace", {"factor": -1, "paused": False}),
        ("pace", {"factor": float("nan"), "paused": False}),
    ],
)
def test_a_malformed_command_is_one_line(served: Served, name: str, command: Any) -> None:
    status, answer = served.post(name, command)
    assert status == 400
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"null", b'{"link": "\\u0000", "up": true}']
)
def test_what_is_no_json_is_one_line(served: Served, body: bytes) -> None:
    status, _, answer = served.ask(
        "POST", f"/{served.token}/link", body, Content_Type="application/json"
    )
    assert status in (400, 409)
    assert json.loads(answer)["error"]


@pytest.mark.parametrize(
    ("name", "command", "message"),
    [
        ("link", {"link": "$(reboot)-core0_0", "up": False}, "not a switch's name"),
        ("link", {"link": LINK, "up": True}, "is up already"),
        ("rate", {"link": LINK, "rate": 1}, "is at its full rate already"),
        ("start", {"policy": "../ofan"}, "no load balancer"),
        ("pace", {"factor": 999.0, "paused": False}, "the speed can be"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    served: Served, name: str, command: Any, message: str
) -> None:
    status, answer = served.post(name, command)
    assert status == 409
    assert message in answer["error"]


@pytest.mark.parametrize(
    "path",
    [
        "../../web.py",
        "..%2f..%2fweb.py",
        "%2e%2e/web.py",
        "page/page.js",
        "....//page.js",
        "/etc/passwd",
        "page.js/..",
        "page.js%00",
        "hub.py",
    ],
)
def test_a_path_leads_nowhere_but_to_the_pages_files(served: Served, path: str) -> None:
    status, _, body = served.get(path)
    assert status in (403, 404)
    assert b"import" not in body


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("GET", "link"),
        ("PUT", "link"),
        ("DELETE", "link"),
        ("POST", ""),
        ("POST", "events"),
        ("HEAD", ""),
        ("OPTIONS", "link"),
        ("PATCH", "x"),
    ],
)
def test_other_methods_are_not_allowed(served: Served, method: str, name: str) -> None:
    status, headers, _ = served.ask(method, f"/{served.token}/{name}")
    assert status == 405
    assert "Access-Control-Allow-Origin" not in headers


def raw(served: Served, data: bytes) -> bytes:
    """Return the server's answer to some bytes, up to its hanging up."""
    answer = b""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as client:
        client.sendall(data)
        while chunk := client.recv(1 << 16):
            answer += chunk
    return answer


def head(served: Served, *lines: str) -> bytes:
    first = (
        f"POST /{served.token}/link HTTP/1.1",
        f"Host: {served.host}",
        "Content-Type: application/json",
        *lines,
    )
    return ("\r\n".join(first) + "\r\n\r\n").encode()


@pytest.mark.parametrize("length", ["10000000", "99999999999999999999", "-1", "x"])
def test_a_huge_or_impossible_body_is_refused_unread(served: Served, length: str) -> None:
    assert b"400 Bad Request" in raw(served, head(served, f"Content-Length: {length}"))
    assert served.get()[0] == 200


def test_an_endless_body_in_chunks_is_cut_off(served: Served) -> None:
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    answer = raw(served, head(served, "Transfer-Encoding: chunked") + 3 * chunk)
    assert b"200 OK" not in answer
    assert served.get()[0] == 200


def test_huge_headers_are_refused(served: Served) -> None:
    answer = raw(served, head(served, "X: " + "y" * 40_000))
    assert b"200 OK" not in answer
    assert served.get()[0] == 200


@pytest.mark.parametrize("head", ["GET", "POST /x HTTP/1.1\r\nHost: 127.0.0.1", "\x16\x03\x01\x02"])
def test_a_slow_client_holds_up_nobody_and_is_let_go(
    serve: Callable[..., Served], head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "HEADER_SECONDS", 0.5)
    hasty = serve()
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=20) as slow:
        slow.sendall(head.encode("latin-1"))
        assert hasty.get()[0] == 200
        assert slow.recv(1 << 10) == b""


def test_a_body_that_never_comes_is_not_waited_for(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "BODY_SECONDS", 0.5)
    hasty = serve()
    assert b"200 OK" not in raw(hasty, head(hasty, "Content-Length: 30"))


def test_viewers_beyond_the_limit_are_sent_away(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "MOST_VIEWERS", 0)
    status, _, body = served.get("events")
    assert (status, json.loads(body)) == (503, {"error": "0 viewers look already"})


def test_the_server_listens_on_loopback_only(served: Served) -> None:
    for address in ("127.0.0.2", "::1"):
        with pytest.raises(OSError, match=r"refused|Cannot assign"):
            socket.create_connection((address, served.port), timeout=5)


def test_a_port_that_is_taken_is_one_line(served: Served) -> None:
    with pytest.raises(
        NetworkError, match=f"cannot listen on 127.0.0.1:{served.port}: Address already in use"
    ):
        web.listen(web.application(served.hub, "x"), served.port)


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {web.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{32}", token) for token in tokens)


def test_the_page_asks_nobody_else_for_anything() -> None:
    folder = resources.files("emulation.live") / "page"
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8")
        addresses = set(re.findall(r"""["'(](?:https?:)?//[^"')\s]+""", text))
        assert {address.strip("\"'(") for address in addresses} <= {"http://www.w3.org/2000/svg"}
        assert "innerHTML" not in text
        assert "eval(" not in text


def test_a_viewer_sees_what_is_clicked(serve: Callable[..., Served]) -> None:
    viewed = serve()
    with socket.create_connection(("127.0.0.1", viewed.port), timeout=30) as viewer:
        viewer.sendall(
            f"GET /{viewed.token}/events HTTP/1.1\r\nHost: {viewed.host}\r\n\r\n".encode()
        )
        stream = viewer.makefile("rb")
        events = (json.loads(line[6:]) for line in stream if line.startswith(b"data: "))
        assert next(events) == []
        first = next(events)
        assert (first["links"][16][0], first["state"], first["changes"]) == (True, "running", [])
        assert viewed.post("link", {"link": LINK, "up": False}) == (
            200,
            {"message": f"{LINK} has failed"},
        )
        changed = next(event for event in events if event["changes"])
        assert changed["links"][16][0] is False
        assert viewed.post("rate", {"link": OTHER_LINK, "rate": 0.25}) == (
            200,
            {"message": f"{OTHER_LINK} is at 25 % of its rate"},
        )
        slowed = next(event for event in events if event["links"][17][6] == 0.25)
        assert slowed["changes"][-1]["word"] == "at 25 % of its rate"
        assert viewed.post("start", {"policy": "jsq"}) == (200, {"message": "JSQ has started"})
        assert (
            next(event for event in events if event["policy"] == "jsq")["time_ps"]
            < changed["time_ps"]
        )
    assert viewed.post("pace", {"factor": 0.5, "paused": True}) == (200, {"message": "paused"})


def spoken(served: Served, request: bytes) -> bytes:
    """Return the server's answer to bytes, until it hangs up."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionError):
            while chunk := client.recv(1 << 16):
                answer += chunk
        return answer


@pytest.mark.parametrize(
    "line",
    [
        b"GET",
        b"GET /",
        b"GET / HTTP/1.1 x",
        b"GET  HTTP/1.1",
        b"GET nothing HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"GET http://[ HTTP/1.1",
        b"GET http://[::1/x HTTP/1.1",
        b"GET /%zz HTTP/1.1",
        b"GET /\xff\xfe HTTP/1.1",
        b"GET /\x00 HTTP/1.1",
        b"GET / HTTP/9.9",
        b"GET / HTTP/1.1\r\nHost: [\r\nContent-Length: x",
        b"GET / HTTP/1.1\r\nno colon",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_a_malformed_request_is_refused_in_silence(
    served: Served, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = spoken(served, line + b"\r\n\r\n")
    assert answer == b"" or answer.split()[1] in (b"400", b"403", b"405"), answer
    assert [record.getMessage() for record in caplog.records if record.levelno >= 30] == []
    assert served.get()[0] == 200


def test_too_many_connections_are_turned_away_with_one_line(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    clients = [
        socket.create_connection(("127.0.0.1", served.port), timeout=20)
        for _ in range(3 * reception.MOST_CONNECTIONS)
    ]
    try:
        # Those that were turned away read their end; the last ones are still waited for.
        assert clients[0].recv(1) == b""
        said = [record.getMessage() for record in caplog.records if record.levelno >= 30]
        assert said == [
            f"1 connections turned away: there are {reception.MOST_CONNECTIONS} already"
        ]
    finally:
        for client in clients:
            client.close()
    status = 0
    while status != 200:
        with suppress(ConnectionError):
            status = served.get()[0]


def test_silent_strangers_keep_nobody_out(served: Served) -> None:
    limit = reception.most_connections()
    with ExitStack() as stack:
        guest = stack.enter_context(closing(HTTPConnection("127.0.0.1", served.port, timeout=20)))
        guest.request("GET", f"/{served.token}/layout")
        assert guest.getresponse().read()
        strangers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=20))
            for _ in range(limit)
        ]
        # Wrong tokens make no client a guest.
        strangers[1].sendall(b"GET /wrong/ HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
        assert b"403" in strangers[1].recv(1 << 16)

        assert served.get()[0] == 200
        gone = [stranger.recv(1 << 16) for stranger in strangers[:2]]
        assert gone == [b"", b""]
        strangers[2].setblocking(False)
        with pytest.raises(BlockingIOError):
            strangers[2].recv(1)
        # A client that has shown the token stays, however old the connection is.
        guest.request("GET", f"/{served.token}/layout")
        assert guest.getresponse().status == 200
