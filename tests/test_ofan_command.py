"""The `ofan` command: a quick help, and one line with exit code 2 for bad input."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import ofan
from emulation.command_line import one_line_errors
from emulation.errors import EmulationError, ProgramError, StartError
from ofan_p4.command import Lazy


@click.command()
def wait() -> None:
    """Stand for a command that Ctrl-C ends."""
    raise KeyboardInterrupt


@click.command()
def keep() -> None:
    """Stand for a command that ends with a line on its finished runs."""
    raise KeyboardInterrupt("3 of 8 runs are kept")


def test_help_lists_every_command_and_examples() -> None:
    text = CliRunner().invoke(ofan.cli, ["--help"]).stdout
    assert all(name in text for name in (*ofan.COMMANDS, "p4"))
    assert "ofan emulate demo" in text


@pytest.mark.parametrize("command", [(), ("sim",), ("sim", "run"), ("results", "compare")])
def test_help_of_a_command_may_be_asked_for_in_front(command: tuple[str, ...]) -> None:
    runner = CliRunner()
    asked = runner.invoke(ofan.cli, ["help", *command])
    assert asked.exit_code == 0
    assert asked.stdout == runner.invoke(ofan.cli, [*command, "--help"]).stdout


def test_help_of_a_mistyped_command_names_the_probable_one() -> None:
    asked = CliRunner().invoke(ofan.cli, ["help", "emulat"])
    assert asked.exit_code == 2
    assert "Did you mean 'emulate'?" in asked.output


def test_help_imports_no_command() -> None:
    script = (
        "import sys, ofan\ntry: ofan.main(['--help'])\n"
        "finally: assert not {'numpy', 'google.protobuf'} & set(sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.parametrize(("options", "result"), [([], "Ofan"), (["--json"], '"policy": "ofan"')])
def test_a_simulation_imports_no_packets_and_no_compiler(options: list[str], result: str) -> None:
    """Half of a short run's CPU seconds went into modules that it did not use."""
    unused = (
        "asyncio",
        "distributed",
        "google.protobuf",
        "grpc",
        "matplotlib",
        "mininet",
        "ofan_p4.compiler",
        "polars",
        "scapy",
        "sim.choice",
    )
    command = ["sim", "run", "demo", "--policies", "ofan", "--message-bytes", "1", *options]
    script = (
        "import sys, ofan\n"
        f"try: ofan.cli({command})\n"
        f"except SystemExit: print([name for name in {unused} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result in run.stdout
    assert run.stdout.endswith("[]\n")


@pytest.mark.parametrize("name", list(ofan.COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = CliRunner().invoke(ofan.cli, [name, "--help"])
    assert result.exit_code == 0
    assert f"ofan {name}" in result.stdout


def test_an_interruption_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ofan.COMMANDS, "wait", Lazy("tests.test_ofan_command", "wait", ""))
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["wait"])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "ofan: interrupted\n"


def test_an_interruption_may_have_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ofan.COMMANDS, "keep", Lazy("tests.test_ofan_command", "keep", ""))
    with pytest.raises(SystemExit):
        ofan.main(["keep"])
    assert capsys.readouterr().err == "ofan: interrupted: 3 of 8 runs are kept\n"


def test_a_failed_run_is_told_from_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link that nobody mends, and routes that never change: flows over it do not end."""
    file = tmp_path / "x.toml"
    file.write_text(
        "policies = ['flow']\n[fabric]\nk = 4\n"
        "[collective]\nmatrix = 'pairs'\nmessage_bytes = 8192\n"
        "pairs = [[0, 15], [1, 14], [0, 13], [1, 12], [0, 11]]\n"
        "[failures]\nconvergence_rtt = inf\n"
        "events = [{ link = 'edge0_0-agg0_0', down_ns = 10 }]\n"
    )
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["sim", "run", str(file)])
    assert stopped.value.code == 1
    assert re.search(
        r"^ofan: \d flow\(s\) not finished after", capsys.readouterr().err, re.MULTILINE
    )


@pytest.mark.parametrize(
    ("error", "code"), [(StartError("edge0_0 ended"), 1), (ProgramError("it lacks main"), 2)]
)
def test_what_an_emulation_ends_with(
    error: EmulationError,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    def end() -> None:
        with one_line_errors():
            raise error

    monkeypatch.setitem(ofan.cli.commands, "end", end)
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["end"])
    assert stopped.value.code == code
    assert capsys.readouterr().err == f"ofan: {error}\n"


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"ofan {version('ofan')}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [("ofan emu", "emulate"), ("ofan sim sw", "sweep"), ("ofan p4 st", "stf")],
)
def test_shells_complete_commands(
    line: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_OFAN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    with pytest.raises(SystemExit):
        ofan.main([])
    assert f"plain,{expected}\n" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("command", "meant"),
    [(("emulat",), "emulate"), (("sim", "rum"), "run"), (("link", "upp"), "up")],
)
def test_a_mistyped_command_is_told_with_the_nearest(command: tuple[str, ...], meant: str) -> None:
    done = CliRunner().invoke(ofan.cli, command)
    assert done.exit_code == 2
    assert done.output.count(f"Did you mean '{meant}'?") == 1
