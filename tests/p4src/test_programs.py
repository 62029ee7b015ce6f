"""The programs as sources: they compile, at every size; their API changes only on purpose."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2

import p4src
from fattree.policies import POLICIES
from ofan_p4.compiler import CompileError, compile_file

SOURCES = sorted([*p4src.FOLDER.glob("*.p4"), *p4src.INCLUDE.glob("*.p4")])


def test_every_load_balancer_has_its_program() -> None:
    assert sorted({row.program for row in POLICIES.values()}) == p4src.programs()


def test_a_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match=r"no P4 program 'ofam'; choose from adaptive, ecmp"):
        p4src.path("ofam")


@pytest.mark.parametrize("program", p4src.programs())
def test_p4info_is_the_checked_in_one(program: str) -> None:
    """After a change on purpose: `make p4info`, and review the difference."""
    checked_in = text_format.Parse(p4src.p4info_path(program).read_text(), p4info_pb2.P4Info())
    assert compile_file(p4src.path(program)).p4info == checked_in, (
        "the API has changed; write it with `make p4info`"
    )


@pytest.mark.parametrize("uplinks", [2, 64])
@pytest.mark.parametrize("program", p4src.programs())
def test_programs_compile_for_small_and_large_fabrics(program: str, uplinks: int) -> None:
    info = compile_file(p4src.path(program), defines={"MAX_UPLINKS": str(uplinks)}).p4info
    assert all(table.size for table in info.tables)


@pytest.mark.parametrize("uplinks", ["3", "0", "128", "many"])
def test_a_size_that_cannot_be_built_is_refused(uplinks: str) -> None:
    with pytest.raises(CompileError, match="MAX_UPLINKS must be 2, 4, 8, 16, 32 or 64"):
        compile_file(p4src.path("adaptive"), defines={"MAX_UPLINKS": uplinks})


@pytest.mark.parametrize("program", p4src.programs())
def test_tables_and_actions_of_one_id_are_the_same_everywhere(program: str) -> None:
    """An id belongs to one table, action or register for ever, whichever programs have it."""
    declared = dict(re.findall(r"#define (\w+) (0x\w+)", (p4src.INCLUDE / "ids.p4").read_text()))
    numbers = {int(number, 16) for number in declared.values()}
    assert len(numbers) == len(declared)
    info = compile_file(p4src.path(program)).p4info
    named = [item.preamble for kind in (info.tables, info.actions, info.registers) for item in kind]
    assert {item.id for item in named if item.name != "NoAction"} <= numbers


@pytest.mark.parametrize("program", p4src.programs())
def test_every_id_is_used_as_its_name_says(program: str) -> None:
    declared = dict(re.findall(r"#define (\w+) (0x\w+)", (p4src.INCLUDE / "ids.p4").read_text()))
    info = compile_file(p4src.path(program)).p4info
    kinds = {"TABLE": info.tables, "ACTION": info.actions, "REGISTER": info.registers}
    for name, number in declared.items():
        stem, _, kind = name.rpartition("_")
        for item in kinds[kind]:
            if item.preamble.id == int(number, 16):
                assert item.preamble.alias.rpartition(".")[2].startswith(stem.lower())


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.name))
def test_tables_have_ids_sizes_and_defaults(source: Path) -> None:
    text = source.read_text()
    tables = re.findall(r"(?:@id\(\w+_TABLE\)\s+)?table \w+ \{.*?\n    \}", text, re.DOTALL)
    assert len(tables) == len(re.findall(r"\btable \w+ \{", text))
    for table in tables:
        assert table.startswith("@id(")
        assert " size = " in table
        assert "default_action = " in table
        assert ("const default_action" in table) == ("key = " in table)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.name))
def test_sources_begin_with_what_they_are(source: Path) -> None:
    lines = source.read_text().splitlines()
    assert lines[0].startswith("// ")
    assert max(map(len, lines)) <= 130


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c is not installed")
@pytest.mark.parametrize("program", p4src.programs())
def test_p4c_compiles_the_programs(program: str, tmp_path: Path) -> None:
    command = [
        "p4c-bm2-ss",
        "--std",
        "p4-16",
        str(p4src.path(program)),
        "-o",
        str(tmp_path / "out.json"),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
