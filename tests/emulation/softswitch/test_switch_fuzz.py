"""Short runs of the long ones in `benchmarks/fuzz_switch.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.fuzz.packets import PROGRAMS, fuzz_packets
from benchmarks.fuzz.programs import fuzz_programs
from benchmarks.fuzz.server import fuzz_server
from benchmarks.fuzz.thrift import fuzz_thrift
from ofan_p4.compiler import compile_file

HERE = Path(__file__).parent


@pytest.mark.parametrize("program", PROGRAMS)
def test_damaged_packets_are_dropped_or_forwarded(program: str) -> None:
    counts = fuzz_packets(program, 1000, seed=2)

    assert counts["received"] > 4000
    assert counts["transmitted"] > 1000
    assert counts["dropped_internal_error"] == 0


def test_damaged_programs_are_refused_in_one_line_or_run() -> None:
    counts = fuzz_programs(
        [json.dumps(compile_file(HERE / "conformance" / "conformance.p4").json).encode()],
        60,
        seed=3,
    )

    assert counts["loaded"] > 5
    assert counts["refused"] > 5


@pytest.mark.timeout(120)
def test_a_server_answers_hostile_messages_with_a_status() -> None:
    codes = fuzz_server(150, seed=4)["codes"]
    assert {"OK", "INVALID_ARGUMENT", "UNKNOWN"} <= codes.keys()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_server_answers_many_hostile_messages_with_a_status() -> None:
    assert sum(fuzz_server(3000, seed=5)["codes"].values()) > 2500


@pytest.mark.timeout(120)
def test_a_runtime_api_answers_hostile_calls_or_ends_the_connection() -> None:
    outcomes = fuzz_thrift(400, seed=6)["outcomes"]
    assert {"reply", "exception", "connection ended"} <= outcomes.keys()
    assert "no message" not in outcomes
