"""The cost of a process: its seconds and its memory, apart from those of all other processes."""

import os
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of CPU and by the clock, and bytes at most, with the processes that it waits for."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


def run(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
) -> tuple[str, Cost]:
    """Run a command; return its output and its cost. Raises ClickException where it fails."""
    began_s = time.monotonic()
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        # Of this process alone, which `resource` adds up with all others.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)

    if process.returncode:
        raise click.ClickException(f"{shlex.join(command)} ended with {process.returncode}")

    cost = Cost(
        cpu_s=usage.ru_utime + usage.ru_stime,
        wall_s=time.monotonic() - began_s,
        peak_bytes=usage.ru_maxrss * 1024,
    )
    return output, cost
