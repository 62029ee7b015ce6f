"""Every way in for another user: sockets, folders, and commands for root.

The doors of the web page are in tests/emulation/live/test_page_doors.py, and text that could become
commands or code in tests/test_foreign_text.py.
"""

import json
import os
import re
import selectors
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import ofan
from emulation.errors import NetworkError
from emulation.held.messages import SOCKET
from emulation.held.server import LONGEST_REQUEST, control_server
from emulation.mininet.run_folder import run_folder
from ofan_p4.softswitch.daemon.options import parse
from ofan_p4.softswitch.daemon.stats import OwnSocket
from tests.doors import ROOT, SMALL

NOBODY = 65534
OUR_LOOPBACK = re.compile(r"127\.0\.0\.1:\d+")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can try a door as somebody else"
)


def as_nobody(
    code: str, *arguments: str, cwd: Path | str = "/"
) -> subprocess.CompletedProcess[str]:
    """Run Python code as a user who owns nothing."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=cwd,
        check=False,
    )


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a folder that everybody can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@contextmanager
def control_socket(folder: Path) -> Iterator[Path]:
    with (
        run_folder(folder) as created,
        selectors.DefaultSelector() as selector,
        control_server(created, selector, {}),
    ):
        yield created / SOCKET


@needs_root
def test_another_user_cannot_open_the_control_socket(public: Path) -> None:
    with control_socket(public / "ofan") as door:
        refused = as_nobody(CONNECT, str(door))
        door.parent.chmod(0o755)
        still_refused = as_nobody(CONNECT, str(door))
        door.chmod(0o666)
        let_in = as_nobody(CONNECT, str(door))

    assert "PermissionError" in refused.stderr
    assert "PermissionError" in still_refused.stderr
    assert let_in.returncode == 0, "the test could not fail"


@needs_root
def test_another_user_cannot_read_a_switchs_counters(public: Path) -> None:
    door = OwnSocket(str(public / "stats"), lambda _peer: {})
    try:
        assert "PermissionError" in as_nobody(CONNECT, str(public / "stats")).stderr
    finally:
        door.close()


@pytest.mark.parametrize(
    "data",
    [
        b"x" * (LONGEST_REQUEST + 1),
        b"\x00" * 100 + b"\n",
        b'{"command": "__class__"}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_the_control_socket_survives_what_it_is_sent(tmp_path: Path, data: bytes) -> None:
    with selectors.DefaultSelector() as selector, control_server(tmp_path, selector, {}):
        for sent in (data, b"{}\n"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / SOCKET))
                client.setblocking(False)
                rest, answer = sent, b""
                while not answer:
                    with suppress(BlockingIOError, BrokenPipeError):
                        rest = rest[client.send(rest) :] if rest else rest
                    for key, _ in selector.select(0.01):
                        key.data()
                    with suppress(BlockingIOError):
                        answer = client.recv(1 << 16)
                assert "error" in json.loads(answer)


def test_p4runtime_listens_on_loopback_unless_told_otherwise() -> None:
    assert OUR_LOOPBACK.fullmatch(parse(["--no-p4"]).address)


def test_a_link_in_place_of_the_run_folder_is_refused_and_its_target_left_alone(
    tmp_path: Path,
) -> None:
    target, link = tmp_path / "precious", tmp_path / "ofan"
    target.mkdir()
    (target / "file").write_text("words")
    link.symlink_to(target)

    with (
        pytest.raises(NetworkError, match="must be a folder, and no link to one"),
        run_folder(link),
    ):
        pass

    assert (target / "file").read_text() == "words"


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("/nowhere/at/all")])
def test_what_is_no_folder_is_refused(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "ofan")
    with pytest.raises(NetworkError, match="must be a folder"), run_folder(tmp_path / "ofan"):
        pass


@needs_root
def test_somebody_elses_run_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ofan").mkdir()
    os.chown(tmp_path / "ofan", NOBODY, NOBODY)

    with pytest.raises(NetworkError, match="belongs to user 65534"), run_folder(tmp_path / "ofan"):
        pass


def test_a_run_folder_left_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "ofan").mkdir()
    (tmp_path / "ofan").chmod(0o777)
    with run_folder(tmp_path / "ofan") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_links_in_the_run_folder_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "ofan").mkdir()
    (tmp_path / "ofan" / "logs").symlink_to(tmp_path / "precious")
    with run_folder(tmp_path / "ofan"):
        pass

    assert (tmp_path / "precious" / "file").exists()


@needs_root
def test_compiled_kernels_are_never_taken_from_a_folder_of_somebody_elses(public: Path) -> None:
    theirs = public / f"ofan-{os.geteuid()}"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    (public / "file").touch()
    environment = {**os.environ, "TMPDIR": str(public), "NUMBA_CACHE_DIR": str(public / "file")}
    script = "from sim.kernels.jit import CACHE; print(CACHE.folder, CACHE.note)"
    said = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )

    assert said.stdout.startswith("None ")
    assert list(theirs.iterdir()) == []


def test_results_are_nobody_elses_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.umask(0o022)
    try:
        with pytest.raises(SystemExit) as ended:
            ofan.main(
                [
                    "emulate",
                    str(ROOT / "experiments/demo.toml"),
                    *SMALL,
                    "--output",
                    str(tmp_path / "results"),
                ]
            )
    finally:
        os.umask(before)

    assert ended.value.code == 0

    modes = {path.name: path.stat().st_mode & 0o022 for path in (tmp_path / "results").rglob("*")}

    assert "results.parquet" in modes
    assert set(modes.values()) == {0}


@needs_root
@pytest.mark.parametrize(
    "arguments", [("status",), pytest.param(("serve",), marks=pytest.mark.slow)]
)
def test_a_held_network_tells_others_nothing(arguments: tuple[str, ...], public: Path) -> None:
    with control_socket(public / "run"):
        script = (
            "import sys; from pathlib import Path; import emulation.held.client as c\n"
            "run = (Path(sys.argv[1]),)\n"
            "c.ask.__defaults__ = run\n"
            "if 'serve' in sys.argv:\n"
            "    import emulation.live.held_source as h; h.HeldSource.__init__.__defaults__ = run\n"
            "import ofan; ofan.main(sys.argv[2:])"
        )
        said = as_nobody(script, str(public / "run"), *arguments, cwd=public)

    if "No module named" in said.stderr:
        pytest.skip("another user cannot read this checkout")
    # `serve` goes on to say that it takes an experiment, too.
    lines = said.stderr.splitlines()

    assert said.returncode == 2 and len(lines) == 1
    assert re.match(
        r"ofan: the control socket belongs to root: run this as root, "
        r"`sudo (/\S+/ofan|\$\(which ofan\)) ...`",
        lines[0],
    )


@needs_root
@pytest.mark.slow
def test_only_mininet_asks_for_root_and_says_so(public: Path) -> None:
    demo = ROOT / "experiments"
    run = "import ofan, sys; ofan.main(sys.argv[1:])"
    plain = as_nobody(run, "watch", str(demo / "demo.toml"), *SMALL, "--once", "--json", cwd=public)
    if "No module named" in plain.stderr or "Permission denied" in plain.stderr:
        pytest.skip("another user cannot read this checkout")
    os.chown(public, NOBODY, NOBODY)
    real = as_nobody(
        run,
        "emulate",
        str(demo / "mininet_k4.toml"),
        "--network",
        "mininet",
        "--set",
        "policies=ofan",
        cwd=public,
    )

    assert plain.returncode == 0, plain.stderr
    assert real.returncode == 2
    assert "root" in real.stderr and len(real.stderr.strip().splitlines()) == 1
