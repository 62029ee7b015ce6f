"""Standard output that is full or closed: each program says so in one line, and fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors import ROOT
from tests.parity.drawing import one_in

RUN = ("sim", "run", "--k", "2", "--message-bytes", "4096")
PROGRAMS = {
    "ofan": ("ofan", "--help"),
    "JSON": ("ofan", *RUN, "--json"),
    "CSV": ("ofan", *RUN, "--csv", "-"),
    "a table": ("ofan", *RUN),
    "ofan-p4": ("ofan_p4.cli", "--help"),
    "softswitch": (
        "ofan_p4.softswitch.daemon.process",
        "--no-p4",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ),
    "simple_switch_CLI": ("ofan_p4.runtime_cli.cli", "--help"),
    "fresh": ("pages.fresh", "--help"),
}
WORDS = {"/dev/full": "No space left on device", "&-": "it is closed"}


@pytest.mark.parametrize("where", WORDS)
@pytest.mark.parametrize("program", one_in(2, PROGRAMS))
def test_output_that_cannot_be_written_is_one_line(program: str, where: str) -> None:
    module, *arguments = PROGRAMS[program]
    shell = f'exec "$@" >{where}'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-m", module, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'emulation' / 'p4'}", "PATH": "/usr/bin:/bin"},
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f": cannot write to stdout: {WORDS[where]}")
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_results_that_cannot_be_shown_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    small = ("--k", "2", "--message-bytes", "4096", "--policies", "ofan")
    command = ["-m", "ofan", "emulate", "demo", *small, "--output", str(folder)]
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, *command], stdout=full, check=False, cwd=ROOT)

    assert done.returncode == 1
    assert (folder / "results.parquet").exists()


def test_a_file_does_not_become_the_output_that_is_closed(tmp_path: Path) -> None:
    """Of closed streams, the first files that are opened would get the numbers."""
    code = (
        "from ofan_p4.standard_output import _fill_closed_descriptors as fill; fill();"
        f"number = open({str(tmp_path / 'x')!r}, 'w').fileno(); import os; os._exit(number)"
    )
    shell = 'exec "$@" <&- >&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", code], check=False, cwd=ROOT
    )
    assert done.returncode == 3
