"""`ofan sim run` and `sweep` with P4 programs: beside kernels, in place of kernels, in a store."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ofan
import p4src
from emulation.commands import simulation
from fattree.experiment.model import BUILT_IN, Scenario
from sim.sweeps import cost
from sim.sweeps.store import run_key
from sim.sweeps.sweeping import sweep

SMALL = ("--k", "4", "--message-bytes", "32KiB")
SWEEP = """
policies = ["ofan", "jsq"]
[collective]
message_bytes = "16KiB"
[sweep]
"fabric.k" = [2, 4]
"""


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(ofan.cli, ["sim", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["runs"]


def copied(folder: Path, name: str) -> Path:
    """Write a program of ours as a user's program."""
    path = folder / f"my_{name}.p4"
    path.write_text((p4src.FOLDER / f"{name}.p4").read_text().replace("include/", ""))
    return path


def values(row: dict[str, Any]) -> dict[str, Any]:
    left_out = ("policy", "scenario_hash", "cpu_s", "max_rss_bytes")
    return {key: value for key, value in row.items() if key not in left_out}


def test_programs_of_ours_equal_kernels() -> None:
    kernels = run("run", *SMALL, "--policies", "ofan,host_dr,jsq")
    programs = run("run", *SMALL, "--policies", "ofan,host_dr,jsq", "--as", "p4")
    assert [values(row) for row in programs] == [values(row) for row in kernels]


def test_several_programs_stand_beside_load_balancers(tmp_path: Path) -> None:
    paths = [copied(tmp_path, name) for name in ("ofan", "round_robin")]
    options = [word for path in paths for word in ("--program", str(path))]
    rows = run("run", *SMALL, *options, "--policies", "ofan", "--like", "ofan", "--seeds", "2")
    assert [row["policy"] for row in rows] == ["ofan"] * 2 + ["my_ofan.p4"] * 2 + [
        "my_round_robin.p4"
    ] * 2
    assert [values(row) for row in rows[2:4]] == [values(row) for row in rows[:2]]


@pytest.mark.parametrize(
    ("more_s", "asked", "jobs"), [(1e-9, 2, 1), (0, 2, 2), (-1e-9, 2, 2), (0, 99, 99), (0, 1, 1)]
)
def test_short_runs_take_a_single_process(
    monkeypatch: pytest.MonkeyPatch, more_s: float, asked: int, jobs: int
) -> None:
    """Work that takes as long as the threshold has the processes that are asked for."""
    taken: list[int] = []

    def swept(scenarios: list[Scenario], *_: Any, jobs: int, **__: Any) -> Any:
        taken.append(jobs)
        return list(zip(scenarios, sweep(scenarios), strict=True))

    # Each host of k = 4 sends a message of eight packets, for each load balancer.
    least_s = cost.least_seconds(2 * 16 * 8 * cost.HOPS)
    monkeypatch.setattr(cost, "QUICK_SECONDS", least_s + more_s)
    monkeypatch.setattr(simulation, "_swept", swept)
    assert len(run("run", *SMALL, "--policies", "ofan,jsq", "--jobs", str(asked))) == 2
    assert taken == [jobs]


def test_a_program_alone_needs_no_load_balancer(tmp_path: Path) -> None:
    program = copied(tmp_path, "ecmp")
    (row,) = run("run", *SMALL, "--program", str(program))
    assert row["policy"] == "my_ecmp.p4"
    table = CliRunner().invoke(ofan.cli, ["sim", "run", *SMALL, "--program", str(program)])
    assert "my_ecmp.p4" in table.output


@pytest.mark.slow
def test_a_sweep_keeps_runs_of_programs_until_these_change(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    program = copied(tmp_path, "ecmp")
    arguments = (
        "sweep",
        f"{tmp_path}/sweep.toml",
        "--program",
        str(program),
        "--store",
        f"{tmp_path}/runs.sqlite",
    )
    first = run(*arguments, "--jobs", "1")
    assert [row["policy"] for row in first].count("my_ecmp.p4") == 2
    assert run(*arguments, "--jobs", "1") == first
    assert len(run("results", f"{tmp_path}/runs.sqlite")) == 6

    program.write_text(program.read_text() + "// another text\n")
    run(*arguments, "--jobs", "2")
    assert len(run("results", f"{tmp_path}/runs.sqlite")) == 8


@pytest.mark.parametrize(
    "directive",
    [
        '#include "part.p4"',
        '#define PART "part.p4"\n#include PART',
        '#include /* its part */ "part.p4"',
        "#include PART",
        '#if MAX_UPLINKS > 1\n#include "part.p4"\n#endif',
        '#inc\\\nlude "part.p4"',
    ],
)
def test_a_key_depends_on_what_a_program_includes(tmp_path: Path, directive: str) -> None:
    program = tmp_path / "own.p4"
    program.write_text(f"{directive}\n")
    (tmp_path / "part.p4").write_text("// one\n")
    defines = (("PART", '"part.p4"'),)
    scenario = Scenario(policy="jsq", program=str(program), defines=defines)
    first = run_key(scenario)
    assert run_key(scenario) == first
    (tmp_path / "part.p4").write_text("// two\n")
    keys = {first, run_key(scenario), run_key(Scenario(policy="jsq"))}
    assert len(keys | {run_key(Scenario(policy="jsq", program=BUILT_IN))}) == 4


def test_a_key_depends_on_a_file_that_takes_the_place_of_an_included_one(tmp_path: Path) -> None:
    """The folder of the program goes before ours."""
    program = tmp_path / "own.p4"
    program.write_text('#include "sizes.p4"\n')
    scenario = Scenario(policy="jsq", program=str(program))
    first = run_key(scenario)
    (tmp_path / "sizes.p4").write_text("// mine\n")
    assert run_key(scenario) != first


def test_a_key_depends_on_the_p4info_beside_json(tmp_path: Path) -> None:
    program = tmp_path / "own.json"
    program.write_text("{}")
    scenario = Scenario(policy="jsq", program=str(program))
    first = run_key(scenario)
    program.with_suffix(".txtpb").write_text("# of another compiler\n")
    assert run_key(scenario) != first


@pytest.mark.timeout(60)
def test_a_key_reads_no_file_that_the_preprocessor_leaves_out(tmp_path: Path) -> None:
    """Read no pipes and devices at all, which have no end."""
    os.mkfifo(tmp_path / "pipe")
    for directive in ('#if 0\n#include "/dev/zero"\n#endif', '#include "pipe"'):
        program = tmp_path / "own.p4"
        program.write_text(f"{directive}\n")
        assert run_key(Scenario(policy="jsq", program=str(program)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--program", "none.p4"), "none.p4"),
        (("--program", "{}/bad.p4"), "bad.p4:1:9: error"),
        (("--as", "p4", "--set", "controller.detection=netlink"), "no kernel interfaces"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    (tmp_path / "bad.p4").write_text("nonsense\n")
    arguments = [word.format(tmp_path) for word in options]
    done = CliRunner().invoke(ofan.cli, ["sim", "run", *SMALL, *arguments])
    assert done.exit_code != 0 and message in done.output


def test_without_flows_there_is_no_folder_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # A killed process would leave it behind.
    monkeypatch.setattr(simulation, "own_folder", None)
    assert len(run("run", *SMALL)) == 1
