"""Modules that the switches' parent loads before it forks: none that starts threads."""

import subprocess
import sys

from emulation.mininet.children import PROGRAMS

THREADED = ("polars", "numba", "matplotlib")


def test_nothing_that_starts_threads_is_loaded_before_a_fork() -> None:
    modules = sorted({module for group in PROGRAMS.values() for module in group})
    script = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(*(set({THREADED!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
