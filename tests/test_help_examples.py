"""Every example of every `--help` runs, from an empty folder, but for those that need more."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import ofan

# Examples that another test runs, or that need a held network, a scheduler, others' traces or an
# answer from a person.
ELSEWHERE = re.compile(
    r"sudo |ofan (link|status|schedule|pointers|registers|traffic|shell|serve|pcap|report)\b"
    r"|ofan (doctor|demo|workload from-chakra)\b|--scheduler|--network mininet"
)
# Their hosts and seeds take minutes; the last of equal options counts.
FEW = ("--k", "4", "--message-bytes", "8KiB", "--seeds", "1")
FIGURE = ("--k", "4", "--seeds", "1")
# A step of a training, and a served model, say for themselves how much hosts send, and to how many.
STEP = "file=step.parquet"
SERVED = "file=serve.parquet"
# One load balancer, which all fabrics take, and one workload.
ONE = ("--policies", "flow", "--workload", "permutation", "--margin", "1000", "--jobs", "1")
SHORTER = {
    "choose": ONE,
    "emulate": FEW,
    "compare": FEW,
    "run": FEW,
    "sweep": FEW,
    "watch": ("--once",),
}


def commands(group: click.Group) -> Iterator[click.Command]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield command
            if isinstance(command, click.Group):
                yield from commands(command)


def examples() -> list[str]:
    texts = [command.epilog or "" for command in (ofan.cli, *commands(ofan.cli))]
    whole = (re.sub(r"\s*\\\n\s*", " ", text) for text in texts)
    lines = [line.strip() for text in whole for line in text.splitlines()]
    listed = [re.split(r"\s{3,}|\s+\(", line)[0] for line in lines]
    return sorted({line for line in listed if line.startswith(("ofan ", "sudo "))})


EXAMPLES = [example for example in examples() if not ELSEWHERE.search(example)]
QUICK = ("ofan experiments", "ofan p4", "ofan emulate demo_failure")
# The command that must run before an example.
FIRST = {
    # With the figure, so that the sweep is shortened as one that can be drawn.
    "results/message_size.sqlite": ("ofan sim sweep sweep.toml --jobs 1 --figure first.png",),
    STEP: ("ofan workload from-model llama_405b.json step.parquet --scale 20000",),
    SERVED: ("ofan workload serve-model llama_405b.json serve.parquet --scale 2000",),
    "p4 stf .": ("ofan experiments copy router.p4 router.stf",),
    "results compare results/demo": ("ofan emulate demo", "ofan emulate demo"),
    "results compare results/near results/far": (
        "ofan emulate demo --output results/near",
        "ofan emulate demo --output results/far --set fabric.latency_ns=600",
    ),
}


def words_of(example: str) -> list[str]:
    arguments = shlex.split(re.split(r" [|>] ", example)[0])[1:]
    name = arguments[1] if arguments[0] == "sim" else arguments[0]
    # A step generated from a model has no size of messages.
    if any(part in example for part in (STEP, SERVED, "llama_ring")):
        return arguments

    # A figure of a sweep is over the swept key, here the size of messages.
    return [
        *arguments,
        *(FIGURE if name == "sweep" and "--figure" in arguments else SHORTER.get(name, ())),
    ]


def paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from paths(inner, (*path, name))


@pytest.mark.parametrize("path", list(paths(ofan.cli)), ids=" ".join)
def test_help_fits_80_columns(path: tuple[str, ...]) -> None:
    text = CliRunner().invoke(ofan.cli, [*path, "--help"], terminal_width=80).output
    assert path or "Usage: " in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 30


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(line_of_help, marks=() if line_of_help.startswith(QUICK) else pytest.mark.slow)
        for line_of_help in EXAMPLES
    ],
)
def test_an_example_runs(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = [first for part, firsts in FIRST.items() if part in example for first in firsts]
    for command in (*before, example):
        result = CliRunner().invoke(ofan.cli, words_of(command))
        assert result.exit_code == 0, f"{command}\n{result.output}\n{result.exception}"
