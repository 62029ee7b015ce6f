"""`ofan emulate`: the folder that it leaves, its output, and one line for any error."""

import json
from functools import partial
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import ofan
import p4src
from emulation.commands import experiment_run
from emulation.virtual import fabric
from fattree.records.record import Record
from fattree.texts.experiment_file import load_experiment
from sim.sweeps.progress import Lines

EXPERIMENTS = Path(ofan.__file__).parent / "experiments"
pytestmark = pytest.mark.usefixtures("unrendered")
DEMO = EXPERIMENTS / "demo.toml"
FAST = ("--set", "collective.message_bytes=16KiB")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("results")
    command = (
        "emulate",
        str(DEMO),
        *FAST,
        "--set",
        "policies=simple_rr,ofan",
        "--seeds",
        "2",
        "--json",
        "--output",
        str(folder),
    )
    return folder, CliRunner().invoke(ofan.cli, command)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(arguments)
    assert stopped.value.code == 2
    written = capsys.readouterr()
    assert written.out == ""
    return written.err.strip()


def test_json_has_one_record_per_run(finished: tuple[Path, Result]) -> None:
    answer = json.loads(finished[1].stdout)
    records = [Record(**record) for record in answer["records"]]
    assert [(record.policy, record.seed) for record in records] == [
        ("simple_rr", 1),
        ("ofan", 1),
        ("simple_rr", 2),
        ("ofan", 2),
    ]
    assert all(record.network == "virtual" and record.increase >= 0 for record in records)


@pytest.mark.slow
def test_processes_change_no_record(finished: tuple[Path, Result], tmp_path: Path) -> None:
    """Shorthands are the keys of `--set`, and order is that of the experiment."""
    short = ("--message-bytes", "16KiB", "--policies", "simple_rr,ofan", "--seeds", "2")
    command = ("emulate", "demo", *short, "--jobs", "2", "--json", "--output", str(tmp_path))
    done = CliRunner().invoke(ofan.cli, command)
    assert done.exit_code == 0, done.output
    records, parallel_records = (
        json.loads(result.stdout)["records"] for result in (finished[1], done)
    )
    costs = {"cpu_s": 0, "max_rss_bytes": 0}
    assert [row | costs for row in records] == [row | costs for row in parallel_records]
    logs = [(folder / "run.log").read_text().splitlines() for folder in (finished[0], tmp_path)]
    first, second = ([json.loads(line)["events_sha256"] for line in log] for log in logs)
    assert first == second


def test_the_folder_repeats_the_experiment(finished: tuple[Path, Result]) -> None:
    expected = load_experiment(DEMO, [FAST[1], "policies=simple_rr,ofan", "seeds=2"])
    assert load_experiment(finished[0] / "experiment.toml") == expected


def test_tables_hold_runs_flows_ports_and_queues(finished: tuple[Path, Result]) -> None:
    tables = {
        name: pl.read_parquet(finished[0] / f"{name}.parquet")
        for name in ("results", "flows", "ports", "queues")
    }
    assert [len(tables[name]) for name in ("results", "flows", "ports")] == [4, 4 * 16, 4 * 20 * 4]
    longest = (
        tables["flows"]
        .group_by("policy", "seed")
        .agg((pl.col("done_ps") - pl.col("planned_ps")).max().alias("cct_ps"))
    )
    both = tables["results"].join(longest, on=["policy", "seed"])
    assert both["cct_ps"].to_list() == both["cct_ps_right"].to_list()
    assert tables["queues"]["layer"].n_unique() == 5


def test_the_log_has_the_hash_and_the_accounts_of_every_run(finished: tuple[Path, Result]) -> None:
    entries = [json.loads(line) for line in (finished[0] / "run.log").read_text().splitlines()]
    assert len({entry["events_sha256"] for entry in entries}) == 4
    assert all(
        entry["sent"] == entry["received"] + entry["dropped"] + entry["in_flight"]
        for entry in entries
    )


def test_a_run_without_a_hash_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("emulate", str(DEMO), *FAST, "--set", "policies=ofan", "--force", "--output")
    hashed, unhashed = tmp_path / "hashed", tmp_path / "unhashed"
    few = CliRunner().invoke(ofan.cli, [*arguments, str(hashed)])
    monkeypatch.setattr(fabric, "FEW_PACKETS", 100)
    many = CliRunner().invoke(ofan.cli, [*arguments, str(unhashed)])
    assert (few.exit_code, many.exit_code) == (0, 0)
    logs = [json.loads((folder / "run.log").read_text()) for folder in (hashed, unhashed)]
    assert len(logs[0]["events_sha256"]) == 64 and logs[1]["events_sha256"] is None
    assert "no hash of events" in many.output and "no hash of events" not in few.output


def test_plots_are_written_as_png_and_svg(finished: tuple[Path, Result]) -> None:
    for stem in ("cct", "link_load", "queues"):
        assert (finished[0] / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (finished[0] / f"{stem}.svg").read_text()


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("fabric.k=5", "fabric.k = 5: must be a multiple of 2"),
        ("fabrik.k=4", "--set fabrik.k: unknown key fabrik"),
        ("collective.message_bytes=0", "message_bytes = 0: must be greater than 0"),
        ('failures.events=[{link="agg0_0-core1_0",down_ns=1}]', "there is no link agg0_0-core1_0"),
        ("policies=ofan,best", "no load balancer 'best'"),
    ],
)
def test_a_bad_experiment_is_one_line_and_code_2(
    setting: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "emulate", str(DEMO), "--set", setting)
    assert said.startswith("ofan: ")
    assert complaint in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("control {", "bad.p4:1:9: error: expected the name"),
        ("bit<8> x() { return true; }", "bad.p4:1:"),
    ],
)
def test_a_bad_p4_program_is_named_with_its_place(
    program: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.p4").write_text(program)
    assert complaint in refused(capsys, "emulate", str(DEMO), "--program", str(tmp_path / "bad.p4"))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [('{"a":', "corrupt JSON"), ('{"a": 1}', "not a BMv2 JSON"), (None, "No such file")],
)
def test_a_corrupt_pipeline_is_one_line(
    source: str | None, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.txtpb").write_text(p4src.p4info_path("ofan").read_text())
    if source is not None:
        (tmp_path / "bad.json").write_text(source)
    said = refused(capsys, "emulate", str(DEMO), "--program", str(tmp_path / "bad.json"))
    assert complaint in said
    assert "\n" not in said


def test_a_program_of_the_users_own_runs_in_place_of_ours(tmp_path: Path) -> None:
    command = ("emulate", str(DEMO), *FAST, "--json", "--force", "--output", str(tmp_path))
    ours = json.loads(CliRunner().invoke(ofan.cli, (*command, "--set", "policies=ofan")).stdout)[
        "records"
    ][0]
    program = ("--program", str(p4src.path("ofan")), "--like", "ofan")
    theirs = json.loads(CliRunner().invoke(ofan.cli, (*command, *program)).stdout)["records"][0]
    assert ours["cct_ps"] == theirs["cct_ps"]


def test_json_without_its_p4info_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.json").write_text("{}")
    said = refused(capsys, "emulate", str(DEMO), "--program", str(tmp_path / "mine.json"))
    assert "mine.json needs its P4Info beside it, mine.txtpb" in said


def test_a_kept_experiment_finds_its_connection_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.cm").write_text("Nodes 16\nConnections 1\n0->9 start 0 size 9\n")
    (tmp_path / "x.toml").write_text(
        '[fabric]\nk = 4\n[collective]\nmatrix = "file"\nfile = "t.cm"\n'
    )
    monkeypatch.chdir(tmp_path)
    for file in ("x.toml", "1/experiment.toml"):
        assert (
            CliRunner()
            .invoke(ofan.cli, ("emulate", file, "--force", "--output", "1"), catch_exceptions=False)
            .exit_code
            == 0
        )


@pytest.mark.parametrize(
    "name",
    sorted(path.name for path in EXPERIMENTS.glob("*.toml") if "[sweep]" not in path.read_text()),
)
def test_every_shipped_experiment_is_valid(name: str) -> None:
    assert list(load_experiment(EXPERIMENTS / name).scenarios())


def test_a_csv_file_comes_beside_the_table_with_parquet_and_a_figure(tmp_path: Path) -> None:
    names = {"--csv": "x.csv", "--parquet": "x.parquet", "--figure": "x.png"}
    files = {option: tmp_path / name for option, name in names.items()}
    exports = [word for option, path in files.items() for word in (option, str(path))]
    command = ["emulate", "demo", "--k", "4", "--message-bytes", "16KiB", "--policies", "ofan,jsq"]
    done = CliRunner().invoke(ofan.cli, [*command, *exports, "--output", str(tmp_path / "kept")])
    assert done.exit_code == 0, done.output
    assert "load balancer" in done.stdout
    assert pl.read_csv(files["--csv"])["policy"].to_list() == ["ofan", "jsq"]
    assert pl.read_parquet(files["--parquet"])["policy"].to_list() == ["ofan", "jsq"]
    assert files["--figure"].stat().st_size > 5000


def test_long_runs_without_a_terminal_print_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count(0, 4)
    lines_of = partial(Lines, clock=lambda: float(next(seconds)))
    monkeypatch.setattr(experiment_run, "Lines", lines_of)
    experiment = load_experiment(DEMO, ("policies=ofan", "fabric.k=16"))
    with experiment_run.reporting() as reporter, reporter.experiment(experiment):
        reporter.start(next(experiment.scenarios()))
        for tenth in range(10):
            reporter.advance(tenth / 10)

    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "Ofan, seed 1: filling the tables of switches first"
    assert lines
    assert all(line.startswith("demo: 0 of 1 runs, ") and " left" in line for line in lines)
