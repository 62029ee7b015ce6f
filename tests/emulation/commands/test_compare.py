"""`ofan compare`: equal results, differences and their display.

Virtual time and the simulator side by side.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from rich.console import Console

import ofan
from emulation.commands import compare, emulate, experiment_run, on_mininet
from emulation.commands.experiment_run import reporting, run_experiment
from emulation.mininet.building import Setup
from emulation.outcomes.comparison import compared, comparison_table, differences, verdicts
from emulation.outcomes.comparison_plots import networks_figure
from fattree.experiment.model import Collective, Experiment, Fabric
from fattree.records.record import Record
from fattree.texts.looks import ALERT

DEMO = Path(ofan.__file__).parent / "experiments" / "demo.toml"
SECOND = """
#include "fabric.p4"
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    apply { schedule.apply(meta.schedule, 0, standard_metadata); }
}
#include "switch.p4"
"""
FAST = ("--set", "collective.message_bytes=16KiB")
TINY = Experiment(
    fabric=Fabric(k=4),
    collective=Collective(message_bytes=8 * 4096),
    policies=("ofan", "jsq"),
    seeds=2,
)


@pytest.fixture(scope="module")
def virtual() -> tuple[Record, ...]:
    with reporting() as reporter:
        return run_experiment(TINY, reporter).records


def moved(
    records: tuple[Record, ...], network: str, policy: str = "", **change: Any
) -> tuple[Record, ...]:
    """Return the records of another network, one load balancer's changed."""
    return tuple(
        record.model_copy(
            update={"network": network, **(change if record.policy == policy else {})}
        )
        for record in records
    )


def test_equal_networks_are_equal_row_by_row(virtual: tuple[Record, ...]) -> None:
    rows = compared((*virtual, *moved(virtual, "sim")))
    assert [row.policy for row in rows] == ["ofan", "jsq"]
    assert all(row.is_equal("sim") for row in rows)
    assert differences(rows) == []
    assert str(verdicts(rows)[0]).startswith("sim equals virtual in 2 of 2")


def test_a_picosecond_is_a_difference(virtual: tuple[Record, ...]) -> None:
    late = virtual[0].model_copy(update={"network": "sim", "cct_ps": virtual[0].cct_ps + 1})
    rows = compared((*virtual, late, *moved(virtual, "sim")[1:]))
    assert [row.is_equal("sim") for row in rows] == [False, True]
    assert differences(rows) == [
        {"policy": "ofan", "network": "sim", "seed": 1, "cct_ps": 1, "max_queue_bytes": 0}
    ]


def test_the_table_colours_what_is_equal_and_what_differs(virtual: tuple[Record, ...]) -> None:
    longer = moved(virtual, "mininet", "jsq", max_queue_bytes=99 * 4158, max_queue_packets=99.0)
    console = Console(width=200, force_terminal=True, color_system="standard", record=True)
    console.print(comparison_table(compared((*virtual, *longer))))
    ofan_row, jsq_row = console.export_text(styles=True).splitlines()[4:6]
    assert ofan_row.count("\x1b[32m") == 3
    assert jsq_row.count("\x1b[32m") == 2
    assert "\x1b[1;31m99.0 (+" in jsq_row


def test_long_times_are_in_milliseconds(virtual: tuple[Record, ...]) -> None:
    slow = [record.model_copy(update={"cct_ps": 50 * 10**9}) for record in virtual]
    console = Console(width=200, record=True)
    console.print(comparison_table(compared(slow)))
    assert "CCT (ms)" in (text := console.export_text())
    assert "50.00" in text


def test_the_picture_has_a_red_line_where_networks_differ(virtual: tuple[Record, ...]) -> None:
    rows = compared(
        (*virtual, *moved(virtual, "sim", "jsq", max_queue_bytes=1, max_queue_packets=0.1))
    )
    increase, queue = networks_figure(rows).axes
    assert ALERT not in {line.get_color() for line in increase.lines}
    assert ALERT in {line.get_color() for line in queue.lines}
    assert [label.get_text() for label in increase.get_yticklabels()] == ["Ofan", "JSQ"]


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("compared")
    command = (
        "compare",
        str(DEMO),
        *FAST,
        "--policies",
        "ofan,jsq,host_pkt",
        "--seeds",
        "2",
        "--json",
        "--output",
        str(folder),
    )
    result = CliRunner().invoke(ofan.cli, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_virtual_time_and_the_simulator_agree(answer: dict[str, Any]) -> None:
    assert [record["network"] for record in answer["records"]] == ["virtual"] * 6 + ["sim"] * 6
    assert answer["differences"] == []


def test_the_folder_has_records_and_pictures(answer: dict[str, Any]) -> None:
    folder = Path(answer["folder"])
    assert len(pl.read_parquet(folder / "results.parquet")) == 12
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "comparison.svg").read_text()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--policies", "ofan,best"), "'best' is not one of flow,"),
        (("--networks", "sim"), "give at least 2 of"),
        (("--networks", "virtual,ns3"), "'ns3' is not one of virtual, sim, mininet"),
        (("--set", "fabric.k=5"), "fabric.k = 5"),
        (("--set", "load_balancer.queue_staleness_ns=5"), "only the simulator"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    options: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(("compare", str(DEMO), *FAST, *options))
    assert stopped.value.code == 2
    said = capsys.readouterr().err.strip()
    assert complaint in said
    assert "\n" not in said


def test_a_program_runs_on_mininet_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With virtual time in place of Mininet: its network gets the very program, for each of two."""
    asked = []

    def as_if_real(setup: Setup) -> experiment_run.Runner:
        asked.append(setup.program)
        return experiment_run.virtually(setup.program)

    monkeypatch.setattr(on_mininet, "runner", as_if_real)
    for command in (emulate, compare):
        monkeypatch.setattr(command, "refuse_if_unable", lambda: None)

    programs = ("--program", "two_choices.p4", "--program", "keep.p4")
    (tmp_path / "keep.p4").write_text(SECOND)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        ofan.cli,
        ["compare", "mininet_k4", *programs, *FAST, "--networks", "virtual,mininet", "--json"],
        catch_exceptions=False,
    )
    records = json.loads(done.stdout)["records"]
    assert [(record["network"], record["policy"]) for record in records] == [
        (network, name)
        for network in ("virtual", "mininet")
        for name in ("two_choices.p4", "keep.p4")
    ]
    assert len({id(program) for program in asked}) == 2 and None not in asked


def test_what_mininet_refuses_is_refused_of_a_program_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (emulate, compare):
        monkeypatch.setattr(command, "refuse_if_unable", lambda: None)

    arguments = ["compare", "demo", "--program", "two_choices.p4", "--networks", "virtual,mininet"]
    done = CliRunner().invoke(ofan.cli, arguments)
    assert done.exit_code != 0 and "packets/s to software switches" in done.output
