"""Slots beyond a program's schedule are reported, on every network in one way."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import ofan
from tests.emulation.commands.conftest import leave_unrendered

COMMANDS = ("emulate", "sim run", "sim run --threads 2")
PROGRAM = """
#include "fabric.p4"
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    bit<16> slot;
    apply {
        CHOOSE
        schedule.apply(meta.schedule, slot, standard_metadata);
    }
}
#include "switch.p4"
"""
SAID = (
    r"(?:^|; )(?P<who>\w+\.p4: )?(?P<packets>[\d,]+) packets had no port: a slot beyond the"
    r" schedule \(slots are 0 to meta\.length - 1\), no route, or mark_to_drop"
)
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    leave_unrendered(monkeypatch)

    def run(name: str, choice: str, command: str, *options: str) -> tuple[int, str]:
        # A name of its own: a process keeps its compiled programs by name.
        (tmp_path / f"{name}.p4").write_text(PROGRAM.replace("CHOOSE", choice))
        with pytest.raises(SystemExit) as stopped:
            ofan.main((*command.split(), "--program", f"{name}.p4", *options))

        return int(stopped.value.code or 0), capsys.readouterr().err

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_that_cannot_end_says_why(run: Run, command: str) -> None:
    code, said = run("beyond", "slot = 3;", command, "--k", "4", "--message-bytes", "4096")
    assert code == 1
    assert "16 flows are not complete" in said
    assert re.search(SAID, said)


def test_a_run_that_ends_says_it_too_and_networks_count_alike(run: Run) -> None:
    options = ("--k", "4", "--message-bytes", "16KiB", "--set", "controller.detection=announced")
    counts = set()
    for command in COMMANDS:
        code, said = run("inclusive", "random(slot, 0, meta.length);", command, *options)
        report = re.search(SAID, said, re.MULTILINE)
        assert code == 0 and report, said
        assert report["who"] == "inclusive.p4: "
        counts.add(report["packets"])

    assert len(counts) == 1


@pytest.mark.parametrize("command", ["emulate", "sim run"])
def test_what_the_compiler_warns_of_is_told_once(run: Run, command: str) -> None:
    options = ("--k", "2", "--message-bytes", "4096", "--seeds", "2")
    code, said = run("unset", "slot = slot + 0;", command, *options)
    assert code == 0
    assert said.count("warning: 'slot' is read before anything is written to it") == 1


@pytest.mark.parametrize("command", ["emulate", "sim run"])
def test_a_program_that_keeps_to_its_slots_is_told_nothing(run: Run, command: str) -> None:
    options = ("--k", "4", "--message-bytes", "16KiB")
    code, said = run("inside", "random(slot, 0, meta.length - 1);", command, *options)
    assert code == 0 and "had no port" not in said


def test_one_in_three_slots_of_two_uplinks_is_beyond(run: Run, tmp_path: Path) -> None:
    """Between pods two switches draw from three slots, of which the schedule has two.

    So 5/9 of the hosts' packets have no port, and 5/9 of the ACKs of the other 4/9.
    """
    pair = "--k 4 --matrix pairs --set collective.pairs=[[0,8]] --message-bytes 16MiB"
    choice = "random(slot, 0, meta.length);"
    code, _ = run("thirds", choice, f"sim run {pair} --csv t.csv")
    names, row = (tmp_path / "t.csv").read_text().splitlines()
    counts = dict(zip(names.split(","), row.split(","), strict=True))
    assert code == 0 and counts["unroutable"] == counts["dropped"]

    share = int(counts["unroutable"]) / int(counts["transmissions"])
    assert share == pytest.approx(5 / 9 + 4 / 9 * 5 / 9, rel=0.02)
