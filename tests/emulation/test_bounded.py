"""What a user names may have no end, or lie about its size: one line, little memory."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_BYTES = 3 << 30
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
RUN = (
    "import resource, runpy, sys;"
    f"resource.setrlimit(resource.RLIMIT_AS, ({LIMIT_BYTES}, {LIMIT_BYTES}));"
    "sys.argv = sys.argv[1:];"
    "runpy.run_module('ofan', run_name='__main__', alter_sys=True)"
)


def ofan(*words: str) -> tuple[int, str]:
    """Run a command within 3 GiB of address space; return its status and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, "ofan", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def lying_pcapng(path: Path) -> Path:
    """Write a capture whose second block says that it has 4 GB."""
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    path.write_bytes(section + struct.pack("<II", 6, 0xFFFFFFF0) + bytes(64))
    return path


def lying_pcap(path: Path) -> Path:
    """Write a capture whose only packet says that it has 2 GB."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(head + struct.pack("<IIII", 0, 0, 0x7FFFFFFF, 0x7FFFFFFF) + bytes(64))
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("emulate", "/dev/zero"),
        ("sim", "run", "/dev/zero"),
        ("sim", "sweep", "/dev/zero"),
        ("p4", "compile", "/dev/zero"),
        ("emulate", "--program", "/dev/zero"),
        ("emulate", "experiments/demo.toml", "--set", "fabric.k=128"),
        ("compare", "experiments/demo.toml", "--set", "fabric.k=128"),
        ("watch", "experiments/demo.toml", "--set", "fabric.k=128"),
        ("serve", "experiments/demo.toml", "--set", "fabric.k=128"),
    ],
    ids=" ".join,
)
def test_what_has_no_end_is_one_line(words: tuple[str, ...]) -> None:
    status, said = ofan(*words)
    assert status != 0
    assert "Traceback" not in said and "MemoryError" not in said, said
    assert len(said.strip().splitlines()) <= 4, said


@pytest.mark.parametrize("lie", [lying_pcapng, lying_pcap])
@pytest.mark.parametrize("command", [("pcap",), ("p4", "trace", "p4src/ofan.p4", "--pcap")])
def test_a_capture_that_lies_about_a_block_is_one_line(
    tmp_path: Path, lie: object, command: tuple[str, ...]
) -> None:
    file = lie(tmp_path / "x.pcap")  # type: ignore[operator]
    _, said = ofan(*command, str(file))
    assert "Traceback" not in said and "MemoryError" not in said, said
    # Scapy cuts what a packet lacks, and says so: then there is a packet to tell of.
    assert len(said.strip().splitlines()) <= 4 or "truncated" in said, said


@pytest.mark.parametrize(
    "words",
    [
        ("emulate", "demo", "--policies", "ofan", "--output", "{here}/drawn"),
        ("compare", "demo", "--policies", "ofan", "--output", "{here}/drawn"),
        ("sim", "run", "--k", "2", "--policies", "ofan", "--cdf", "{here}/cdf.png"),
    ],
    ids=lambda words: words[0],
)
def test_no_memory_to_draw_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    # Isolated, as `ofan` runs as root: it would start itself anew otherwise, without the limit.
    given = [word.format(here=tmp_path) for word in words]
    done = subprocess.run(
        [sys.executable, "-I", "-c", NO_ROOM_TO_DRAW, "ofan", *given],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("ofan: out of memory: a process may")
