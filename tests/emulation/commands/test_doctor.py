"""`ofan doctor`: finds by trying, and names the remedy for each missing part."""

import json

import pytest
from click.testing import CliRunner

from emulation.commands import doctor
from emulation.commands.doctor import Finding


def test_json_names_networks_and_a_remedy_for_everything() -> None:
    answer = json.loads(CliRunner().invoke(doctor.doctor, ["--json"]).stdout)
    assert answer["networks"]["virtual"] is True
    names = {finding["name"] for finding in answer["findings"]}
    assert names >= {
        "python",
        "root",
        "mininet",
        "veth and netns",
        "qdisc netem",
        "simple_switch_grpc",
        "p4c",
        "p4runtime-shell",
    }
    assert all(finding["remedy"] and finding["purpose"] for finding in answer["findings"])


def test_a_switch_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "shutil.which", lambda name: f"/opt/{name}" if name == "simple_switch_grpc" else None
    )
    assert doctor.simple_switch_grpc() == Finding(
        "simple_switch_grpc",
        True,
        "/opt/simple_switch_grpc",
        "--switch bmv2",
        doctor.simple_switch_grpc().remedy,
    )
    assert not doctor.p4c().is_here


def test_mininet_needs_root_and_namespaces_too() -> None:
    names = ("python", "mininet", "veth and netns", "root")
    findings = {name: Finding(name, True, "", "", "") for name in names}
    for missing in names[1:]:
        rest = [finding for name, finding in findings.items() if name != missing]
        expected = {"virtual": True, "sim": True, "mininet": False}
        assert doctor.networks(rest) == expected, missing
        is_tried = Finding(missing, False, "", "", "")
        assert doctor.networks([*rest, is_tried]) == expected, missing

    assert doctor.networks([*findings.values()])["mininet"]


def test_a_probe_that_cannot_run_is_an_answer() -> None:
    assert doctor.run_quietly("/nonexistent/program") == (
        False,
        "[Errno 2] No such file or directory: '/nonexistent/program'",
    )


@pytest.mark.parametrize("width", [3, 40, 80, 100])
def test_a_terminal_of_any_width_has_its_table(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = CliRunner().invoke(doctor.doctor, [])
    assert shown.exit_code == 0, shown.output
    assert "netem" in shown.output.replace("\n", "")
