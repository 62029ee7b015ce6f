"""Text of somebody else becomes no command and no code: names in files, options, P4 programs."""

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ofan
from emulation.programs.switch_program import Size, built_in
from fattree.errors import ExperimentError
from fattree.texts.experiment_file import parse_experiment
from ofan_p4.softswitch.base.errors import SoftswitchError
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.loading import load
from tests.doors import ROOT, SMALL

PACKAGES = ("fattree", "controller", "emulation", "hostagent", "sim", "p4src", "p4tools")
METACHARACTERS = (
    "x; touch {trap}",
    "$(touch {trap})",
    "`touch {trap}`",
    "| touch {trap}",
    "x\ntouch {trap}",
    "' ; touch {trap} #",
    "../../{trap}",
)


@cache
def sources() -> list[tuple[str, list[tuple[str, ast.Call]]]]:
    """Return all calls in all files of ours, with the name that is called."""
    files = [
        ROOT / "ofan.py",
        *(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")),
    ]
    return [
        (str(file.relative_to(ROOT)), list(calls(ast.parse(file.read_text(encoding="utf-8")))))
        for file in files
    ]


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    return ((_name(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(function: ast.expr) -> str:
    return ast.unparse(function) if isinstance(function, ast.Name | ast.Attribute) else ""


@pytest.mark.parametrize("text", METACHARACTERS)
@pytest.mark.parametrize(
    "line",
    [
        "name = {}",
        "policies = [{}]",
        "[collective]\nmatrix = {}",
        "[failures]\nevents = [{{ link = {}, down_ns = 1 }}]",
    ],
)
def test_names_that_would_be_commands_are_refused(line: str, text: str) -> None:
    quoted = json.dumps(text.format(trap="/nowhere/trap"))

    with pytest.raises(ExperimentError) as refused:
        parse_experiment(line.format(quoted) + "\n", "x.toml")

    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("text", METACHARACTERS[1:3])
def test_a_results_folder_may_have_any_name_and_runs_nothing(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = text.format(trap="trap")

    with pytest.raises(SystemExit) as ended:
        ofan.main(["emulate", str(ROOT / "experiments/demo.toml"), *SMALL, "--output", name])

    assert ended.value.code == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "command", [("link", "down"), ("schedule",), ("pointers",), ("registers",), ("shell",)]
)
def test_names_on_the_command_line_reach_no_shell(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as ended:
        ofan.main([*command, "$(touch trap)"])

    assert ended.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_no_shell_is_ever_started() -> None:
    forbidden = {
        "os.system",
        "os.popen",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "pty.spawn",
    }
    copied = [
        f"{file}:{call.lineno}: {name}"
        for file, calls in sources()
        for name, call in calls
        if name in forbidden
        or any(word.arg == "shell" and not _is_false(word.value) for word in call.keywords)
    ]

    assert copied == []


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def test_commands_are_lists_and_never_a_line_of_text() -> None:
    runners = {
        "subprocess.run",
        "subprocess.Popen",
        "subprocess.check_output",
        "subprocess.check_call",
    }
    copied = [
        f"{file}:{call.lineno}"
        for file, calls in sources()
        for name, call in calls
        if name in runners and isinstance(call.args[0], ast.Constant | ast.JoinedStr)
    ]

    assert copied == []


def test_nothing_is_unpickled_and_only_compilers_make_code() -> None:
    makers = {
        "eval",
        "exec",
        "pickle.load",
        "pickle.loads",
        "marshal.loads",
        "yaml.load",
        "__import__",
    }
    copied = {file for file, calls in sources() for name, _ in calls if name in makers}

    assert copied == {
        "p4tools/ofan_p4/softswitch/control/pipeline.py",
        # A parser as the generator prints it, to see which way it goes.
        "p4tools/ofan_p4/softswitch/codegen/predicting.py",
        # A host rule is read by a parser of its own first, which takes nothing but arithmetic.
        "hostagent/rule_reader.py",
        # numba's files, after `ofan_cache` has believed them (test_kernel_cache.py).
        "sim/kernels/jit.py",
        # A user's packets: in a process of their own, as nobody (test_own_packet.py).
        "hostagent/agents/packet_process.py",
    }


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all strings in a JSON value."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in items:
        yield from [(*path, key)] if isinstance(part, str) else leaves(part, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], text: str) -> Any:
    made = json.loads(json.dumps(value))
    parent = made
    for key in path[:-1]:
        parent = parent[key]

    parent[path[-1]] += text

    return made


def test_no_text_of_a_foreign_program_becomes_code() -> None:
    """Names, operators and numbers in BMv2 JSON may be anything.

    The Python that it becomes has none of them.
    """
    program = json.loads(built_in("ofan", Size(2)).bmv2_json)
    places = list(leaves(program))
    text, refused = '"); __import__("os").abort() #', 0
    for path in places[:: max(1, len(places) // 60)]:
        try:
            code = assemble(load(json.dumps(replaced(program, path, text)).encode())).source
        except (SoftswitchError, ValueError):
            refused += 1
            continue
        assert "__import__" not in code, path

    assert 0 < refused < 60
