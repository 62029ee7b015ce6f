"""Accesses beyond the end of an array bring a line after the run: switches ignore them."""

import subprocess
import sys
from pathlib import Path

import pytest

from emulation.errors import FailedRunError
from emulation.programs.own_program import own_program
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Collective, Fabric, OwnProgram, Scenario
from ofan_p4.softswitch.control.strays import strays

CELLS = 8
PROGRAM = """
#include "fabric.p4"
register<bit<32>>(8) REGISTER;
register<bit<32>>(16) other;
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    apply {
        REGISTER.write((bit<32>) meta.length + 32wINDEX, 1);
        other.write((bit<32>) meta.length, 1);
        schedule.apply(meta.schedule, SLOT, standard_metadata);
    }
}
#include "switch.p4"
"""
# A schedule of a fat-tree of four ports has two slots.
LENGTH = 2


def program(folder: Path, register: str, index: int, slot: int = 0) -> Path:
    text = PROGRAM.replace("REGISTER", register).replace("INDEX", str(index))
    (path := folder / f"{register}.p4").write_text(text.replace("SLOT", str(slot)))
    return path


def scenario(path: Path) -> Scenario:
    return Scenario(
        program=str(path),
        policy="simple_rr",
        fabric=Fabric(k=4),
        collective=Collective(message_bytes=4096),
    )


def line(register: str) -> str:
    return (
        f"{register}.p4: register {register} has 8 cells, and is written beyond:"
        " such writes change nothing"
    )


@pytest.mark.parametrize("is_interpreted", [False, True])
@pytest.mark.parametrize(("index", "is_stray"), [(CELLS - 1, False), (CELLS, True), (500, True)])
def test_a_write_at_and_beyond_the_end(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    index: int,
    is_stray: bool,
    is_interpreted: bool,
) -> None:
    register = f"near_{index}_{is_interpreted}"
    drawn = scenario(program(tmp_path, register, index - LENGTH))
    loaded = own_program(OwnProgram(file=str(drawn.program), like=drawn.policy), drawn.tree)
    VirtualFabric(drawn, loaded.program, is_interpreted=is_interpreted).run()
    assert caplog.messages == ([line(register)] if is_stray else [])


def test_the_simulator_logs_it_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    drawn = scenario(program(tmp_path, "again", CELLS))
    for _ in range(2):
        simulated.run(drawn)

    assert caplog.messages == [line("again")]


def test_a_run_that_fails_logs_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    drawn = scenario(program(tmp_path, "failing", CELLS, slot=LENGTH))
    loaded = own_program(OwnProgram(file=str(drawn.program), like=drawn.policy), drawn.tree)
    with pytest.raises(FailedRunError):
        VirtualFabric(drawn, loaded.program).run()

    assert caplog.messages == [line("failing")]


def test_each_register_counts_its_own(tmp_path: Path) -> None:
    drawn = scenario(program(tmp_path, "counted", CELLS))
    fabric = simulated.SimulatedFabric(drawn, simulated.program_of(drawn))
    fabric.run()
    counts = {
        register.name: sum(int(switch.counters[-1][register.id][0]) for switch in fabric.pipelines)
        for register in fabric.pipelines[0].program.registers
    }
    assert counts.pop("counted") and not any(counts.values())
    assert list(strays(fabric.pipelines)) == [line("counted")]


BESIDE = """
#include "fabric.p4"
register<bit<32>>(4) read_only_ID;
counter(4, CounterType.packets) counted_ID;
meter(4, MeterType.packets) metered_ID;
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    bit<32> slot = 0;
    bit<8> color;
    apply {
        read_only_ID.read(slot, (bit<32>) meta.length + 32wREAD);
        counted_ID.count((bit<32>) meta.length + 32wCOUNT);
        metered_ID.execute_meter<bit<8>>((bit<32>) meta.length + 32wMETER, color);
        schedule.apply(meta.schedule, (bit<16>) slot, standard_metadata);
    }
}
#include "switch.p4"
"""


LINES = {
    "READ": "register read_only_ID has 4 cells, and is read beyond: such reads change nothing",
    "COUNT": "counter counted_ID has 4 cells, and counts beyond: such counts are lost",
    "METER": "meter metered_ID has 4 cells, and is asked beyond: such packets get no colour",
}


@pytest.mark.parametrize("is_interpreted", [False, True])
@pytest.mark.parametrize("beyond", [None, *LINES])
def test_reads_counts_and_meters_at_and_beyond_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, beyond: str | None, is_interpreted: bool
) -> None:
    ending = f"{beyond}_{is_interpreted}".lower()
    text = BESIDE.replace("ID", ending)
    for access in LINES:
        text = text.replace(access, str((4 if access == beyond else 3) - LENGTH))

    file = tmp_path / "beside.p4"
    file.write_text(text)
    drawn = scenario(file)
    loaded = own_program(OwnProgram(file=str(file), like=drawn.policy), drawn.tree)
    VirtualFabric(drawn, loaded.program, is_interpreted=is_interpreted).run()
    lines = [f"beside.p4: {LINES[beyond].replace('ID', ending)}"] if beyond else []
    assert caplog.messages == lines


def test_the_command_line_writes_it_to_stderr(tmp_path: Path) -> None:
    file = program(tmp_path, "small", CELLS)
    command = [sys.executable, "-P", "-m", "ofan", "sim", "run", "--k", "4", "--program", str(file)]
    done = subprocess.run(
        [*command, "--message-bytes", "4096"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert line("small") in done.stderr.splitlines()
