from pathlib import Path

import pytest

from fattree.errors import ExperimentError
from fattree.texts.sweep_file import load_sweep, parse_sweep

SWEEP = """name = "x"
policies = ["ofan", "jsq"]
seeds = 2
[fabric]
k = 4
[sweep]
"collective.message_bytes" = ["64KiB", "1MiB"]
"fabric.latency_ns" = [500, 600,
  700]
"""


def test_every_combination_is_run_with_every_policy_and_seed() -> None:
    scenarios = parse_sweep(SWEEP, "x.toml")
    points = {
        (s.collective.message_bytes, s.fabric.latency_ns, s.policy, s.seed) for s in scenarios
    }
    assert len(scenarios) == len(points) == 2 * 3 * 2 * 2
    assert {size for size, *_ in points} == {65_536, 1_048_576}
    assert {scenario.fabric.k for scenario in scenarios} == {4}


JOBS = """
[fabric]
k = 4
[[jobs]]
name = "many"
collective = { matrix = "incast" }
[[jobs]]
name = "single"
collective = { matrix = "pairs", pairs = [[0, 5]] }
[sweep]
"""


def test_keys_of_jobs_are_swept_by_the_jobs_names() -> None:
    swept = (
        '"jobs.many.collective.message_bytes" = ["64KiB", 5000]\n"jobs.single.start_ns" = [0, 7]'
    )
    points = {
        (s.jobs[0].collective.message_bytes, s.jobs[1].start_ns)
        for s in parse_sweep(JOBS + swept, "x.toml")
    }
    assert points == {(65_536, 0), (65_536, 7), (5000, 0), (5000, 7)}


def test_a_matrix_of_a_job_is_swept_with_its_keys() -> None:
    swept = '"jobs.many.collective.matrix" = ["broadcast", "incast"]'
    scenarios = parse_sweep(JOBS + swept, "x.toml", ["jobs.many.collective.chunks=2"])
    assert [s.jobs[0].collective.matrix for s in scenarios] == ["broadcast", "incast"]


@pytest.mark.parametrize(
    ("swept", "message"),
    [
        ('"jobs.none.start_ns" = [1]', "x.toml:11: jobs.none.start_ns: names no key of a job"),
        ('"jobs.none.collective.chunks" = [1]', "x.toml:11: jobs.none.collective.chunks: names"),
        ('"jobs.many.start_ns" = [1, -1]', "x.toml:11: jobs.many.start_ns = -1: must be greater"),
        ('"jobs.many.starts" = [1]', "x.toml:11: unknown key jobs.many.starts"),
    ],
)
def test_a_wrong_swept_key_of_a_job_is_named(swept: str, message: str) -> None:
    with pytest.raises(ExperimentError) as error:
        parse_sweep(JOBS + swept, "x.toml")
    assert str(error.value).startswith(message)


def test_a_file_without_sweep_is_an_experiment() -> None:
    assert len(parse_sweep('policies = ["ofan", "jsq"]\nseeds = 3\n', "x.toml")) == 6


def test_overrides_change_the_base() -> None:
    assert {scenario.seed for scenario in parse_sweep(SWEEP, "x.toml", ["seeds=1", "seed=9"])} == {
        9
    }


def test_an_override_takes_the_place_of_swept_values() -> None:
    scenarios = parse_sweep(SWEEP, "x.toml", ["fabric.latency_ns=900"])
    assert {scenario.fabric.latency_ns for scenario in scenarios} == {900}
    assert len(scenarios) == 2 * 2 * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SWEEP + '"fabric.kk" = [1]\n', "x.toml:10: unknown key fabric.kk (did you mean k?)"),
        (SWEEP + '"fabric.k" = [4, 7]\n', "x.toml:10: fabric.k = 7: must be a multiple of 2"),
        (SWEEP + "fabric.k = 4\n", "x.toml:10: fabric.k: expected a list of values"),
        (SWEEP + '"fabric.k" = []\n', "x.toml:10: fabric.k: expected a list of values"),
        (SWEEP + "seed = [-1]\n", "x.toml:10: seed = -1"),
        (SWEEP + '"fabric.k.x" = [3]\n', "x.toml:10: fabric.k.x = 3"),
        (
            SWEEP + 'policies = [["ofna"]]\n',
            "x.toml:10: policies = ['ofna']: no load balancer 'ofna'",
        ),
        (SWEEP + "[packets]\n", "x.toml:6: [sweep] must be the last table"),
        (SWEEP + "seeds", "x.toml:10: not TOML: "),
        (SWEEP + "seeds = [1000000]\n", "x.toml:10: seeds = 1000000"),
        (SWEEP.replace("1MiB", "1Mob"), "x.toml:7: collective.message_bytes: '1Mob' is not a size"),
        (SWEEP.replace("k = 4", "k = 5"), "x.toml:5: fabric.k = 5: must be a multiple of 2"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ExperimentError) as error:
        parse_sweep(text, "x.toml")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


FSDP = """[sweep]
"collective.matrix" = ["fsdp"]
"collective.model" = ["llama-7b", "llama-70b"]
"""


def test_a_swept_matrix_takes_its_own_keys() -> None:
    assert [scenario.collective.model for scenario in parse_sweep(FSDP, "x.toml")] == [
        "llama-7b",
        "llama-70b",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            FSDP.replace('["fsdp"]', '["fsdp", "ring"]'),
            "x.toml:2: collective.model has no effect on matrix ring, which takes",
        ),
        (
            FSDP.replace("collective.model", "collective.modle"),
            "x.toml:3: unknown key collective.modle (did you mean model?)",
        ),
        (FSDP.replace('"fsdp"', '"fspd"'), "x.toml:2: collective.matrix = 'fspd': must be"),
        (FSDP.replace("llama-70b", "gpt"), "x.toml:3: collective.model = 'gpt': must be"),
    ],
)
def test_no_run_of_a_sweep_has_keys_without_effect(text: str, message: str) -> None:
    with pytest.raises(ExperimentError) as error:
        parse_sweep(text, "x.toml")
    assert str(error.value).startswith(message)


def test_files_are_beside_the_sweep(tmp_path: Path) -> None:
    head = 'policies = ["ofan"]\n[fabric]\nk = 4\n[collective]\nmatrix = "file"\n'
    for name in ("one.cm", "two.cm"):
        (tmp_path / name).write_text("Nodes 16\nConnections 1\n0->1 id 1 start 0 size 8192\n")

    (tmp_path / "both.toml").write_text(f'{head}[sweep]\n"collective.file" = ["one.cm", "two.cm"]')
    (tmp_path / "one.toml").write_text(f'{head}file = "one.cm"\n[sweep]\n"packets.gap_bytes" = [0]')
    files = [
        scenario.collective.file
        for name in ("both", "one")
        for scenario in load_sweep(tmp_path / f"{name}.toml")
    ]
    assert files == [str(tmp_path / name) for name in ("one.cm", "two.cm", "one.cm")]


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="cannot be read: No such file"):
        load_sweep(tmp_path / "none.toml")
