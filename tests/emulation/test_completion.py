"""Shell completion, as click asks our commands for it."""

import os
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

import ofan


def completions(line: str) -> list[str]:
    """Return the completions of the last word."""
    *arguments, incomplete = line.split(" ")
    shell = ShellComplete(ofan.cli, {}, "ofan", "_OFAN_COMPLETE")
    return [str(item.value) for item in shell.get_completions(arguments, incomplete)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sim run --policies o", ["ofan", "ofan_fib", "ofan_jsq_start"]),
        ("emulate demo --policies jsq,o", ["jsq,ofan", "jsq,ofan_fib", "jsq,ofan_jsq_start"]),
        ("emulate demo --policies ofan,jsq,js", []),
        ("choose --policies e", ["everything"]),
        ("sim sweep --set fabric.q", ["fabric.queue_bytes="]),
        ("experiments show demo_f", ["demo_failure"]),
        ("experiments copy demo router.s", ["router.stf"]),
    ],
)
def test_values_of_options_are_completed(line: str, expected: list[str]) -> None:
    assert completions(line) == expected


def test_a_set_follows_no_comma() -> None:
    assert "all" in completions("sim run --policies ")
    assert "ofan,all" not in completions("sim run --policies ofan,")
    assert "ofan,jsq" in completions("sim run --policies ofan,")


SHELLS = {"bash": "plain,{}", "zsh": "plain\n{}\n", "fish": "plain,{}"}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "line",
    [
        "emulate demo --policies jsq,o",
        "sim sweep --set fabric.q",
        "experiments show demo_f",
        "s",
        "sim ",
        "sim run --fail",
    ],
)
def test_shells_get_the_same_and_wait_for_no_import(line: str, shell: str) -> None:
    typed = ["ofan", *line.split(" ")]
    # As the shells' own scripts ask.
    asked = {"COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1)}
    if shell == "fish":
        asked = {"COMP_WORDS": " ".join(typed), "COMP_CWORD": typed[-1]}
    script = (
        "import sys, ofan; sys.argv = ['ofan']\n"
        "try: ofan.start()\n"
        "except SystemExit: pass\n"
        "print('numba' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script],
        env={**os.environ, **asked, "_OFAN_COMPLETE": f"{shell}_complete"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = completions(line)
    assert expected and all(SHELLS[shell].format(name) in done.stdout for name in expected)
    # Names of options are the command's own.
    assert (done.stderr.strip() == "True") is line.endswith("--fail")
