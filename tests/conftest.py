"""Settings of all tests: protobuf's back end; hypothesis without deadlines, fixed examples in CI.

New random examples are for whoever works on the code. CI says whether a change breaks something, so
it must not turn red by a draw (`CI=true`, as all CI services set it).
"""

import gc
import os
import signal
from importlib import import_module
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

import p4messages

# Tests import messages of their own, some before the packages that would see to this.
p4messages.install()

# Whoever starts tests in the background of a script has them ignore Ctrl-C, and the processes that
# tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Parallel workers are given a width, which output into pipes would heed.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

settings.register_profile(
    "ofan", deadline=None, derandomize=IN_CI, database=None if IN_CI else settings().database
)
settings.load_profile("ofan")


@pytest.fixture(scope="session", autouse=True)
def _threads_share_small_windows() -> None:
    """Let threads share windows of few packets, too: networks of tests are small."""
    import_module("sim.runs.threads").FEW_PACKETS = 0  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --slice, for who has no time for all."""
    parser.addoption(
        "--slice",
        metavar="NUMBER/COUNT",
        help="run one of COUNT parts; number NUMBER modulo COUNT, so that it may count commits",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests outside the slice."""
    if not (slice_text := config.getoption("--slice")):
        return

    number, count = map(int, slice_text.split("/"))
    # By name, and not by position: a new test moves no other one into another slice.
    kept = [item for item in items if crc32(item.nodeid.encode()) % count == number % count]
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


def pytest_collection_finish() -> None:
    """Keep modules and collected tests out of the garbage collector, which finds nothing there.

    They are millions of objects, and looking at them over and over cost a fifth of all time, as
    does looking for garbage after every 700 new objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


# Programs that a test may lack, and the beginning of the reason for which it is then skipped.
WANTED = {
    "BMv2": ("simple_switch_grpc is not", "simple_switch_CLI is not"),
    "p4c": ("p4c is not", "p4c-bm2-ss is not"),
    "p4runtime-shell": ("p4runtime-shell",),
    "Chromium": ("no Chromium",),
    "root or Mininet": ("needs root", "no Mininet"),
    "strace": ("needs strace",),
}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the tests that were skipped for want of a program: a skipped test is no passed test."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    counts = {
        program: sum(any(word in reason for word in beginnings) for reason in reasons)
        for program, beginnings in WANTED.items()
    }
    missing = ", ".join(f"{program} {count}" for program, count in counts.items() if count)
    if missing:
        terminalreporter.write_line(f"skipped for want of: {missing}", yellow=True)
