"""Random programs beside the reference compiler and the reference switch, where they are installed.

p4c's JSON on our switch, and our JSON on BMv2, behave as the judge reads the specification.
The programs leave out constructs that p4c's back end does not take, or is known to compile
otherwise (docs/p4-support.md).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import pytest

import emulation.programs.p4c as reference
from emulation.errors import NetworkError
from ofan_p4.softswitch.base.errors import PipelineError
from tests.emulation.compiler.bmv2_bench import SWITCH, forwarded
from tests.language.comparing import compiled, difference, judged
from tests.language.inputs import Drawn, packets
from tests.language.programs import drawn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PACKETS = 20
PROGRAMS = range(40)
# Few of them fit the bench of BMv2.
PROGRAMS_ON_BMV2 = range(120)
FIRST_THRIFT_PORT = 20_500
# Constructs that the bench of BMv2 does not set up, or that differ there by themselves.
BEYOND_BENCH = ("clone", "mcast_grp = ", "resubmit", "recirculate", ": lpm")


def beside_p4c(seed: int, folder: Path) -> str | None:
    """Return where p4c's JSON differs from the judge, None if there is no such JSON."""
    program = drawn(seed, for_p4c=True)
    draw = Random(seed)
    arrivals = packets(draw, program, PACKETS)
    installed, expected = judged(draw, program, arrivals)
    source = folder / f"{seed}.p4"
    source.write_text(program.source)
    try:
        made, _ = reference.p4c(source, [], {}, folder)
        return difference(program, made.read_bytes(), installed, arrivals, expected, "python")
    except (NetworkError, PipelineError):
        # p4c refuses the program, or writes JSON that the target does not take.
        return None


@pytest.mark.skipif(shutil.which(reference.P4C) is None, reason="p4c-bm2-ss is not on the PATH")
def test_p4c_compiles_random_programs_to_what_the_specification_says(tmp_path: Path) -> None:
    differences = {seed: beside_p4c(seed, tmp_path) for seed in PROGRAMS}

    assert {seed: text for seed, text in differences.items() if text} == {}
    assert sum(text is not None for text in differences.values()) > len(PROGRAMS) // 3


def fits_the_bench(program: Drawn) -> bool:
    """Say whether BMv2 can run a program without commands of a control plane."""
    return all(table.is_const for table in program.tables) and not any(
        word in program.source for word in BEYOND_BENCH
    )


@pytest.mark.skipif(shutil.which(SWITCH) is None, reason=f"{SWITCH} is not on the PATH")
def test_bmv2_does_with_our_json_what_the_specification_says(tmp_path: Path) -> None:
    compared = 0
    for seed in PROGRAMS_ON_BMV2:
        program = drawn(seed)
        if not fits_the_bench(program):
            continue

        draw = Random(seed)
        arrivals = packets(draw, program, PACKETS)
        _, expected = judged(draw, program, arrivals)
        # A packet that is undefined would leave something behind in registers.
        defined = [
            (came, seen) for came, seen in zip(arrivals, expected.packets, strict=True) if seen
        ]
        if len(defined) < PACKETS:
            continue

        folder = tmp_path / str(seed)
        folder.mkdir()
        source = json.loads(compiled(program.source))
        ports = sorted({port for _, seen in defined for port, _ in seen.sent})
        sent = forwarded(
            folder, source, [came for came, _ in defined], ports, FIRST_THRIFT_PORT + seed
        )
        expected_frames = {
            port: [frame for _, seen in defined for out, frame in seen.sent if out == port]
            for port in sent
        }
        assert sent == expected_frames, f"seed {seed}"
        compared += 1

    assert compared > 3
