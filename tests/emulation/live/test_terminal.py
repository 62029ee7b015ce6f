"""The terminal's view: its content, its room, and how it leaves the terminal."""

import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

import ofan
from emulation.live.model import Header, LinkView, PhaseView, Snapshot, TierView
from emulation.live.terminal import Terminal, curve, duration, summary_of
from emulation.outcomes.changes import Change
from fattree.shape.addressing import link_name
from fattree.shape.topology import SWITCH_LAYERS, FatTree

FAST = ("--set", "collective.message_bytes=16KiB", "--set", "policies=ofan")
DEMO = str(Path(ofan.__file__).parent / "experiments" / "demo_failure.toml")
ENTER_SCREEN, LEAVE_SCREEN, SHOW_CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"
US = 10**6


def snapshot(k: int = 4, **changed: Any) -> Snapshot:
    tree = FatTree(k)
    links = tuple(
        LinkView(link_name(tree, link), link != 1, 0.5, 1.0, 0.0, 0.0, 0)
        for link in range(tree.links)
    )
    tiers = tuple(TierView(layer, 0.5, 1.0, 2.0, 8.0, 0) for layer in SWITCH_LAYERS)
    phases = (
        PhaseView(0, 16, 16, 100, 100, 5 * US),
        PhaseView(1, 16, 3, 100, 30, 2 * US),
        PhaseView(2, 16, 0, 100, 0, None),
    )
    changes = (Change(("edge0_0-agg0_1",), False, 5 * US, 6 * US, 7 * US, 19 * US, 111, 12),)
    made = Snapshot(
        Header("x", "virtual", "ofan", "Ofan", 1, FatTree(k), "running", speed=1e-6),
        9 * US,
        links,
        (),
        tiers,
        phases,
        changes,
        4,
        0,
    )
    return replace(made, **changed)


def drawn(seen: Snapshot, width: int = 130) -> str:
    terminal = Terminal()
    terminal.remember(seen)
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(terminal.draw(seen, width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    return str(text)


def test_the_view_names_what_has_failed_and_how_far_the_run_is() -> None:
    text = drawn(snapshot())
    assert "failed: edge0_0-agg0_1" in text
    assert text.count("╳╳") == 2  # the link, and the legend
    assert "43%" in text
    assert "2 of 3" in text and "3/16" in text and "3 of 3" not in text


def test_the_convergence_is_split_into_its_steps() -> None:
    text = drawn(snapshot())
    assert "━━ detect 1 µs plan 1 µs install 12 µs" in text
    assert "111 updates on 12 switches" in text


def test_routes_that_never_change_are_said_to() -> None:
    stuck = replace(snapshot().changes[0], installed_ps=None, planned_ps=None)
    header = replace(snapshot().header, converges=False)
    assert "routes never change" in drawn(snapshot(changes=(stuck,), header=header), 200)


@pytest.mark.parametrize(
    ("k", "width"), [(4, 50), (4, 80), (4, 120), (4, 250), (8, 100), (8, 250), (16, 120)]
)
def test_every_width_shows_the_numbers_and_is_kept_to(k: int, width: int) -> None:
    text = drawn(snapshot(k), width)
    assert all(
        word in text for word in ("Links", "Tiers", "Collective", "Convergence", "E>A", "8.0")
    )


def test_the_usual_terminal_has_room_for_everything() -> None:
    assert len(drawn(snapshot(), 80).splitlines()) <= 24


@pytest.mark.parametrize(
    ("time_ps", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (17, "17 ps"),
        (2_500, "2.50 ns"),
        (3 * 10**12, "3.00 s"),
        (-2 * US, "-2.00 µs"),
    ],
)
def test_times_are_told_in_the_unit_that_suits_them(time_ps: int | None, text: str) -> None:
    assert duration(time_ps) == text


def test_a_machine_that_cannot_keep_up_is_named() -> None:
    assert "this machine" not in drawn(snapshot())
    slower = replace(snapshot().header, reached=2.5e-7)
    assert "1e-06 virtual seconds a second (this machine reaches 2.5e-07)" in drawn(
        snapshot(header=slower)
    )


def test_a_curve_is_empty_at_nothing_and_full_at_most() -> None:
    assert curve([0, 0.1, 4, 8], 8) == " ▁▅█"


@pytest.mark.parametrize(
    ("state", "cct_ps", "text"),
    [
        ("running", None, "running"),
        ("paused", None, "running"),
        ("idle", None, "–"),
        ("complete", 17 * US, "17.00 µs"),
    ],
)
def test_a_run_that_is_not_complete_has_no_completion_time(
    state: str, cct_ps: int | None, text: str
) -> None:
    seen = snapshot(header=replace(snapshot().header, state=state), cct_ps=cct_ps)
    assert f"CCT {text}  " in drawn(seen)
    assert f", CCT {text}, " in summary_of(seen)


def test_the_last_line_has_the_result() -> None:
    assert summary_of(snapshot(cct_ps=17 * US)) == (
        "Ofan: running at 9.00 µs, CCT 17.00 µs, longest queues in packets: "
        "E>A 8.0, A>C 8.0, C>A 8.0, A>E 8.0, E>H 8.0; "
        "0 dropped, 4 lost on failed links"
    )


def test_once_as_json_is_one_object() -> None:
    result = CliRunner().invoke(ofan.cli, ["watch", DEMO, *FAST, "--once", "--json"])
    seen = json.loads(result.stdout)
    assert (seen["header"]["state"], seen["progress"]) == ("complete", 1.0)
    assert len(seen["links"]) == 32


def test_a_program_of_the_users_is_watched_by_its_name_and_then_those_named_beside_it() -> None:
    few = ("--k", "4", "--message-bytes", "8KiB", "--policies", "jsq")
    result = CliRunner().invoke(
        ofan.cli, ["watch", "--program", "two_choices.p4", *few, "--once", "--json"]
    )
    headers = [json.loads(line)["header"] for line in result.stdout.splitlines()]
    assert [header["label"] for header in headers] == ["two_choices.p4", "JSQ"]
    assert [header["state"] for header in headers] == ["complete"] * 2


def test_once_at_an_instant_shows_that_instant() -> None:
    result = CliRunner().invoke(
        ofan.cli, ["watch", DEMO, "--set", "policies=ofan", "--once", "--at-us", "6"]
    )
    assert "time 6.00 µs" in result.stdout
    assert "agg0_0-core0_0 failed" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([DEMO, "--at-us", "3"], "--at-us needs --once"),
        (["--speed", "1"], "need an experiment file"),
        (["nowhere.toml"], "nowhere.toml"),
        ([DEMO, "--set", "controller.detection=netlink"], "netlink"),
        ([DEMO, "--speed", "0"], "--speed"),
        ([DEMO, "--like", "ofan"], "--like needs --program"),
        (["--like", "ofan"], "--like"),
        (["--program", "two_choices.p4", "--set", "policies=jsq"], "use --like and --policies"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["watch", *arguments])
    said = capsys.readouterr().err
    assert (stopped.value.code, len(said.strip().splitlines())) == (2, 1)
    assert message in said


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@pytest.fixture
def watched() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yield `ofan watch` on a terminal of its own, and our end of it."""
    # A parallel run of tests gives them COLUMNS, which would win over the terminal.
    without_a_size = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
    }
    ours, theirs = pty.openpty()
    resize(ours, 24, 80)
    command = ["env", "--default-signal=INT", sys.executable, "-m", "ofan", "watch", DEMO]
    command += ["--set", "policies=ofan"]
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**without_a_size, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(ours: int, text: bytes, seconds: float = 60) -> bytes:
    """Return the bytes sent to a terminal, up to and with some words, or to its end."""
    data, end = b"", time.monotonic() + seconds
    with suppress(OSError):
        while text not in data and time.monotonic() < end:
            data += os.read(ours, 1 << 16)
    return data


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_the_terminal_clean(
    watched: tuple[subprocess.Popen[bytes], int], number: int
) -> None:
    process, ours = watched
    assert ENTER_SCREEN in read_until(ours, b"Convergence")
    process.send_signal(number)
    rest = read_until(ours, b"no such words")
    assert process.wait(20) == 0
    assert LEAVE_SCREEN in rest
    assert SHOW_CURSOR in rest
    assert b"Ofan: running at" in rest.partition(LEAVE_SCREEN)[2]


@pytest.mark.slow
def test_a_resize_is_followed(watched: tuple[subprocess.Popen[bytes], int]) -> None:
    process, ours = watched
    read_until(ours, b"Convergence")
    resize(ours, 50, 60)
    process.send_signal(signal.SIGWINCH)
    border = ("╭" + "─" * 58 + "╮").encode()
    assert border in read_until(ours, border, 20)
