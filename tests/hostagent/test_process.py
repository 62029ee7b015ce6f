"""A process that ends with its parent."""

import os
import signal

import pytest

from hostagent.agents import process


class FakeLibrary:
    """A list of the calls that `die_with_parent` makes; the kernel gets none."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def prctl(self, option: int, value: int) -> int:
        self.asked.append((option, value))
        return 0


@pytest.mark.parametrize(
    ("parents", "signals"),
    [((700, 700), []), ((700, 1), [signal.SIGTERM])],
    ids=["the parent lives", "the parent went before the kernel was asked"],
)
def test_no_process_outlives_its_parent(
    monkeypatch: pytest.MonkeyPatch, parents: tuple[int, int], signals: list[int]
) -> None:
    library, sent = FakeLibrary(), []
    seen = iter(parents)
    monkeypatch.setattr(process, "libc", library)
    monkeypatch.setattr(os, "getppid", lambda: next(seen))
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))

    process.die_with_parent(signal.SIGTERM)

    assert library.asked == [(process.PR_SET_PDEATHSIG, signal.SIGTERM)]
    assert sent == [(os.getpid(), number) for number in signals]
