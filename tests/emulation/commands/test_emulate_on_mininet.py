"""Refusals of `ofan emulate --network mininet`, each in one line."""

import os
import re

import pytest
from click.testing import CliRunner

from emulation.commands.emulate import emulate

EXPERIMENT = """
policies = ["flow", "ofan"]
[fabric]
k = 4
rate_gbps = {rate}
"""


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """Return a function that runs the command without root and returns its error line."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def run(*options, rate=0.002):
        path = tmp_path / "x.toml"
        path.write_text(EXPERIMENT.format(rate=rate))
        result = CliRunner().invoke(
            emulate, [str(path), "--output", str(tmp_path / "out"), *options]
        )
        assert result.exit_code != 0
        assert "Traceback" not in result.output
        return result.output.strip().splitlines()[-1]

    return run


def test_without_root(refusal):
    line = refusal("--network", "mininet")

    # The command's own path, as root may not find it by its name.
    assert re.fullmatch(
        r"Error: Mininet needs root: `sudo (/\S+/ofan|\$\(which ofan\)) ...`, "
        r"or choose --network virtual",
        line,
    )


def test_root_is_needed_first(refusal, tmp_path):
    # A folder that cannot be made; a user other than root may write in few.
    (tmp_path / "file").write_text("")
    said = refusal("--network", "mininet", "--output", str(tmp_path / "file" / "out"))
    assert "Mininet needs root" in said


def test_a_rate_that_no_software_carries_gets_a_better_one(refusal):
    assert "try --set fabric.rate_gbps=0.002" in refusal("--network", "mininet", rate=800)


@pytest.fixture
def able(monkeypatch):
    """Let this machine have all that Mininet needs, until a network is built."""
    monkeypatch.setattr("emulation.commands.emulate.refuse_if_unable", lambda: None)


def test_several_runs_cannot_be_held(refusal, able):
    assert "--policies flow --seeds 1" in refusal("--network", "mininet", "--hold")


def test_a_port_that_does_not_exist(refusal, able):
    assert "edge0_0 has ports 1 to 4" in refusal("--network", "mininet", "--pcap", "edge0_0:5")


@pytest.mark.parametrize("option", [("--hold",), ("--switch", "bmv2")])
def test_options_of_mininet_need_mininet(refusal, option):
    assert "need --network mininet" in refusal(*option)


def test_a_corrupt_pipeline(refusal, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    assert "corrupt JSON" in refusal(
        "--network", "mininet", "--program", str(tmp_path / "broken.json")
    )
