"""Host rules of the user's own on command lines, in sweeps and in stores."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ofan
from fattree.errors import ExperimentError
from fattree.experiment.model import Collective, Experiment, Fabric, HostRule, OwnHostRule, Scenario
from fattree.texts.experiment_file import load_experiment, parse_experiment
from fattree.texts.experiment_writer import experiment_toml
from fattree.texts.sweep_file import load_sweep
from sim.sweeps.store import run_key
from sim.sweeps.sweeping import sweep
from tests.test_docs_your_own import RULE

pytestmark = pytest.mark.usefixtures("unrendered")

SMALL = ("--k", "4", "--message-bytes", "16KiB")
OTHER = RULE.replace("now_ps - state", "now_ps + 1 - state")
FIXED = """
def next_label(state, sender, rules, packets, now_ps):
    return 7
def on_ack(state, sender, rules, label, marked, now_ps):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rules, where the user stands."""
    (tmp_path / "fast_labels.py").write_text(RULE)
    (tmp_path / "fixed.py").write_text(FIXED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(*arguments: str) -> Any:
    result = CliRunner().invoke(ofan.cli, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def policies(*arguments: str) -> list[str]:
    return [row["policy"] for row in answer(*arguments)["runs"]]


def scenario(text: str, file: str = "mine.py", seed: int = 1) -> Scenario:
    rule = HostRule(file=file, text=text)
    small = Collective(message_bytes=8 * 4096)
    return Scenario(
        policy="host_pkt_ar", fabric=Fabric(k=4), collective=small, host_rule=rule, seed=seed
    )


def test_a_rule_runs_in_place_of_the_load_balancers_or_beside_them(folder: Path) -> None:
    run = ("sim", "run", *SMALL, "--host-rule", "fast_labels.py")
    assert policies(*run) == ["fast_labels.py"]
    assert policies(*run, "--policies", "ofan,host_pkt") == ["fast_labels.py", "ofan", "host_pkt"]
    (folder / "x.toml").write_text('policies = ["jsq"]\n')
    assert policies("sim", "run", "x.toml", *run[2:]) == ["fast_labels.py"]


def test_what_else_hosts_and_switches_do_is_that_of_another(folder: Path) -> None:
    run = ("sim", "run", *SMALL, "--host-rule", "fixed.py")
    rows = [answer(*run, *more)["runs"][0]["cct_ps"] for more in ((), ("--like", "ofan"))]
    ours = answer("sim", "run", *SMALL, "--policies", "ofan")["runs"][0]["cct_ps"]
    assert rows[1] == ours != rows[0]


def test_a_sweep_lists_rules_and_keeps_what_it_has_computed(folder: Path) -> None:
    (folder / "s.toml").write_text(
        'name = "s"\npolicies = ["flow"]\n[fabric]\nk = 4\n[collective]\nmessage_bytes = "16KiB"\n'
        '[host_rule]\nfile = "fixed.py"\n'
        '[sweep]\n"host_rule.file" = ["fixed.py", "fast_labels.py"]\n'
    )
    choices = [
        (run_scenario.balancer, run_scenario.host_rule and run_scenario.host_rule.text)
        for run_scenario in load_sweep("s.toml")
    ]
    ours = ("flow", None)
    assert choices == [("fixed.py", FIXED), ours, ("fast_labels.py", RULE), ours]
    rows = answer("sim", "sweep", "s.toml", "--jobs", "1")["runs"]
    assert [row["policy"] for row in rows] == ["fixed.py", "flow", "fast_labels.py"]
    table = CliRunner().invoke(ofan.cli, ["sim", "results", "results/s.sqlite"]).output
    assert "fixed.py" in table and "fast_labels.py" in table


def test_a_runs_key_has_the_rules_text_and_not_its_name() -> None:
    keys = [
        run_key(run_scenario)
        for run_scenario in (
            scenario(RULE),
            scenario(RULE, "other.py"),
            scenario(OTHER),
            scenario(OTHER).model_copy(update={"host_rule": None}),
        )
    ]
    assert keys[0] == keys[1] and len(set(keys)) == 3


def test_equal_rules_are_computed_once_and_keep_their_names() -> None:
    runs: list[str] = []
    records = sweep(
        [scenario(FIXED, "a.py"), scenario(FIXED, "b.py")],
        report=lambda finished, total: runs.append(f"{finished} of {total}"),
    )
    assert runs == ["0 of 1", "1 of 1"]
    assert [record.policy for record in records] == ["a.py", "b.py"]


@pytest.mark.slow
def test_workers_need_no_file(folder: Path) -> None:
    (folder / "fixed.py").unlink()
    scenarios = [scenario(text, seed=seed) for text in (FIXED, RULE) for seed in (1, 2)]
    remote, local = (sweep(scenarios, jobs=jobs) for jobs in (2, 1))
    assert [result.cct_ps for result in remote] == [result.cct_ps for result in local]


@pytest.mark.parametrize(
    "text",
    [
        RULE,
        f"{FIXED}# ''' \"\"\" \\n \\ é\n",
        FIXED.replace("pass\n", "pass  # '"),
        FIXED.replace("    ", "\t"),
        f"{FIXED}\f",
    ],
    ids=["the page's", "quotes", "a quote at the end", "tabs", "a form feed"],
)
def test_the_kept_experiment_has_the_rule(text: str) -> None:
    kept = Experiment(host_rule=OwnHostRule(file="mine.py", text=text, like="ofan"))
    assert parse_experiment(experiment_toml(kept), "kept") == kept


def test_the_rule_of_a_file_lies_beside_it(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "x.toml").write_text('[host_rule]\nfile = "../fixed.py"\n')
    rule = load_experiment("below/x.toml").host_rule
    assert rule and (rule.file, rule.text, rule.like) == ("fixed.py", FIXED, "host_pkt_ar")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--host-rule", "none.py"), "'none.py': No such file"),
        (("--host-rule", "wrong.py"), "wrong.py:2: next_label: it must return a number"),
        (("--like", "ofan"), "--like needs --program or --host-rule"),
        (("--host-rule", "fixed.py", "--like", "host_dr"), "Invalid value for '--like'"),
        (("--set", "host_rule.file=none.py"), "'none.py': cannot be read: No such file"),
        (("--set", "host_rule.like=ofan"), "host_rule.file is missing"),
        (("--host-rule", "latin.py"), "latin.py: cannot be read: not UTF-8 text"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    folder: Path, options: tuple[str, ...], complaint: str
) -> None:
    (folder / "wrong.py").write_text(FIXED.replace("pass", "x = 1").replace("return 7", "x = 7"))
    (folder / "latin.py").write_bytes(b"# \xe9\n")
    result = CliRunner().invoke(ofan.cli, ["sim", "run", *options])
    assert result.exit_code != 0
    last = result.output.strip().splitlines()[-1]
    assert complaint in last


def test_a_rule_that_is_too_long_is_refused() -> None:
    with pytest.raises(ExperimentError, match=r"host_rule\.text"):
        parse_experiment(f'[host_rule]\nfile = "x"\ntext = "{"#" * 100_001}"', "x.toml")


ROTATION = Path(ofan.__file__).parent / "p4src" / "ofan.p4"


def test_a_rule_and_a_program_are_one_load_balancer_on_both_networks(folder: Path) -> None:
    (folder / "x.toml").write_text(
        'name = "x"\n[fabric]\nk = 4\n[collective]\nmessage_bytes = "16KiB"\n'
    )
    yours = ("--program", str(ROTATION), "--host-rule", "fixed.py", "--like", "ofan")
    together = "ofan.p4 fixed.py"
    compared = answer("compare", "x.toml", *yours, "--policies", "ofan")
    assert compared["differences"] == []
    assert [row["policy"] for row in compared["records"]] == ["ofan", together] * 2
    runs = answer("sim", "run", "x.toml", *yours, "--policies", "ofan")["runs"]
    assert [row["policy"] for row in runs] == ["ofan", together]
    runs += answer("sim", "sweep", "x.toml", *yours, "--jobs", "1")["runs"]
    emulated = answer("emulate", "x.toml", *yours)["records"]
    assert [row["policy"] for row in (runs[-1], emulated[0])] == [together, together]
    # Ofan's switches do not look at labels.
    assert len({row["cct_ps"] for row in (*compared["records"], *runs, *emulated)}) == 1


def test_emulate_keeps_what_runs_again(folder: Path) -> None:
    first = answer(
        *("emulate", "--host-rule", "fast_labels.py", "--policies", "host_pkt"),
        *("--set", "collective.message_bytes=16KiB"),
    )
    assert first["folder"] == "results/demo_fast_labels"
    (folder / "fast_labels.py").unlink()
    again = answer("emulate", "results/demo_fast_labels/experiment.toml")
    names, times = (
        [[record[key] for record in run["records"]] for run in (first, again)]
        for key in ("policy", "cct_ps")
    )
    assert names == [["fast_labels.py", "host_pkt"]] * 2 and times[0] == times[1]
