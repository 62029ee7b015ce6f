"""Spoilt files: `ofan sim run` runs them or names the error in one line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ofan import main
from sim.errors import UnfinishedError
from sim.runs import engine

MATRIX = """Nodes 16
Connections 4
Triggers 2
0->9 id 1 start 0 size 9000 send_done_trigger 1
1->8 start 2000000 size 20000
0->5 id 2 trigger 1 size 4096 send_done_trigger 2
5->0 id 3 trigger 2 size 1
trigger id 1 oneshot
trigger id 2 oneshot
"""
EXPERIMENT = """name = "x"
policies = ["ofan", "jsq"]
[fabric]
k = 4
latency_ns = 500
queue_bytes = 800000
[collective]
matrix = "permutation"
message_bytes = "16KiB"
[transport]
recovery = "sack"
congestion = "mswift"
[failures]
rate = 0.02
convergence_rtt = inf
[[failures.events]]
link = "edge0_1-agg0_0"
down_ns = 100
up_ns = 900.5
"""
WORDS = (
    *("0", "1", "-1", "3", "7", "16", "17", "1e3", "nan", "inf", "9" * 20, "٣", "true"),
    *("\n", "#", "=", "[", "]", '"', "'", "\x00", "{", ","),
    *(
        "id",
        "start",
        "size",
        "trigger",
        "0->1",
        "9->9",
        "->",
        "oneshot",
        "multishot",
        "barrier count 2",
        "recv_done_trigger 1",
    ),
    *(
        "fsdp",
        "all_to_all",
        "ring",
        "flow",
        "erasure",
        "fixed",
        "[sweep]",
        "seed",
        "core0_0-agg0_0",
        "4MiB",
        "k",
        "model",
    ),
)
words = st.one_of(st.sampled_from(WORDS), st.text(max_size=4))
edits = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 3), words), min_size=1, max_size=4
)
LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=False)
SMALL = ("--set", "fabric.k=4", "--set", "seeds=1")
MOST_PACKETS = 20_000


def spoilt(text: str, changes: list[tuple[int, int, str]]) -> str:
    """Replace some words of a text, or put others before them."""
    parts = text.replace("\n", " \n ").split(" ")
    for position, removed, word in changes:
        first = position % len(parts)
        parts[first : first + removed] = [word]
    return " ".join(parts)


@pytest.fixture(autouse=True)
def no_long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse runs of too many packets: a valid, large run may rightly take long."""
    real = engine.simulate

    def simulate(network: Any, *arguments: Any, **named: Any) -> Any:
        if network.flows.packets.sum() > MOST_PACKETS:
            raise UnfinishedError("too large for a test")
        return real(network, *arguments, **named)

    monkeypatch.setattr(engine, "simulate", simulate)


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main(["sim", "run", *map(str, arguments), *SMALL])
    assert isinstance(end.value.code, int)
    return end.value.code


def assert_is_run_or_refused(code: int, error: str) -> None:
    said = [line for line in error.splitlines() if "start times read as" not in line]
    assert (code, said) == (0, []) or (
        code in (1, 2) and len(said) == 1 and said[0].startswith("ofan: ")
    ), error


def check_matrix(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: list[tuple[int, int, str]]
) -> int:
    (folder / "x.cm").write_text(spoilt(MATRIX, changes), encoding="utf-8")
    code = run("--matrix", "file", "--set", f"collective.file={folder}/x.cm")
    assert_is_run_or_refused(code, capsys.readouterr().err)
    return code


def check_experiment(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: list[tuple[int, int, str]]
) -> int:
    (folder / "x.toml").write_text(spoilt(EXPERIMENT, changes), encoding="utf-8")
    code = run(folder / "x.toml")
    assert_is_run_or_refused(code, capsys.readouterr().err)
    return code


CHECKS = pytest.mark.parametrize("check", [check_matrix, check_experiment])


@CHECKS
def test_what_is_not_spoilt_runs(
    check: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path, capsys, []) == 0


@CHECKS
@given(changes=edits)
@settings(LENIENT, max_examples=40)
def test_spoilt_files_run_or_are_refused_in_one_line(
    check: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: list[tuple[int, int, str]],
) -> None:
    check(tmp_path, capsys, changes)


@pytest.mark.slow
@CHECKS
@given(changes=edits)
@settings(LENIENT, max_examples=1000)
def test_a_thousand_spoilt_files_run_or_are_refused_in_one_line(
    check: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: list[tuple[int, int, str]],
) -> None:
    check(tmp_path, capsys, changes)
