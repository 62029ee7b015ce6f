"""The `ofan` command: a quick help, and one line with exit code 2 for bad input."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

import ofan


def test_help_lists_every_command_and_examples() -> None:
    text = CliRunner().invoke(ofan.cli, ["--help"]).stdout
    assert all(name in text for name in (*ofan.COMMANDS, "p4"))
    assert "ofan emulate experiments/demo.toml" in text


def test_help_imports_no_command() -> None:
    script = "import sys, ofan\ntry: ofan.main(['--help'])\nfinally: assert not {'numpy', 'google.protobuf'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("name", list(ofan.COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = CliRunner().invoke(ofan.cli, [name, "--help"])
    assert result.exit_code == 0
    assert f"ofan {name}" in result.stdout


@pytest.mark.parametrize("arguments", [["nothing"], ["emulate"], ["emulate", "x.toml", "--seeds", "0"], ["p4", "explain"]])
def test_bad_usage_is_one_line_and_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(arguments)
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
