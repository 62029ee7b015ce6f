"""Shell completion, as click asks our commands for it."""

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
