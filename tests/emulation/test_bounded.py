"""User input may have no end, or lie about its size: one line, little memory."""

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_BYTES = 3 << 30
# Input that is refused in time takes no memory.
BAD = ("Traceback", "MemoryError", "out of memory")
# From the moment on at which something is going to draw, there is 1 MiB more, and that is all.
NO_ROOM_TO_DRAW = """
import resource, runpy, sys

def hook(event, words):
    if event == "import" and words[0] == "matplotlib":
        pages = int(open("/proc/self/statm").read().split()[0])
        most = pages * resource.getpagesize() + (1 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

sys.addaudithook(hook)
sys.argv = sys.argv[1:]
runpy.run_module("ofan", run_name="__main__", alter_sys=True)
"""
# One process for all commands: most of a command's cost is to start.
RUN = f"""
import io, json, resource, sys
from contextlib import redirect_stderr, redirect_stdout
import ofan
resource.setrlimit(resource.RLIMIT_AS, ({LIMIT_BYTES}, {LIMIT_BYTES}))
for words in json.load(sys.stdin):
    said, status = io.StringIO(), 0
    with redirect_stdout(said), redirect_stderr(said):
        try:
            ofan.main(words)
        except SystemExit as end:
            status = end.code
    print(json.dumps([status, said.getvalue()]), flush=True)
"""


class Ended(NamedTuple):
    """A command's exit status, and its output."""

    status: int
    said: str


def ofan(*commands: Sequence[str]) -> list[Ended]:
    """Run commands in turn within 3 GiB of address space."""
    # Isolated, as `ofan` runs as root: it would start itself anew otherwise, without the limit.
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{RUN}"],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Ended(*json.loads(line)) for line in done.stdout.splitlines()]


def lying_pcapng(path: Path) -> Path:
    """Write a capture with a second block that claims to have 4 GB."""
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    path.write_bytes(section + struct.pack("<II", 6, 0xFFFFFFF0) + bytes(64))
    return path


def lying_pcap(path: Path) -> Path:
    """Write a capture with a single packet that claims to have 2 GB."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(head + struct.pack("<IIII", 0, 0, 0x7FFFFFFF, 0x7FFFFFFF) + bytes(64))
    return path


ENDLESS = (
    ("emulate", "/dev/zero"),
    ("sim", "run", "/dev/zero"),
    ("sim", "sweep", "/dev/zero"),
    ("p4", "compile", "/dev/zero"),
    ("emulate", "--program", "/dev/zero"),
    ("emulate", "experiments/demo.toml", "--set", "fabric.k=128"),
    ("compare", "experiments/demo.toml", "--set", "fabric.k=128"),
    ("watch", "experiments/demo.toml", "--set", "fabric.k=128"),
    ("serve", "experiments/demo.toml", "--set", "fabric.k=128"),
)


def test_what_has_no_end_is_one_line() -> None:
    for command, (status, said) in zip(ENDLESS, ofan(*ENDLESS), strict=True):
        assert status not in (0, None), (command, said)
        assert not any(word in said for word in BAD), (command, said)
        assert 1 <= len(said.strip().splitlines()) <= 4, (command, said)


def test_a_capture_that_lies_about_a_block_is_one_line(tmp_path: Path) -> None:
    commands = [
        (*command, str(lie(tmp_path / lie.__name__)))
        for lie in (lying_pcapng, lying_pcap)
        for command in (("pcap",), ("p4", "trace", "p4src/ofan.p4", "--pcap"))
    ]
    for arguments, (_, said) in zip(commands, ofan(*commands), strict=True):
        assert not any(word in said for word in BAD), (arguments, said)
        # Scapy cuts a packet that lacks bytes, and warns once: then there is a packet to print.
        is_cut = any(word in said for word in ("truncated", "received 64 bytes"))
        assert len(said.strip().splitlines()) <= 4 or is_cut, (arguments, said)


@pytest.mark.parametrize(
    "options",
    [
        ("emulate", "demo", "--k", "2", "--policies", "ofan", "--output", "{here}/drawn"),
        pytest.param(
            ("compare", "demo", "--policies", "ofan", "--output", "{here}/drawn"),
            marks=pytest.mark.slow,
        ),
        ("sim", "run", "--k", "2", "--policies", "ofan", "--cdf", "{here}/cdf.png"),
    ],
    ids=lambda options: options[0],
)
def test_no_memory_to_draw_is_one_line(tmp_path: Path, options: tuple[str, ...]) -> None:
    # Isolated, as `ofan` runs as root: it would start itself anew otherwise, without the limit.
    arguments = [word.format(here=tmp_path) for word in options]
    done = subprocess.run(
        [sys.executable, "-I", "-c", NO_ROOM_TO_DRAW, "ofan", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("ofan: out of memory: a process may")


@pytest.mark.parametrize("limit", [8, 16])
def test_too_few_descriptors_are_one_line(limit: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ofan", "sim", "run", "--k", "2"]
    script = f'ulimit -n {limit} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [
        f"ofan: out of file descriptors: a process may have {limit} here (ulimit -n); allow more"
    ]


# Without a check polars would abort the process from 300 to 320 MiB, LLVM at 740; between them
# libraries raise errors of their own, or none.
@pytest.mark.parametrize("mebibytes", [300, 305, 310, 320, 500, 520, 700, 740])
def test_no_memory_to_load_libraries_is_one_line(mebibytes: int) -> None:
    script = f'ulimit -v {mebibytes << 10} && exec "$@"'
    command = [sys.executable, "-P", "-m", "ofan", "sim", "run", "--k", "2", "--policies", "ofan"]
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [
        f"ofan: out of memory: a process may have {mebibytes} MiB here (ulimit -v); give it more"
    ]
