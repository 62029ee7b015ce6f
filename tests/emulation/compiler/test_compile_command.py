"""`ofan p4 compile`: files written, options honoured, one diagnostic and exit 2 on bad input."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import emulation.compiler  # noqa: F401 (chooses the back end of protobuf)
import ofan

# isort: split
from p4.config.v1 import p4info_pb2

PROGRAM = """#include <core.p4>
#include <v1model.p4>
#include "own.p4"
struct headers_t {}
struct meta_t { bit<WIDTH> x; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    table t { key = { meta.x: exact; } actions = { NoAction; } }
    apply { t.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "own.p4").write_text("#ifndef WIDTH\n#define WIDTH 8\n#endif\n")
    (tmp_path / "prog.p4").write_text(PROGRAM)
    return tmp_path / "prog.p4"


def run(*args: object) -> tuple[int, str]:
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as stopped:
        ofan.main(["p4", "compile", *map(str, args)])

    assert isinstance(stopped.value.code, int)
    return stopped.value.code, said.getvalue()


def test_writes_json_and_p4info_in_the_formats_of_their_suffixes(program: Path) -> None:
    folder = program.parent
    infos = f"{folder / 'info.txtpb'},{folder / 'info.bin'}"
    code, output = run(
        program, "-o", folder / "out.json", "--p4runtime-files", infos, "-I", folder / "shared"
    )

    assert (code, output) == (0, "")
    assert json.loads((folder / "out.json").read_text())["__meta__"]["version"] == [2, 23]
    binary = p4info_pb2.P4Info.FromString((folder / "info.bin").read_bytes())

    assert binary.tables[0].preamble.name == "I.t"
    assert 'name: "I.t"' in (folder / "info.txtpb").read_text()


@pytest.mark.parametrize(("define", "width"), [("WIDTH=24", 24), ("UNUSED", 8)])
def test_defines_reach_the_preprocessor(program: Path, define: str, width: int) -> None:
    out = program.parent / "info.bin"
    run(
        program,
        "-o",
        program.with_suffix(".json"),
        "--p4runtime-files",
        out,
        "-I",
        program.parent / "shared",
        "-D",
        define,
    )
    assert (
        p4info_pb2.P4Info.FromString(out.read_bytes()).tables[0].match_fields[0].bitwidth == width
    )


def test_bad_program_is_one_diagnostic_and_exit_2(program: Path) -> None:
    program.write_text(PROGRAM.replace("meta.x", "meta.y"))
    code, output = run(program, "-o", program.with_suffix(".json"), "-I", program.parent / "shared")

    assert code == 2
    assert output.split("\n")[0].endswith("prog.p4:11:28: error: struct meta_t has no field 'y'")
    assert not program.with_suffix(".json").exists()


def test_command_lines_written_for_p4c_are_accepted(program: Path) -> None:
    options = (
        "--p4v",
        "16",
        "--arch",
        "v1model",
        "--target",
        "bmv2",
        f"-I{program.parent / 'shared'}",
        "-DX=1",
    )
    assert run(*options, "-o", program.with_suffix(".json"), program) == (0, "")


def test_unwritable_output_is_one_line_and_exit_2(program: Path) -> None:
    code, text = run(
        program, "-o", program.parent / "missing" / "out.json", "-I", program.parent / "shared"
    )
    assert code == 2
    assert text.startswith("ofan: cannot write ") and text.count("\n") == 1


def test_missing_program_is_one_line_and_exit_2(tmp_path: Path) -> None:
    code, text = run(tmp_path / "none.p4")
    assert code == 2
    where = f"{tmp_path / 'none.p4'}:1:1"

    assert text == (f"ofan: {where}: error: cannot read the program: No such file or directory\n")


def test_an_empty_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.p4").touch()
    assert run(tmp_path / "empty.p4") == (
        2,
        f"ofan: {tmp_path / 'empty.p4'}:1:1: error: the program does not instantiate 'main'\n",
    )
