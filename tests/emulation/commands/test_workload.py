"""`ofan workload`: files from models and traces, their descriptions, and runs of them."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import ofan
from fattree import signs_of_life
from fattree.demand.workloads.file import read_workload
from fattree.files import memory
from fattree.texts.experiment_file import load_experiment
from fattree.texts.shipped import EXPERIMENTS

TRACES = Path(__file__).parents[2] / "fattree" / "workloads"
SMALL = {
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 4096,
    "vocab_size": 1000,
    "num_local_experts": 4,
    "num_experts_per_tok": 1,
}


def run(*arguments: object) -> str:
    result = CliRunner().invoke(ofan.cli, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(ofan.cli, list(map(str, arguments)))
    assert result.exit_code != 0
    return result.output


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SMALL))
    return path


def test_a_step_of_a_model_is_written_and_run(tmp_path: Path, config: Path) -> None:
    file = tmp_path / "step.parquet"
    spread = ("--gpus", 16, "--tp", 2, "--pp", 2, "--ep", 2, "--batch", 8, "--sequence", 2048)
    said = run("workload", "from-model", config, file, *spread, "--scale", 16)
    assert "tp 2 x pp 2 x dp 4, ep 2, 8 sequences of 2048 tokens" in said
    assert "divided by 16, latencies are not" in said
    # A user who spreads a model also wants to know whether it fits.
    shown = run("workload", "show", file)
    assert said.startswith(shown)
    assert re.fullmatch(r"[\d.]+ GB of a GPU's memory .* of activations\n", said[len(shown) :])

    options = ("--k", 4, "--matrix", "workload", "--set", f"collective.file={file}")
    shown = run("sim", "run", *options, "--set", "collective.placement=rail")
    times = r"step ([\d.,]+) ms \(16 times the run's CCT, ([\d.]+) µs\), .* alone ([\d.,]+)"
    step_line = re.search(times, shown)
    assert step_line
    step, run_us, computed = (float(number.replace(",", "")) for number in step_line.groups())
    # The table has the run's own time, and the line shows how the two belong together.
    assert step == pytest.approx(16 * run_us / 1000, rel=1e-3) and step > computed
    assert re.search(rf"CCT \(µs\).*Ofan +1 +{re.escape(step_line[2])} ", shown, re.DOTALL)
    alone = re.search(r"computations alone: ([\d.,]+) ms", said)
    assert alone
    assert computed == pytest.approx(16 * float(alone[1]), rel=1e-2)

    (record,) = json.loads(run("sim", "run", *options, "--json"))["runs"]
    assert (record["scale"], record["matrix"]) == (16, "workload")


@pytest.mark.parametrize(
    ("spread", "said"),
    [
        (("--pp", 2, "--virtual-stages", 2), "dp 4, ep 1, 8 sequences .* tokens, 2 stages a GPU$"),
        (("--pp", 2, "--zero-bubble", "--zero", 2), "tokens, zero bubble, ZeRO 2$"),
        (("--pp", 2, "--dual-pipe", "--dp", 4, "--batch", 16), "tokens, DualPipe$"),
        (("--pp", 2, "--thin-ends", "--recompute"), "tokens, recomputation$"),
        (("--cp", 2), "tp 2 x cp 2 x pp 1 x dp 4, ep 1"),
        (
            ("--ep", 4, "--by-layer", "--expert-skew", 1.5, "--seed", 7),
            r"exchanges by layer, experts by Zipf's law \(1.5\), seed 7$",
        ),
        (("--ep", 2, "--expert-shares", "3,1"), "experts of given shares$"),
        (
            ("--jitter", 0.1, "--stragglers", 2, "--slowdown", 1.2),
            r"jitter 0.1, stragglers 2 \(times 1.2\), seed 1$",
        ),
    ],
)
def test_a_step_says_how_it_is_run(
    tmp_path: Path, config: Path, spread: tuple[object, ...], said: str
) -> None:
    file = tmp_path / "step.parquet"
    many = ("--gpus", 16, "--tp", 2, "--batch", 8, "--sequence", 2048, "--scale", 64)
    shown = run("workload", "from-model", config, file, *many, *spread)
    assert re.search(said, shown.splitlines()[0])
    assert shown.splitlines()[0] == run("workload", "show", file).splitlines()[0]
    run("sim", "run", "--k", 4, "--matrix", "workload", "--set", f"collective.file={file}")


def test_a_served_model_is_written_and_run(tmp_path: Path) -> None:
    file = tmp_path / "serve.parquet"
    model = EXPERIMENTS / "llama_405b.json"
    served = ("--prompt", 100, "--requests", 4, "--tokens", 2, "--scale", 16)
    shown = run("workload", "serve-model", model, file, *served)
    # Insights into DeepSeek-V3 2025, table 1.
    assert "per token: 516.096 KB of keys and values sent" in shown
    assert "1 instances of 8 GPUs prefill, 1 of 8 decode 2 tokens each" in shown
    graph, about = read_workload(str(file))
    assert (about.ranks, about.gpus_per_server, about.scale) == (16, 8, 16)
    assert graph.size.sum() == pytest.approx(4 * 100 * 516_096 / 16, rel=1e-4)
    run("sim", "run", "--k", 4, "--matrix", "workload", "--set", f"collective.file={file}")

    few = ("--decode-tp", 16, "--kv-bytes", 1, *served)
    alone = run("workload", "serve-model", model, file, *few)
    assert "1 of 16 decode 2 tokens each" in alone and "258.048 KB of keys" in alone


def test_the_scale_leaves_so_many_packets(tmp_path: Path) -> None:
    file = tmp_path / "step.parquet"
    model = EXPERIMENTS / "llama_405b.json"
    run("workload", "from-model", model, file, "--gpus", 64, "--tp", 8, "--batch", 8)
    graph, about = read_workload(str(file))
    assert about.scale & (about.scale - 1) == 0
    assert 4_000_000 < graph.size.sum() / 65_000 < 12_500_000


def test_traces_of_others_are_written(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    said = run("workload", "from-goal", TRACES / "ring.goal.bin", file)
    assert "36 operations, 28 dependencies, 480,000 bytes" in said
    assert (
        said.splitlines()[1:]
        == run("workload", "from-goal", TRACES / "ring.goal", file).splitlines()[1:]
    )
    said = run("workload", "from-chakra", TRACES / "step", file, "--algorithm", "recursive")
    assert "24 nodes, 24 dependencies, 396,000 bytes" in said
    run("sim", "run", "--k", 4, "--matrix", "workload", "--set", f"collective.file={file}")


def test_what_is_wrong_is_one_line(tmp_path: Path, config: Path) -> None:
    file = tmp_path / "x.parquet"
    said = refused("workload", "from-model", config, file, "--gpus", 10, "--tp", 4)
    assert "tp 4 x pp 1 x dp 2 does not make 10 GPUs" in said
    assert "cannot be read" in refused("workload", "show", tmp_path / "none.parquet")
    assert "there is no" in refused("workload", "from-chakra", tmp_path / "none", file)


def test_jobs_have_times_of_their_own() -> None:
    shown = run("sim", "run", EXPERIMENTS / "two_jobs.toml", "--set", "policies=ofan")
    job_times = re.search(r"Ofan, seed 1: reduce ([\d.]+) µs, publish ([\d.]+) µs, experts", shown)
    assert job_times
    assert float(job_times[1]) < float(job_times[2])


def test_times_of_jobs_are_means_over_seeds() -> None:
    alone = [
        run("sim", "run", EXPERIMENTS / "two_jobs.toml", "--policies", "ofan", "--seed", seed)
        for seed in (1, 2)
    ]
    both = run("sim", "run", EXPERIMENTS / "two_jobs.toml", "--policies", "ofan", "--seeds", 2)
    times = [float(re.findall(r"reduce ([\d.]+) µs", shown)[0]) for shown in alone]
    (mean,) = re.findall(r"Ofan, mean of 2 seeds: reduce ([\d.]+) µs", both)
    assert float(mean) == pytest.approx(sum(times) / 2, abs=0.001)


JOBS = """
label = "with an incast"
[fabric]
k = 4
[[jobs]]
name = "many"
collective = { matrix = "incast", message_bytes = 65536 }
[[jobs]]
name = "single"
collective = { matrix = "pairs", pairs = [[0, 5]], message_bytes = 65536 }
"""


@pytest.mark.slow
def test_rows_have_a_column_for_each_job_and_the_label(tmp_path: Path) -> None:
    file, rows, table = (tmp_path / name for name in ("x.toml", "x.csv", "x.parquet"))
    file.write_text(JOBS + '[sweep]\n"jobs.many.start_ns" = [0, 9000]\n')
    shown = run("sim", "sweep", file, "--store", tmp_path / "x", "--csv", rows, "--parquet", table)
    assert "many.start_ns" in shown

    frame = pl.read_csv(rows)
    assert frame["label"].to_list() == ["with an incast"] * 2
    assert frame["jobs.many.start_ns"].to_list() == [0, 9000]
    for name in ("many", "single"):
        said = [re.search(rf"\b{name}=(\d+)", text) for text in frame["jobs_ps"]]
        assert frame[f"jobs_ps.{name}"].to_list() == [int(match[1]) for match in said if match]

    columns = ["jobs_ps.many", "jobs_ps.single", "label", "jobs.many.start_ns"]
    assert pl.read_parquet(table)[columns].rows() == frame[columns].rows()


def test_a_folder_of_results_has_them_too(tmp_path: Path) -> None:
    file, folder = tmp_path / "x.toml", tmp_path / "out"
    file.write_text(JOBS)
    run("emulate", file, "--output", folder, "--csv", tmp_path / "x.csv")
    frame = pl.read_parquet(folder / "results.parquet")
    assert frame["jobs_ps.many"][0] > frame["jobs_ps.single"][0] > 0
    assert (
        pl.read_csv(tmp_path / "x.csv")["jobs_ps.many"].to_list() == frame["jobs_ps.many"].to_list()
    )


def test_a_failed_command_leaves_no_file(tmp_path: Path, config: Path) -> None:
    file = tmp_path / "x.parquet"
    (tmp_path / "x.goal").write_text("num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 1 {\ncalc 1\n}\n")
    assert "nothing is sent" in refused("workload", "from-goal", tmp_path / "x.goal", file)
    assert not file.exists()


def test_what_memory_has_no_room_for_is_refused_unless_forced(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 20_000)
    file = tmp_path / "x.parquet"
    for command in (
        ("from-goal", TRACES / "ring.goal"),
        ("from-goal", TRACES / "ring.goal.bin"),
        ("from-chakra", TRACES / "step"),
        ("from-model", config, "--gpus", 16, "--tp", 2),
    ):
        name, source, *options = command
        arguments = ("workload", name, source, file, *options)
        assert "--force tries all the same" in refused(*arguments)
        assert not file.exists()
        run(*arguments, "--force")
        file.unlink()


@pytest.mark.parametrize(
    "options",
    [("--batch", 10**9), ("--buckets", 10**9), ("--teraflops", "nan"), ("--nvlink-gbs", "inf")],
)
def test_absurd_steps_are_refused_at_once(
    tmp_path: Path, config: Path, options: tuple[object, ...]
) -> None:
    spread = ("--gpus", 8, "--tp", 2, "--pp", 2)
    said = refused("workload", "from-model", config, tmp_path / "x.parquet", *spread, *options)
    assert len(said.splitlines()[-1]) < 200 and "Traceback" not in said


@pytest.mark.slow
def test_the_page_runs_what_it_has_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (EXPERIMENTS.resolve().parent / "docs" / "workloads.md").read_text(encoding="utf-8")
    lines = re.findall(r"^ofan (workload from-model|sim run) (.*)$", page, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    written = ""
    for command, rest in lines[:4]:
        arguments = rest.split()
        if command == "sim run":
            assert arguments[1:] == ["--set", f"collective.file={written}"]
            experiment = load_experiment(EXPERIMENTS / Path(arguments[0]).name, arguments[2:])
            assert experiment.files == (written,)
        else:
            written = arguments[1]
            run("workload", "from-model", *arguments, "--scale", 20_000)

    assert [command for command, _ in lines[:4]] == ["workload from-model", "sim run"] * 2


def test_a_long_generation_gives_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signs_of_life, "EVERY_S", 1e-6)
    output = tmp_path / "step.parquet"
    with pytest.raises(SystemExit):
        ofan.main(["workload", "from-model", "gpt_13b.json", str(output), "--gpus", "8"])

    assert re.match(rf"still writing {output}, for 0 s \.\.\.\n", capsys.readouterr().err)
