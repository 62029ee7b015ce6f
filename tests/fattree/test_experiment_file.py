"""Experiment files: TOML in, experiments out, and one line with file, line and key for whatever is
wrong.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.demand.traffic import flows
from fattree.errors import ExperimentError
from fattree.experiment.collective import MATRIX_KEYS, Matrix
from fattree.experiment.model import Collective, Experiment, OwnProgram, Settings
from fattree.experiment.sizes import size_in_bytes
from fattree.policies import POLICIES
from fattree.texts import experiment_file
from fattree.texts.experiment_file import (
    load_experiment,
    parse_experiment,
    parse_toml,
)
from fattree.texts.experiment_writer import experiment_toml

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SAMPLE = """\
name = "sample"            # shown in results
policies = ["flow", "ofan"]
seeds = 3

[fabric]
k = 4
latency_ns = 500.5

[collective]
matrix = "pairs"
message_bytes = "64KiB"
pairs = [[0, 15], [15, 0]]

[failures]
convergence_rtt = inf
events = [
    { link = "agg0_0-core0_1", down_ns = 10 },
    { link = "edge0_1-agg0_0", down_ns = 1, up_ns = 5 },
]
"""


def test_a_file_becomes_an_experiment() -> None:
    experiment = parse_experiment(SAMPLE, "x.toml")
    assert experiment.policies == ("flow", "ofan")
    assert (
        experiment.fabric.k,
        experiment.fabric.latency_ns,
        experiment.collective.message_bytes,
    ) == (
        4,
        500.5,
        65_536,
    )
    assert experiment.failures.convergence_rtt == float("inf")
    assert [event.up_ns for event in experiment.failures.events] == [None, 5]


def test_an_empty_file_is_the_papers_default() -> None:
    assert parse_experiment("", "x.toml") == Experiment()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[fabric]\nk = 5", "x.toml:2: fabric.k = 5: must be a multiple of 2"),
        (
            "[fabric]\n\nk = 8\nlatncy_ns = 3",
            "x.toml:4: unknown key fabric.latncy_ns (did you mean latency_ns?)",
        ),
        (
            '[[jobs]]\nname = "a"\n[jobs.collective]\nmatrix = "all_reduce"\n'
            '[[jobs]]\nname = "b"\n[jobs.collective]\nmatrix = "all_reduc"',
            "x.toml:8: jobs.b.collective.matrix = 'all_reduc': must be 'permutation',",
        ),
        (
            '[collective]\nmatrix = "pairs"\npairs = [\n  [0, 1],\n  [2, 3]\n]\nmessage_byte = 3',
            "x.toml:7: unknown key collective.message_byte",
        ),
        ("# a\u2028b\n[fabric]\nkk = 4", "x.toml:3: unknown key fabric.kk"),
        (".".join(["a"] * 700) + " = 1", "x.toml:1: a key of more than 8 parts"),
        ("[fabric]\nrate_gbps = true", "x.toml:2: rate_gbps = true: must be a number"),
        (
            '[transport]\ntrimming = "yes"',
            'x.toml:2: trimming = "yes": must be true or false',
        ),
        ("[transport]\nacks_first = 1", "x.toml:2: acks_first = 1: must be true or false"),
        (
            '[transport]\nreceiver_share = "no"',
            'x.toml:2: receiver_share = "no": must be true or false',
        ),
        ('[fabric]\nk = "four"', "x.toml:2: fabric.k = 'four': must be a whole number, as in 8"),
        ("k = 4", "x.toml:1: unknown key k (it belongs in the table [fabric])"),
        ("[fabrik]\nk = 4", "x.toml:1: unknown key fabrik (did you mean fabric?)"),
        (
            "[collective]\nmessage_bytes = 0",
            "x.toml:2: collective.message_bytes = 0: must be greater than 0",
        ),
        (
            "[collective]\nmessage_bytes = '3 bits'",
            "x.toml:2: collective.message_bytes = '3 bits': must be bytes, or text",
        ),
        (
            "[collective]\nmatrix = 'ring'\nsteps = 0",
            "x.toml:3: collective.steps = 0: must be greater than or equal to 1",
        ),
        (
            "policies = ['ofn']",
            "x.toml:1: no load balancer 'ofn' (did you mean ofan?); there are flow, ",
        ),
        ("policies = []", "x.toml:1: policies is empty"),
        ("policies = ['ofan', 'jsq', 'ofan']", "x.toml:1: policies names ofan twice"),
        (
            "[program]\nfile = 'x.p4'\nlike = 'host_dr'",
            "x.toml:3: program.like = 'host_dr': must be one of flow, ",
        ),
        (
            "seed = 2\n[program]\nfile = 'x.p4'",
            "x.toml:2: only `ofan emulate` runs a program of yours",
        ),
        ("policies = 'ofan'", "x.toml:1: policies = 'ofan': must be a list"),
        ("fabric = 4", "x.toml:1: fabric = 4: must be a table"),
        ("name = ", "x.toml:1: not TOML: Invalid value, text stands in quotes"),
        (
            "[failures]\nevents = [{ link = 'edge0_0-agg0_9', down_ns = 1 }]",
            "x.toml:2: there is no switch agg0_9 at k = 8",
        ),
        (
            "[failures]\nevents = [{ link = 'edge0_0-agg0_0' }]",
            "x.toml:2: failures.events.0.down_ns is missing",
        ),
        (
            "[failures]\nrate = 2.0",
            "x.toml:2: failures.rate = 2.0: must be less than or equal to 1",
        ),
        ("[failures]\nconvergence_rtt = nan", "x.toml:2: failures.convergence_rtt = nan: must be"),
        ("[collective]\nmatrix = 'pairs'", "x.toml:2: matrix pairs needs collective.pairs"),
        (
            "[collective]\nmatrix = 'pairs'\npairs = [[0, 128]]",
            "x.toml:3: collective.pairs[0] is [0, 128]: k = 8 has hosts 0 to 127",
        ),
        ("[collective]\nmatrix = 'fsdp'", "x.toml:2: matrix fsdp needs collective.model"),
        (
            "[collective]\nmatrix = 'all_to_all'\n[fabric]\nk = 64",
            "x.toml:2: this collective has 4,294,901,760 flows",
        ),
        (
            "[collective]\nmatrix = 'ring'\nmodel = 'llama-70b'",
            "x.toml:3: collective.model has no effect on matrix ring, "
            "which takes message_bytes, steps (model is for fsdp)",
        ),
        # A default is said to no purpose, too.
        (
            "[collective]\nmatrix = 'fsdp'\nmodel = 'llama-7b'\nmessage_bytes = '1MiB'",
            "x.toml:4: collective.message_bytes has no effect on matrix fsdp",
        ),
        (
            "[collective]\nmatrix = 'fsdp'\nmodel = 'llama-7b'\nlayers = 16",
            "x.toml:4: matrix fsdp needs collective.model, or parameters and layers, "
            "or hidden_size, and not model and layers",
        ),
        (
            "[collective]\ngpus = 16",
            "x.toml:2: unknown key collective.gpus (fabric.k makes k*k*k/4 hosts)",
        ),
        (
            "[collective]\nstep = 3",
            "x.toml:2: unknown key collective.step (matrix permutation takes message_bytes)",
        ),
        (
            "[collective]\nmatrix = 'ring'\nstep = 3",
            "x.toml:3: unknown key collective.step (did you mean steps?)",
        ),
        (
            "[failures]\nevents = [{ link = 'edge0_0-agg0_0', down_us = 1 }]",
            "x.toml:2: unknown key failures.events.0.down_us (did you mean down_ns?)",
        ),
        ("seed = 9223372036854775808", "x.toml:1: seed = 9223372036854775808: must be less than"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        parse_experiment(text, "x.toml")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


STRANGERS = {
    "message_bytes": 4096,
    "pairs": [[0, 1]],
    "file": "x.cm",
    "start_unit": "us",
    "steps": 2,
    "servers_per_ring": 2,
    "model": "llama-7b",
    "hidden_size": 64,
    "layers": 2,
    "parameters": 64,
    "algorithm": "ring",
    "chunks": 2,
    "hosts": "pod0",
    "placement": "random",
}


@pytest.mark.parametrize("key", STRANGERS)
@pytest.mark.parametrize("matrix", MATRIX_KEYS)
def test_a_key_is_heeded_by_its_matrix_or_refused(matrix: Matrix, key: str) -> None:
    """In files and in Python alike; no key is taken and forgotten."""
    text = f"[collective]\nmatrix = '{matrix}'\n{key} = {json.dumps(STRANGERS[key])}\n"
    refused = f"collective.{key} has no effect on matrix {matrix}, "
    try:
        parse_experiment(text, "x.toml")
        said = ""
    except ExperimentError as error:
        said = str(error)

    is_heeded = key in MATRIX_KEYS[matrix]
    assert (refused in said) != is_heeded
    if not is_heeded:
        assert said.startswith("x.toml:3: ")
        with pytest.raises(ValueError, match=refused):
            Collective.model_validate({"matrix": matrix, key: STRANGERS[key]})


def test_every_key_is_some_matrixs() -> None:
    heeded = {"matrix", *(key for keys in MATRIX_KEYS.values() for key in keys)}
    assert heeded == set(Collective.model_fields) == {"matrix", *STRANGERS}


def test_overrides_replace_values() -> None:
    overrides = [
        "fabric.k=8",
        "policies=jsq,rsq",
        "name=other",
        "collective.message_bytes=1 MiB",
        "failures.events=[]",
    ]
    experiment = parse_experiment(SAMPLE, "x.toml", overrides)
    assert (experiment.fabric.k, experiment.policies, experiment.name) == (
        8,
        ("jsq", "rsq"),
        "other",
    )
    assert (experiment.collective.message_bytes, experiment.failures.events) == (1 << 20, ())
    assert experiment.collective.pairs == ((0, 15), (15, 0))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("fabric.k=5", "--set fabric.k: fabric.k = 5: must be a multiple of 2"),
        ("fabric.kk=5", "--set fabric.kk: unknown key fabric.kk"),
        ("fabric.k", "'fabric.k': expected KEY=VALUE, as in fabric.k=8"),
        ("=3", "'=3': expected KEY=VALUE"),
        ("name.first=3", "'name.first=3': name is not a table"),
        ("policies=ofn", "--set policies: no load balancer 'ofn' (did you mean ofan?)"),
        (
            "collective.message_bytes=lots",
            "--set collective.message_bytes: collective.message_bytes = 'lots': must be bytes",
        ),
        # Quoted whole up to 60 characters.
        (f"fabric.k={'x' * 58}", f"--set fabric.k: fabric.k = '{'x' * 58}': "),
        (f"fabric.k={'x' * 59}", f"--set fabric.k: fabric.k = '{'x' * 56}...: "),
    ],
)
def test_wrong_overrides_are_named(override: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        parse_experiment(SAMPLE, "x.toml", [override])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("1MiB", 1 << 20),
        ("64 KiB", 65_536),
        ("16MB", 16_000_000),
        ("1.5kB", 1_500),
        ("2 GiB", 2 << 30),
        ("7B", 7),
    ],
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "1.0000001B", "-1B", "1 mib", "٣B", "9" * 400 + "MiB"])
def test_wrong_sizes_are_refused(text: str) -> None:
    with pytest.raises(ExperimentError, match="is not a size"):
        size_in_bytes(text)


def test_matrix_files_are_sought_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "t.cm").write_text("Nodes 16\nConnections 1\n0->9 start 0 size 9\n")
    path = tmp_path / "x.toml"
    path.write_text('[fabric]\nk = 4\n[collective]\nmatrix = "file"\nfile = "t.cm"\n')
    experiment = load_experiment(path)
    assert len(flows(next(experiment.scenarios()))) == 1
    path.write_text(path.read_text().replace("t.cm", "u.cm"))
    with pytest.raises(
        ExperimentError, match=r"x\.toml:5: .*u\.cm'?: cannot be read: No such file"
    ):
        load_experiment(path)


def test_a_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def noted(text: str, source: str) -> dict[str, object]:
        parsed.append(source)
        return parse_toml(text, source)

    monkeypatch.setattr(experiment_file, "parse_toml", noted)
    (tmp_path / "x.toml").write_text("fabric.k = 8")
    assert load_experiment(tmp_path / "x.toml").fabric.k == 8
    assert parsed == [str(tmp_path / "x.toml")]


def test_a_file_that_sets_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("# k = 4\n")
    with pytest.raises(ExperimentError, match=r"x\.toml: the file sets nothing"):
        load_experiment(tmp_path / "x.toml", ["fabric.k=4"])


def test_a_program_is_sought_beside_the_experiment_and_needs_no_load_balancer_of_ours(
    tmp_path: Path,
) -> None:
    (tmp_path / "x.toml").write_text("policies = []\n[program]\nfile = 'mine.p4'\nlike = 'ofan'\n")
    experiment = load_experiment(tmp_path / "x.toml", takes_program=True)
    assert experiment.program == OwnProgram(file=str(tmp_path / "mine.p4"), like="ofan")
    assert (
        parse_experiment(experiment_toml(experiment), "again.toml", takes_program=True)
        == experiment
    )


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_unreadable_files_are_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ExperimentError, match=r"x\.toml'?: cannot be read"):
        load_experiment(path)


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_is_valid_and_can_be_written_back(path: Path) -> None:
    if "[sweep]" in path.read_text():
        pytest.skip("a sweep file, not an experiment")
    experiment = load_experiment(path)
    assert parse_experiment(experiment_toml(experiment), "again.toml") == experiment


texts = st.text(max_size=8)
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
experiments = st.builds(
    lambda name, policies, k, size, latency, g: Experiment.model_validate(
        {
            "name": name,
            "policies": policies,
            "fabric": {"k": k, "latency_ns": latency},
            "collective": {"message_bytes": size},
            "failures": {
                "convergence_rtt": g,
                "events": [{"link": "edge0_0-agg0_0", "down_ns": latency}],
            },
        }
    ),
    names,
    st.lists(st.sampled_from(sorted(POLICIES)), min_size=1, max_size=3, unique=True),
    st.sampled_from([2, 4, 64]),
    st.integers(1, 2**40),
    st.floats(0.001, 10**9),
    st.one_of(st.floats(0, 10_000), st.just(float("inf"))),
)


@given(experiments)
def test_resolved_experiments_read_back_equal(experiment: Experiment) -> None:
    assert parse_experiment(experiment_toml(experiment), "again.toml") == experiment


FRAGMENTS = (
    *"=[]{}'\"#\n.,-k0\x00", "]]", "inf", "nan", "1e400", "-7", "true", "1979-05-27", "\\u",
    "fabric", "[[fabric]]", "[failures]", "events", "pairs", '"1MiB"', "[[0, 1]]", "[" * 5_000,
    *Settings.model_fields,
)  # fmt: skip
fragments = st.sampled_from(FRAGMENTS)


@settings(max_examples=600)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 6), fragments), max_size=4))
def test_edited_files_are_read_or_refused(edits: list[tuple[int, int, str]]) -> None:
    text = SAMPLE
    for index, removed, inserted in edits:
        text = text[:index] + inserted + text[index + removed :]
    try:
        parse_experiment(text, "x.toml")
    except ExperimentError as error:
        assert str(error).startswith("x.toml") and "\n" not in str(error)


@settings(max_examples=400)
@given(
    st.one_of(st.text(max_size=60), st.lists(fragments, max_size=12).map("".join)),
    st.lists(texts, max_size=2),
)
def test_any_text_is_read_or_refused(text: str, overrides: list[str]) -> None:
    try:
        parse_experiment(text, "x.toml", overrides)
    except ExperimentError as error:
        assert str(error) and "\n" not in str(error)
