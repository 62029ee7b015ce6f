"""`ofan serve`: its output, its end, and its refusals."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

import ofan

DEMO = str(Path(ofan.__file__).parent / "experiments" / "demo.toml")
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/[A-Za-z0-9_-]{32}/")


@pytest.fixture
def serving() -> Iterator[subprocess.Popen[str]]:
    command = ["env", "--default-signal=INT", sys.executable, "-m", "ofan", "serve", DEMO]
    command += ["--set", "policies=ofan,jsq"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_an_address_that_works_and_ends_quietly(
    serving: subprocess.Popen[str], number: int
) -> None:
    assert serving.stdout
    address = serving.stdout.readline().strip()
    assert ADDRESS.fullmatch(address)
    with urlopen(address, timeout=20) as page, urlopen(address + "events", timeout=20) as events:
        assert b"<title>Ofan live</title>" in page.read()
        assert events.readline() == b"event: history\n"
        serving.send_signal(number)
        _, said = serving.communicate(timeout=30)
    assert (serving.returncode, said) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.toml"], "nowhere.toml"),
        ([DEMO, "--port", "70000"], "--port"),
        ([DEMO, "--set", "policies=magic"], "no load balancer 'magic'"),
        (["--set", "fabric.k=4"], "need an experiment file"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["serve", *arguments])
    said = capsys.readouterr().err
    assert (stopped.value.code, len(said.strip().splitlines())) == (2, 1)
    assert message in said


def test_a_port_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as stopped:
        ofan.main(["serve", DEMO, "--set", "policies=ofan", "--port", str(taken.getsockname()[1])])
    assert stopped.value.code == 2
    assert re.fullmatch(
        r"ofan: cannot listen on 127\.0\.0\.1:\d+: Address already in use\n",
        capsys.readouterr().err,
    )
