import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fattree.demand.workloads.file import About, write_workload
from fattree.demand.workloads.graph import Graph
from fattree.policies import PAPER_POLICIES, POLICIES, Policy
from ofan import main
from sim.sweeps.store import Store

TINY = ("--k", "2", "--message-bytes", "8KiB")
REQUIRED = {
    *(
        "policy",
        "k",
        "matrix",
        "message_bytes",
        "seed",
        "cct_ps",
        "bound_ps",
        "increase",
        "max_queue_packets",
    ),
    *("dropped", "packet_hops", "cpu_s", "max_rss_bytes"),
}


def ofan(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


def runs(output: str) -> Sequence[dict[str, object]]:
    listed: Sequence[dict[str, object]] = json.loads(output)["runs"]
    return listed


def test_json_has_an_object_for_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        ofan("sim", "run", *TINY, "--policies", "ofan,jsq", "--seeds", 2, "--seed", 5, "--json")
        == 0
    )
    results = runs(capsys.readouterr().out)
    assert [(run["policy"], run["seed"]) for run in results] == [
        ("ofan", 5),
        ("jsq", 5),
        ("ofan", 6),
        ("jsq", 6),
    ]
    assert all(run.keys() >= REQUIRED and run["message_bytes"] == 8192 for run in results)


def test_never_converging_routes_are_valid_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert ofan("sim", "run", *TINY, "--convergence-rtt", "inf", "--json") == 0
    assert (
        json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["runs"][0][
            "convergence_rtt"
        ]
        is None
    )


@pytest.mark.parametrize(("asked", "expected"), [("all", PAPER_POLICIES), ("everything", POLICIES)])
def test_sets_of_policies_make_a_table(
    asked: str, expected: dict[str, Policy], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ofan("sim", "run", *TINY, "--policies", asked) == 0
    table = capsys.readouterr().out
    assert [row.slug for row in POLICIES.values() if row.label in table] == list(expected)


def test_an_experiment_file_of_the_emulation_runs_unchanged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path(__file__).parents[2] / "experiments" / "demo.toml"
    assert ofan("sim", "run", file, "--set", "collective.message_bytes=8192", "--json") == 0
    assert [run["policy"] for run in runs(capsys.readouterr().out)] == ["flow", "simple_rr", "ofan"]


def test_csv_and_parquet_have_a_row_for_every_run(tmp_path: Path) -> None:
    csv, parquet = tmp_path / "x.csv", tmp_path / "x.parquet"
    assert ofan("sim", "run", *TINY, "--seeds", 3, "--csv", csv, "--parquet", parquet) == 0
    assert (
        pl.read_csv(csv)["seed"].to_list()
        == pl.read_parquet(parquet)["seed"].to_list()
        == [1, 2, 3]
    )
    assert "max_queue_layers.E>H" in pl.read_csv(csv).columns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k", "7"), "--k: fabric.k = 7: must be a multiple of 2"),
        (("--policies", "ofna"), "'ofna' is not one of flow,"),
        (("--policies", "prime"), "'prime' is not one of flow,"),
        (("--policies", "ofna"), "mrc_srv6 (did you mean ofan?)"),
        (("--matrix", "diagonal"), "--matrix: collective.matrix = 'diagonal'"),
        (("--message-bytes", "1Mob"), "--message-bytes: collective.message_bytes = '1Mob'"),
        (("--seeds", "0"), "--seeds: seeds = 0"),
        (("--failure-rate", "2"), "--failure-rate: failures.rate = 2"),
        (("--set", "fabric.kk=4"), "--set fabric.kk: unknown key fabric.kk"),
        (("--set", "fabric"), "'fabric': expected KEY=VALUE"),
        (("none.toml",), "'none.toml': No such file"),
        (("--k", "2", "--csv", "no/such/folder/x.csv"), "no/such/folder"),
        (("--k", "2", "--parquet", "x.csv"), "x.csv: it gets Parquet, so its name must end in"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ofan("sim", "run", *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("ofan: ") and message in error
    assert error.count("\n") == 1


def sweep_file(folder: Path) -> Path:
    path = folder / "s.toml"
    path.write_text(
        'name = "s"\n[fabric]\nk = 2\n[sweep]\n'
        '"collective.message_bytes" = [4096, 8192]\n"fabric.latency_ns" = [100, 200]\n'
    )
    return path


def test_a_sweep_leaves_a_store_that_results_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "s.sqlite"
    assert ofan("sim", "sweep", sweep_file(tmp_path), "--jobs", 1, "--store", store, "--json") == 0
    swept = runs(capsys.readouterr().out)
    assert ofan("sim", "results", store, "--json") == 0
    assert runs(capsys.readouterr().out) == swept
    points = {(run["message_bytes"], run["fabric.latency_ns"]) for run in swept}
    assert points == {(4096, 100), (4096, 200), (8192, 100), (8192, 200)}


def test_the_table_of_a_sweep_has_a_row_for_every_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ofan("sim", "sweep", sweep_file(tmp_path), "--jobs", 1, "--store", tmp_path / "s") == 0
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if "Ofan" in line]
    assert rows == [
        ["4,096", "100.0", "Ofan"],
        ["4,096", "200.0", "Ofan"],
        ["8,192", "100.0", "Ofan"],
        ["8,192", "200.0", "Ofan"],
    ]


def test_results_of_no_store_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ofan("sim", "results", tmp_path / "none") == 2
    assert capsys.readouterr().err == f"ofan: {tmp_path / 'none'}: no such store of runs\n"


def test_results_of_a_store_without_runs_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(tmp_path / "begun"):
        pass

    assert ofan("sim", "results", tmp_path / "begun") == 2
    assert capsys.readouterr().err == f"ofan: {tmp_path / 'begun'}: no run has finished yet\n"
    assert ofan("sim", "results", tmp_path / "begun", "--json") == 0
    assert runs(capsys.readouterr().out) == []


def test_lines_of_steps_have_the_swept_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = np.array([0, 0]), np.array([0, 1])
    graph = Graph(*ends, np.array([0, 4096]), np.array([1000, 0]))
    write_workload(tmp_path / "step.parquet", graph, About(ranks=2))
    (tmp_path / "x.toml").write_text(
        'policies = ["ofan"]\n[fabric]\nk = 4\n'
        '[collective]\nmatrix = "workload"\nfile = "step.parquet"\n'
        '[sweep]\n"collective.placement" = ["packed", "random"]\n"fabric.latency_ns" = [100, 200]\n'
    )
    assert ofan("sim", "sweep", tmp_path / "x.toml", "--jobs", 1, "--store", tmp_path / "s") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": whole step")[0] for line in lines if "whole step" in line] == [
        f"Ofan, placement {placement}, latency_ns {latency_ns}, seed 1"
        for placement in ("packed", "random")
        for latency_ns in ("100.0", "200.0")
    ]


def test_a_connection_matrix_is_run_as_the_cli_says_it_was_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.cm").write_text(
        "Nodes 2\nConnections 2\n0->1 start 0 size 8192\n1->0 start 3000000 size 8192\n"
    )
    (tmp_path / "x.toml").write_text(
        '[fabric]\nk = 2\n[collective]\nmatrix = "file"\nfile = "x.cm"\n'
    )
    assert ofan("sim", "run", tmp_path / "x.toml", "--json") == 0
    output = capsys.readouterr()
    assert output.err == (
        f"{tmp_path}/x.cm: 2 hosts, 2 connections, 0 triggers; "
        "start times read as ps, the latest is 3 µs\n"
    )
    assert runs(output.out)[0]["matrix"] == "file"


def test_threads_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for threads in (1, 2):
        assert (
            ofan("sim", "run", "--k", 4, "--message-bytes", "64KiB", "--threads", threads, "--json")
            == 0
        )
        (run,) = runs(capsys.readouterr().out)
        results.append(
            {key: value for key, value in run.items() if key not in ("cpu_s", "max_rss_bytes")}
        )
    assert results[0] == results[1]


def test_every_flow_of_every_run_has_a_row_and_percentiles_are_of_these(tmp_path: Path) -> None:
    flows, rows, picture = (tmp_path / name for name in ("f.parquet", "r.csv", "cdf.svg"))
    options = ("--policies", "ofan,flow", "--seeds", 2, "--flows", flows, "--csv", rows)
    assert ofan("sim", "run", *TINY, *options, "--cdf", picture) == 0
    frame = pl.read_parquet(flows)
    assert frame.group_by("policy", "seed").len()["len"].to_list() == [2] * 4
    for row in pl.read_csv(rows).iter_rows(named=True):
        flows_of_run = frame.filter(
            (pl.col("policy") == row["policy"]) & (pl.col("seed") == row["seed"])
        )
        assert row["fct_p999_ps"] == flows_of_run["fct_ps"].max()
        assert row["fct_p50_ps"] == flows_of_run["fct_ps"].min()

    assert picture.read_text().startswith("<?xml")


def test_flows_and_their_picture_are_of_known_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert ofan("sim", "run", *TINY, "--flows", "x.txt") == 2
    assert "x.txt: its name must end in .csv or .parquet" in capsys.readouterr().err


def test_csv_on_stdout_is_alone_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert ofan("sim", "run", *TINY, "--csv", "-") == 0
    assert pl.read_csv(capsys.readouterr().out.encode())["network"].to_list() == ["sim"]


def test_a_run_has_a_figure_and_a_results_folder_as_emulate_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure, folder = tmp_path / "x.png", tmp_path / "kept"
    run = ("sim", "run", *TINY, "--policies", "ofan,flow")
    assert ofan(*run, "--figure", figure, "--leave-out", "ecmp", "--output", folder) == 0
    assert figure.stat().st_size > 5000
    names = {"experiment.toml", "results.parquet", "flows.parquet", "cct.png", "flow_times.png"}
    assert {path.name for path in folder.iterdir()} == names

    assert ofan("results", "compare", folder, folder) == 0
    assert ofan("sim", "run", folder / "experiment.toml") == 0
    capsys.readouterr()
    assert ofan(*run, "--output", folder) == 2
    assert "has results already" in capsys.readouterr().err
    assert ofan(*run, "--output", folder, "--force") == 0


@pytest.mark.parametrize("command", [("sim", "run"), ("emulate", "demo")])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--leave-out", "flow"), "--leave-out needs --figure"),
        (("--figure", "x.png", "--leave-out", "jsq"), "no run has this load balancer, only ofan,"),
        (("--figure", "x.jpeg"), "its name must end in .png or .svg or .pdf"),
    ],
)
def test_figures_that_cannot_be_drawn_are_refused_before_any_run(
    command: tuple[str, ...],
    options: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ofan(*command, "--policies", "ofan,flow", *options) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
