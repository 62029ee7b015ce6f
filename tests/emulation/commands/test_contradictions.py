"""A contradictory command line is one line and exit code 2, before anything runs."""

import os
from functools import partial
from pathlib import Path

import pytest

import ofan
from emulation.held import cli as held_cli
from emulation.held.client import ask
from fattree.errors import ExperimentError
from fattree.experiment.model import Experiment
from fattree.texts.experiment_file import parse_experiment

HUGE = str(2**63 - 1)
FAST_LABELS = ("--host-rule", "fast_labels.py")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(arguments)

    out, err = capsys.readouterr()
    assert stopped.value.code == 2 and out == ""
    assert err.startswith("ofan: ") and err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", ["sim run demo", "sim sweep sweep", "emulate demo"])
@pytest.mark.parametrize(
    "options, said",
    [
        (
            ("--policies", "jsq", "--set", 'policies=["ofan"]'),
            "--policies and --set policies both set",
        ),
        (("--set", "seeds=2", "--seeds", "3"), "--seeds and --set seeds both set"),
        (("--k", "4", "--set", "fabric={k=6}"), "--k and --set fabric both set"),
        (
            (*FAST_LABELS, "--set", "host_rule.file=x.py"),
            "--host-rule and --set host_rule.file both set",
        ),
        ((*FAST_LABELS, "--like", "jsq", "--set", "host_rule.like=ofan"), "--like and --set"),
    ],
)
def test_a_key_is_given_once(
    capsys: pytest.CaptureFixture[str], command: str, options: tuple[str, ...], said: str
) -> None:
    assert said in refused(capsys, *command.split(), *options)


def test_options_that_only_some_commands_have_are_keys_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = (
        "emulate",
        "demo",
        "--detection",
        "probe",
        "--set",
        "controller.detection=announced",
    )
    assert "--detection and --set controller.detection both set" in refused(capsys, *arguments)
    arguments = ("sim", "run", "--program", "two_choices.p4", "--set", "program.file=x.p4")
    assert "--program and --set program.file both set" in refused(capsys, *arguments)


@pytest.mark.parametrize("command", ["sim run", "emulate", "compare", "watch"])
def test_a_sweep_is_not_run_as_an_experiment(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    said = refused(capsys, *command.split(), "sweep")
    assert ": a sweep: ofan sim sweep " in said and said.endswith("sweep.toml runs it\n")


@pytest.mark.parametrize("command", ["sim run demo", "emulate demo", "sim sweep sweep"])
def test_the_last_seed_is_a_seed(capsys: pytest.CaptureFixture[str], command: str) -> None:
    said = refused(capsys, *command.split(), "--seed", HUGE, "--seeds", "2")
    assert f"the last seed would be {2**63}, above 2**63 - 1" in said


def test_the_last_seed_may_be_the_greatest() -> None:
    experiment = Experiment(seed=2**63 - 2, seeds=2)
    assert [scenario.seed for scenario in experiment.scenarios()] == [2**63 - 2, 2**63 - 1]


def test_an_empty_host_rule_is_the_rule_and_not_another_file(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    rule = f"host_rule={{file='{tmp_path}/empty.py'}}"
    (scenario,) = parse_experiment("", "here", [rule, "policies=[]"]).scenarios()
    assert scenario.host_rule is not None and scenario.host_rule.text == ""


def test_stale_queues_name_the_command_that_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("emulate", "demo", "--set", "load_balancer.queue_staleness_ns=100")
    assert "(ofan sim run without --program and --as p4)" in refused(capsys, *arguments)


@pytest.mark.parametrize(
    "command", ["sim run demo", "sim results x.sqlite", "emulate demo", "compare demo", "status"]
)
def test_stdout_has_room_for_one_kind_of_text(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for options in (("--json", "--csv", "-"), ("--csv", "-", "--json")):
        said = refused(capsys, *command.split(), *options)
        assert "--json and --csv - both write to stdout" in said


@pytest.mark.parametrize(
    "command",
    ["sim run demo", "sim results x.sqlite", "emulate demo", "compare demo", "status", "doctor"],
)
def test_csv_is_in_no_file_of_another_format(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    said = refused(capsys, *command.split(), "--csv", "out.xlsx")
    assert "out.xlsx: it gets CSV, so its name must end in .csv" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("sim", "run", "demo", "--set", "controller.detection=netlink"),
        ("sim", "run", "demo", "--as", "p4", "--set", "controller.detection=netlink"),
        ("sim", "sweep", "sweep", "--set", "controller.detection=netlink"),
        ("compare", "demo", "--set", "controller.detection=netlink"),
        (
            *("compare", "demo", "--program", "two_choices.p4"),
            *("--set", "controller.detection=netlink"),
        ),
        ("emulate", "demo", "--set", "controller.detection=netlink"),
    ],
)
def test_what_a_network_cannot_is_told_before_anything_runs_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, *arguments)
    assert "CCT" not in said and ("detection" in said or "probes" in said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("sim", "run", "demo"),
        ("sim", "run", "demo", "--as", "p4"),
        ("sim", "run", "demo", "--program", "two_choices.p4"),
        ("sim", "sweep", "sweep"),
        ("compare", "demo"),
        ("emulate", "demo"),
        ("emulate", "demo", "--network", "mininet", "--set", "fabric.rate_gbps=0.001"),
    ],
)
def test_what_one_load_balancer_cannot_is_told_before_the_others_have_run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    few = ("--policies", "ofan,uet_bitmap", "--set", "transport.packets_per_ack=4")
    said = refused(capsys, *arguments, *few, "--set", "transport.recovery=erasure")
    assert said.startswith("ofan: transport.packets_per_ack = 4: uet_bitmap takes packets")
    assert list(tmp_path.iterdir()) == []


def test_every_network_of_a_comparison_is_looked_at_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    said = refused(capsys, "compare", "demo", "--networks", "virtual,mininet")
    assert "Mininet needs root" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seeds", ["1", "2"])
def test_a_rate_that_cuts_flows_off_is_bad_input_however_many_runs_there_are(
    capsys: pytest.CaptureFixture[str], seeds: str
) -> None:
    options = ("--k", "4", "--failure-rate", "1", "--seeds", seeds)
    assert "lower failures.rate" in refused(capsys, "sim", "run", *options)


def test_a_queue_without_room_for_a_packet_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = ("--set", "fabric.queue_bytes=100")
    said = refused(capsys, "sim", "run", "demo", *small)
    assert "fabric.queue_bytes = 100 is too small for a packet, which has 4158 bytes" in said
    tight = "fabric.queue_bytes=4158"
    assert parse_experiment("", "here", [tight]).fabric.queue_bytes == 4158
    with pytest.raises(ExperimentError, match="which has 4178 bytes"):
        parse_experiment("", "here", [tight, "packets.tunnel_bytes=20", "policies=host_dr"])


def test_like_names_both_that_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "sim", "run", "--like", "ofan")
    assert said == "ofan: --like needs --program or --host-rule\n"


@pytest.mark.parametrize("command", ["status", "link list", "pointers edge0_0", "traffic stop"])
def test_without_a_held_network_what_works_is_named(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
) -> None:
    monkeypatch.setattr(held_cli, "ask", partial(ask, run_folder=tmp_path))
    said = refused(capsys, *command.split())
    assert "`sudo $(which ofan) emulate FILE --network mininet --hold` starts one" in said
    assert "without root, `ofan serve FILE`" in said
