import json
import selectors
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import pytest

from emulation.errors import UnsupportedError
from emulation.held import messages
from emulation.held.client import ControlError, ask
from emulation.held.messages import (
    SOCKET,
    GetStatus,
    LinkState,
    ListLinks,
    Request,
    SetLink,
    StartTraffic,
    answer_line,
    read_answer,
    request_line,
)
from emulation.held.server import control_server


@dataclass(frozen=True)
class Double(Request[int]):
    command: ClassVar[str] = "double"
    value: int


@dataclass(frozen=True)
class Refused(Request[str]):
    command: ClassVar[str] = "refuse"


@dataclass(frozen=True)
class Later(Request[str]):
    command: ClassVar[str] = "later"


def double(request, answer):
    answer(2 * request.value)


def refuse(_request, _answer):
    raise UnsupportedError("this cannot be done")


@dataclass(frozen=True)
class Broken(Request[str]):
    command: ClassVar[str] = "break"


def fall(_request, _answer):
    raise ZeroDivisionError("a bug")


@pytest.fixture
def questions(tmp_path):
    """Return a function that asks, while this thread serves."""
    selector = selectors.DefaultSelector()
    with (
        control_server(tmp_path, selector, {Double: double, Refused: refuse, Broken: fall}),
        ThreadPoolExecutor(1) as pool,
    ):

        def question(call, *arguments, **named):
            future = pool.submit(call, *arguments, **named)
            while not future.done():
                for key, _ in selector.select(0.01):
                    key.data()
            return future.result()

        yield question


def raw(path, data):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(data)
        return client.recv(4096).decode()


def test_a_command_gets_its_answer(questions, tmp_path):
    assert questions(ask, Double(21), tmp_path) == 42


def test_a_refusal_is_one_line(questions, tmp_path):
    with pytest.raises(ControlError, match=r"^this cannot be done$"):
        questions(ask, Refused(), tmp_path)


@pytest.mark.parametrize(
    "data", [b"\n", b"[]\n", b"{}\n", b'{"command": "steal"}\n', b'{"command": []}\n', b"\xff\n"]
)
def test_what_is_no_command_is_refused_with_the_commands(questions, tmp_path, data):
    assert "one of break, double, refuse" in questions(raw, tmp_path / SOCKET, data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"command": "double"}', "double: missing 1 required positional argument: 'value'"),
        (b'{"command": "double", "value": "x"}', "double: value: Input should be a valid integer"),
        (b'{"command": "refuse", "x": 1}', "refuse: got an unexpected keyword argument 'x'"),
    ],
)
def test_wrong_arguments_are_refused(questions, tmp_path, data, reason):
    assert json.loads(questions(raw, tmp_path / SOCKET, data + b"\n")) == {"error": reason}


def test_a_mistake_of_ours_in_one_command_ends_that_command_alone(questions, tmp_path):
    with pytest.raises(ControlError, match="a mistake of ours: ZeroDivisionError"):
        questions(ask, Broken(), tmp_path)
    assert questions(ask, Double(21), tmp_path) == 42


def test_a_message_is_one_line_of_json_with_its_fields():
    assert request_line(SetLink("edge0_0-agg0_1", False)) == (
        b'{"command": "link", "name": "edge0_0-agg0_1", "up": false, "wait": true}\n'
    )
    line = answer_line([LinkState("edge0_0-agg0_1", True, 3, rate=0.25)])
    assert line == (
        b'{"answer": [{"link": "edge0_0-agg0_1", "up": true, "lost_to_failure": 3,'
        b' "rate": 0.25}]}\n'
    )
    assert read_answer(ListLinks(), line) == [LinkState("edge0_0-agg0_1", True, 3, rate=0.25)]


def test_a_client_is_not_left_waiting_when_the_emulation_ends(tmp_path):
    with ThreadPoolExecutor(1) as pool, selectors.DefaultSelector() as selector:
        with control_server(tmp_path, selector, {Later: lambda _request, _answer: None}):
            future = pool.submit(ask, Later(), tmp_path)
            for _ in range(2):
                for key, _ in selector.select():
                    key.data()
        with pytest.raises(ControlError, match="ended before it answered"):
            future.result(10)


def test_the_end_of_a_run_is_waited_for_longer_than_any_other_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "ANSWER_SECONDS", 0.2)
    unanswered = []
    handlers = {StartTraffic: lambda _request, answer: unanswered.append(answer)}
    with (
        ThreadPoolExecutor(2) as pool,
        selectors.DefaultSelector() as selector,
        control_server(tmp_path, selector, handlers),
    ):
        patient = pool.submit(ask, StartTraffic(wait=True), tmp_path)
        hasty = pool.submit(ask, StartTraffic(), tmp_path)
        while len(unanswered) < 2 or not hasty.done():
            for key, _ in selector.select(0.01):
                key.data()

        with pytest.raises(ControlError, match="gave no answer in"):
            hasty.result()

        for answer in unanswered:
            answer("complete")

        assert patient.result(10) == "complete"


def test_the_socket_is_private_and_vanishes(tmp_path):
    with selectors.DefaultSelector() as selector, control_server(tmp_path, selector, {}):
        assert stat.S_IMODE((tmp_path / SOCKET).stat().st_mode) == 0o600
    assert not (tmp_path / SOCKET).exists()


def test_without_an_emulation_is_one_line(tmp_path):
    with pytest.raises(ControlError, match="no emulation is held here"):
        ask(GetStatus(), tmp_path)
