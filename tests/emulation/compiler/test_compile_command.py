"""`ofan p4 compile`: files written, options honoured, one diagnostic and exit 2 on bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

import ofan
import ofan_p4.compiler  # noqa: F401 (chooses the back end of protobuf)

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


def test_the_folder_and_formats_of_p4c(program: Path) -> None:
    folder = program.parent
    info = folder / "info.out"
    options = ("-I", folder / "shared", "--driver", "-g", "--p4runtime-file", info)

    assert run(*options, "-o", folder / "made", program)[0] == 0
    assert json.loads((folder / "made" / "prog.json").read_text())["pipelines"]
    assert p4info_pb2.P4Info.FromString(info.read_bytes()).tables[0].preamble.name == "I.t"

    text = ("--p4runtime-format", "text", "-o", folder / "made")

    assert run(*options, *text, program)[0] == 0
    assert 'name: "I.t"' in info.read_text()


def test_preprocessed_programs_compile_to_the_same_places(program: Path) -> None:
    folder = program.parent
    code, text = run("-E", "-I", folder / "shared", "-D", "GONE=1", "-U", "GONE", program)

    assert code == 0
    assert "struct meta_t { bit<8> x; }" in text
    assert f'"{program}"' in text

    options = ("-I", folder / "shared", "-o", folder / "one.json", "--pp", folder / "pp.p4")

    assert run(*options, program) == (0, "")
    assert (folder / "pp.p4").read_text() == text
    assert run("-o", folder / "two.json", folder / "pp.p4") == (0, "")

    direct, preprocessed = ((folder / name).read_text() for name in ("one.json", "two.json"))

    assert json.loads(direct)["pipelines"] == json.loads(preprocessed)["pipelines"]


def test_unknown_annotations_warn_and_can_be_disabled_or_errors(program: Path) -> None:
    program.write_text(PROGRAM.replace("    table t", '    @nmae("x") @fine[2] table t'))
    options = ("-I", program.parent / "shared", "-o", program.with_suffix(".json"))
    code, text = run(*options, program)

    assert (code, text.splitlines()[0]) == (
        0,
        f"{program}:11:5: warning: unknown annotation 'nmae' [unknown]",
    )

    for option in ("--Wdisable", "--Wdisable=unknown"):
        assert run(*options, option, program) == (0, "")

    assert run(*options, "--Wdisable=other", program)[1] != ""

    for option in ("--Werror", "--Werror=unknown"):
        code, text = run(*options, option, program)
        assert code == 2
        assert f"{program}:11:5: error: unknown annotation 'nmae' [unknown]" in text


def test_entries_files_hold_the_declared_entries(program: Path) -> None:
    program.write_text(
        PROGRAM.replace(
            "actions = { NoAction; }",
            "actions = { NoAction; }\n const entries = { 5: NoAction(); }",
        )
    )
    out = program.parent / "entries.txt"
    options = ("-I", program.parent / "shared", "-o", program.with_suffix(".json"))

    assert run(*options, "--p4runtime-entries-files", out, program) == (0, "")
    assert "type: INSERT" in out.read_text()
    assert 'value: "\\005"' in out.read_text()


def test_foreign_externs_are_emitted_on_request(program: Path) -> None:
    text = PROGRAM.replace(
        "struct headers_t",
        "extern Box { Box(bit<8> size); void put(in bit<8> x); }\n"
        "extern void f(in bit<8> y);\nstruct headers_t",
    )
    program.write_text(
        text.replace("    table t", "    Box(7) box;\n    table t").replace(
            "t.apply();", "t.apply(); box.put(3); f(4);"
        )
    )
    options = ("-I", program.parent / "shared", "-o", program.with_suffix(".json"))

    assert run(*options, program)[0] == 2
    assert run(*options, "--emit-externs", program) == (0, "")

    made = json.loads(program.with_suffix(".json").read_text())
    [box] = made["extern_instances"]

    assert (box["name"], box["type"]) == ("I.box", "Box")
    assert box["attribute_values"] == [{"name": "size", "type": "hexstr", "value": "0x7"}]

    calls = [step for action in made["actions"] for step in action["primitives"]]

    assert [(step["op"], step["parameters"][0]) for step in calls] == [
        ("_Box_put", {"type": "extern", "value": "I.box"}),
        ("f", {"type": "hexstr", "value": "0x04"}),
    ]


def test_the_version_is_told(program: Path) -> None:
    code, text = run("--version")

    assert code == 0
    assert text.startswith("p4c-bm2-ss (Ofan)\nVersion ")


def test_installed_names_run_this_installation(program: Path) -> None:
    folder = program.parent / "bin"
    said = StringIO()
    for _ in range(2):
        with redirect_stdout(said), pytest.raises(SystemExit) as stopped:
            ofan.main(["p4", "install-names", str(folder)])
        assert stopped.value.code == 0

    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(
        ["p4c", "--target", "bmv2", "-I", "shared", "-o", "out", "prog.p4"],
        cwd=program.parent,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stderr == ""
    assert (program.parent / "out" / "prog.json").exists()

    done = subprocess.run(
        ["simple_switch_grpc", "--json-version"], env=environment, capture_output=True, text=True
    )

    assert done.stdout == "2.23\n"


def test_installed_names_overwrite_nobodys_files(tmp_path: Path) -> None:
    (tmp_path / "p4c").write_text("#!/bin/sh\necho another\n")
    said = StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit) as stopped:
        ofan.main(["p4", "install-names", str(tmp_path)])

    assert stopped.value.code == 2
    assert "exists and is not ours" in said.getvalue()
    assert "another" in (tmp_path / "p4c").read_text()


def test_installed_names_are_a_switch_and_its_command_line(program: Path, tmp_path: Path) -> None:
    """As tutorials and p4-utils start them: by name, a script on standard input."""
    with redirect_stdout(StringIO()), pytest.raises(SystemExit):
        ofan.main(["p4", "install-names", str(tmp_path / "bin")])

    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    compiled = ["p4c-bm2-ss", "-I", "shared", "-o", "prog.json", "prog.p4"]
    subprocess.run(compiled, cwd=program.parent, env=environment, check=True)
    command = ["simple_switch_grpc", "prog.json", "--thrift-port", "0"]
    command += ["--", "--grpc-server-addr", "127.0.0.1:0"]
    with subprocess.Popen(
        command, cwd=program.parent, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().rpartition(":")[2].strip()
        done = subprocess.run(
            ["simple_switch_CLI", "--thrift-port", port],
            input="table_add t NoAction 7 =>\ntable_num_entries t\n",
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        process.kill()

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("RuntimeCmd: 1\nRuntimeCmd: \n")


@pytest.mark.parametrize("name", ["simple_switch", "simple_switch_grpc"])
def test_installed_switches_are_found_by_their_name(tmp_path: Path, name: str) -> None:
    """As p4-guide's scripts end a switch (`pkill simple_switch`) and look for its log."""
    with redirect_stdout(StringIO()), pytest.raises(SystemExit):
        ofan.main(["p4", "install-names", str(tmp_path)])

    command = [str(tmp_path / name), "--no-p4", "--thrift-port", "0", "--log-file", "ss-log"]
    command += ["--", "--grpc-server-addr", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # Linux keeps 15 bytes, of BMv2's own processes, too.
        assert Path(f"/proc/{process.pid}/comm").read_text() == f"{name[:15]}\n"
        process.kill()

    assert [path.name for path in tmp_path.glob("ss-log*")] == ["ss-log.txt"]


OWN = """
#include "fabric.p4"
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    apply { schedule.apply(meta.schedule, 0, standard_metadata); }
}
#include "switch.p4"
"""


@pytest.mark.parametrize(
    "arguments", ["compile own.p4", "trace own.p4 --packet 00 --json", "stf own.p4"]
)
def test_includes_of_ours_are_found_without_being_asked_for(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.p4").write_text(OWN)
    (tmp_path / "own.stf").write_text("packet 0 00\n")
    done = CliRunner().invoke(ofan.cli, ["p4", *arguments.split()])
    assert done.exit_code == 0, done.output


def test_ones_own_includes_come_before_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "fabric.p4").write_text("#error mine\n")
    (tmp_path / "own.p4").write_text(OWN)
    done = CliRunner().invoke(ofan.cli, ["p4", "compile", "own.p4", "-I", "mine"])
    assert done.exit_code != 0
    assert "#error mine" in done.output


@pytest.mark.parametrize("arguments", ["compile own.p4", "trace own.p4 --packet 00", "stf own.p4"])
def test_the_tools_alone_say_how_includes_are_found(arguments: str, tmp_path: Path) -> None:
    """In a process of its own: here the commands have learnt of our folders."""
    (tmp_path / "own.p4").write_text(OWN)
    (tmp_path / "own.stf").write_text("packet 0 00\n")
    command = [sys.executable, "-m", "ofan_p4.cli", *arguments.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    said = "cannot find the file to include: fabric.p4; -I DIR searches a folder"
    assert done.returncode and said in done.stdout + done.stderr
