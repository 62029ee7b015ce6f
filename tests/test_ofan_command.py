"""The `ofan` command: a quick help, and one line with exit code 2 for bad input."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import ofan


@click.command()
def wait() -> None:
    """Stand for a command that Ctrl-C ends."""
    raise KeyboardInterrupt


def test_help_lists_every_command_and_examples() -> None:
    text = CliRunner().invoke(ofan.cli, ["--help"]).stdout
    assert all(name in text for name in (*ofan.COMMANDS, "p4"))
    assert "ofan emulate experiments/demo.toml" in text


def test_help_imports_no_command() -> None:
    script = (
        "import sys, ofan\ntry: ofan.main(['--help'])\n"
        "finally: assert not {'numpy', 'google.protobuf'} & set(sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.parametrize("name", list(ofan.COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = CliRunner().invoke(ofan.cli, [name, "--help"])
    assert result.exit_code == 0
    assert f"ofan {name}" in result.stdout


def test_an_interruption_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ofan.COMMANDS, "wait", ofan.Lazy("tests.test_ofan_command", "wait", ""))
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["wait"])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "ofan: interrupted\n"


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["emulate"], ["emulate", "x.toml", "--seeds", "0"], ["p4", "explain"]],
)
def test_bad_usage_is_one_line_and_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(arguments)
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
