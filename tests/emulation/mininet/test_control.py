import selectors
import socket
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from emulation.errors import UnsupportedError
from emulation.held.client import SOCKET, ControlError, ask
from emulation.held.server import control_server


def double(answer, value):
    answer(2 * value)


def refuse(answer):
    raise UnsupportedError("this cannot be done")


@pytest.fixture
def questions(tmp_path):
    """Return a function that asks, while this thread serves."""
    selector = selectors.DefaultSelector()
    with (
        control_server(tmp_path, selector, {"double": double, "refuse": refuse}),
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
    assert questions(ask, "double", tmp_path, value=21) == 42


def test_a_refusal_is_one_line(questions, tmp_path):
    with pytest.raises(ControlError, match=r"^this cannot be done$"):
        questions(ask, "refuse", tmp_path)


@pytest.mark.parametrize(
    "data", [b"\n", b"[]\n", b"{}\n", b'{"command": "steal"}\n', b'{"command": []}\n', b"\xff\n"]
)
def test_what_is_no_command_is_refused_with_the_commands(questions, tmp_path, data):
    assert "one of double, refuse" in questions(raw, tmp_path / SOCKET, data)


def test_wrong_arguments_are_refused(questions, tmp_path):
    with pytest.raises(
        ControlError, match="double: missing 1 required positional argument: 'value'"
    ):
        questions(ask, "double", tmp_path)


def test_a_client_is_not_left_waiting_when_the_emulation_ends(tmp_path):
    with ThreadPoolExecutor(1) as pool, selectors.DefaultSelector() as selector:
        with control_server(tmp_path, selector, {"later": lambda _answer: None}):
            future = pool.submit(ask, "later", tmp_path)
            for _ in range(2):
                for key, _ in selector.select():
                    key.data()
        with pytest.raises(ControlError, match="ended before it answered"):
            future.result(10)


def test_the_socket_is_private_and_vanishes(tmp_path):
    with selectors.DefaultSelector() as selector, control_server(tmp_path, selector, {}):
        assert stat.S_IMODE((tmp_path / SOCKET).stat().st_mode) == 0o600
    assert not (tmp_path / SOCKET).exists()


def test_without_an_emulation_is_one_line(tmp_path):
    with pytest.raises(ControlError, match="no emulation is held here"):
        ask("status", tmp_path)
