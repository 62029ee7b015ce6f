"""The switch's benchmarks run and lose no packet, and memory stays flat; rates are no test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.switch import in_process, ternary

ROOT = Path(__file__).parents[3]
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)


def run(script: str, *arguments: object) -> Any:
    command = [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["ofan", "ecmp", "router"])
def test_the_benchmark_forwards_all_packets_in_process(program: str) -> None:
    row = in_process(program, "64 B", 20_000)
    assert row.lost == 0
    assert row.packets > 19_000
    assert row.per_cpu_s > 0


@pytest.mark.slow
def test_a_thousand_ternary_entries_cost_little_more_than_ten() -> None:
    few, many = (ternary(entries, 10, 20_000).cpu_s for entries in (20, 1000))
    assert many < 3 * few


@pytest.mark.slow
@needs_root
def test_the_benchmark_forwards_packets_through_veths(tmp_path: Path) -> None:
    run(
        "switch.py",
        "--veth",
        "--seconds",
        2,
        "--packets",
        2000,
        "--json",
        tmp_path / "rows",
        "--chart",
        tmp_path / "chart.svg",
    )
    rows = [
        row for row in json.loads((tmp_path / "rows").read_text())["rows"] if row["where"] == "veth"
    ]
    rates = {
        row["per_cpu_s"]
        for row in rows
        if (row["switch"], row["program"]) == ("softswitch", "ofan")
    }

    assert len(rates) == 2
    assert min(rates) > 0
    assert (tmp_path / "chart.svg").stat().st_size > 1000


@pytest.mark.slow
@needs_root
def test_memory_stays_flat_for_half_a_minute(tmp_path: Path) -> None:
    run("soak_switch.py", "--minutes", 0.5, "--warm-up", 10, "--json", tmp_path / "soak")
    report = json.loads((tmp_path / "soak").read_text())

    assert report["packets"] > 10_000
    assert report["updates"] > 1000
