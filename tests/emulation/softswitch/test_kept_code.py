"""The name of a program's machine code on disk: it holds all that the code depends on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import p4src
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.native.machine import identity, program_identity
from ofan_p4.softswitch.native.translate import translate
from tests.emulation.softswitch.test_native_engine import CONFORMANCE, DEFINES, PROGRAMS

OFAN = p4src.FOLDER / "ofan.p4"


def compiled(path: Path) -> bytes:
    made = compile_file(path, (p4src.INCLUDE, p4src.FOLDER), DEFINES)
    return json.dumps(made.json).encode()


def moved(path: Path, folder: Path) -> Path:
    """Copy a program to another folder, with a comment behind its last line."""
    copy = folder / path.name
    copy.write_text(path.read_text() + "// Elsewhere.\n")
    return copy


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_code_depends_on_nothing_that_its_name_leaves_out(path: Path, tmp_path: Path) -> None:
    here, elsewhere = compiled(path), compiled(moved(path, tmp_path))
    assert here != elsewhere
    assert program_identity(here) == program_identity(elsewhere)
    codes = [translate(program, assemble(program)) for program in map(load, (here, elsewhere))]
    assert codes[0].text == codes[1].text
    assert codes[0].interface.as_json() == codes[1].interface.as_json()


def test_another_program_or_use_has_another_name() -> None:
    text = compiled(CONFORMANCE)
    names = {program_identity(text), program_identity(text, b"use"), identity(text)}
    names.add(program_identity(compiled(OFAN)))
    root = json.loads(text)
    root["parsers"][0]["parse_states"][0]["name"] = "another"
    names.add(program_identity(json.dumps(root).encode()))
    assert len(names) == 5
    assert all(len(name) == hashlib.sha256().digest_size * 2 for name in names)


def test_a_program_as_deep_as_can_be_read_has_a_name() -> None:
    depths = range(900, 1000)
    texts = [b'{"deep":' * depth + b"1" + b"}" * depth for depth in depths]
    assert len({program_identity(text) for text in texts}) == len(depths)
