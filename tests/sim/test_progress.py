"""What is said about a sweep's progress where stderr is no terminal."""

import pytest

from sim.progress import Lines, duration


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_every_five_seconds_with_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    report = Lines("x", clock)
    for finished in range(41):
        report(finished, 40)
        clock.now += 1
    assert capsys.readouterr().err.splitlines()[:2] == [
        "x: 5 of 40 runs, about 35 s left",
        "x: 10 of 40 runs, about 30 s left",
    ]


def test_what_is_there_already_is_said_and_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    report = Lines("x", clock)
    report(1000, 1200)
    clock.now += 60
    report(1010, 1200)
    assert capsys.readouterr().err.splitlines() == [
        "x: 1,000 of 1,200 runs are there already",
        "x: 1,010 of 1,200 runs, about 19 min left",
    ]


def test_a_short_sweep_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report = Lines("x", Clock())
    for finished in range(11):
        report(finished, 10)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (119, "119 s"), (600, "10 min"), (4 * 3600, "4.0 h")]
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
