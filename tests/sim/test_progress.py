"""The messages about a sweep's progress where stderr is no terminal."""

from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

from fattree.errors import PhysicsError
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.records.record import Record
from sim import run, sweep
from sim.errors import FailedRunsError
from sim.runs import engine
from sim.sweeps.progress import Bar, Lines, duration


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_lines_are_rarer_and_rarer_and_have_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = Lines("x", clock)
    lines(0, 2)
    for percent in range(0, 101, 4):
        lines.watch(percent / 100)
        clock.now += 2

    assert capsys.readouterr().err.splitlines() == [
        "x: 0 of 2 runs, 12 % of the work, about 44 s left",
        "x: 0 of 2 runs, 32 % of the work, about 34 s left",
        "x: 0 of 2 runs, 72 % of the work, about 14 s left",
    ]


def test_what_comes_before_the_work_is_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    lines = Lines("x", clock)
    lines(1000, 1200)
    clock.now += 600  # processes start
    lines.watch(0.0)
    clock.now += 60
    lines(1010, 1200)
    lines.watch(0.05)
    assert capsys.readouterr().err.splitlines() == [
        "x: 1,000 of 1,200 runs are there already",
        "x: 1,010 of 1,200 runs, 5 % of the work, about 19 min left",
    ]


def test_long_work_is_told_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("x", Clock())

    def begin(_scenario: Scenario, on_progress: engine.OnProgress | None = None) -> Record:
        raise PhysicsError("begun")

    def said(message_bytes: int) -> str:
        scenario = Scenario(collective=Collective(message_bytes=message_bytes), fabric=Fabric(k=4))
        with pytest.raises(FailedRunsError, match="begun"):
            sweep([scenario], run=begin, watch=lines.watch, expect=lines.expect)
        return capsys.readouterr().err

    assert said(1 << 40) == "x: one processor takes at least 21 min for 5.2e+10 packet-hops\n"
    assert said(1 << 30) == ""


def test_work_that_has_gone_on_for_long_tells_how_long_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = Lines("x", clock)
    lines(0, 1)
    lines.watch(0.0)
    for _ in range(6):
        assert not capsys.readouterr().err
        clock.now += 10
        lines.watch(0.0001)

    said = capsys.readouterr().err
    assert said == "x: 0 of 1 runs, 0.01 % of the work, about 166.7 h left\n"


def test_a_short_sweep_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("x", Clock())
    for finished in range(11):
        lines(finished, 10)
        lines.watch(finished / 10)
    assert capsys.readouterr().err == ""


def test_a_bar_moves_within_a_run_and_ends_at_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TELL_SECONDS", 0.0)
    with Progress(TextColumn("{task.percentage:.0f}"), console=Console(file=StringIO())) as shown:
        bar = Bar("x", shown, shown.add_task("x", total=1.0, runs="", left=""))
        seen = []

        def watch(share: float) -> None:
            bar.watch(share)
            seen.append(shown.tasks[0].completed)

        message = Collective(message_bytes=1 << 22)
        scenarios = [Scenario(seed=n, fabric=Fabric(k=4), collective=message) for n in (1, 2)]
        sweep(scenarios, report=bar, watch=watch)
        assert shown.tasks[0].fields["runs"] == "2 of 2 runs"

    assert seen == sorted(seen)
    assert any(0 < share < 0.5 for share in seen)
    assert seen[-1] == 1


def test_whoever_watches_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TELL_SECONDS", 0.0)
    scenario = Scenario(policy="jsq", collective=Collective(message_bytes=4 << 20))
    seen: list[float] = []
    plain, watched = run(scenario), run(scenario, on_progress=seen.append)
    assert seen
    assert plain.done_ps.tolist() == watched.done_ps.tolist()
    assert plain.ports.queue_byte_ps.tolist() == watched.ports.queue_byte_ps.tolist()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (119, "119 s"), (600, "10 min"), (4 * 3600, "4.0 h")]
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
