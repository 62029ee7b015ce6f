"""`ofan p4 trace`: entries of both kinds, JSON, and one line for an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ofan
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.daemon.pcap import PcapFile

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests/emulation/compiler/cases"
TABLES = CASES / "tables.p4"
FRAME = "010012340a0b0c00"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(ofan.cli, ["p4", "trace", *map(str, arguments)])


def entries_as_protobuf(table: str, port: int) -> str:
    info = compile_file(TABLES).p4info
    table_id = next(item.preamble.id for item in info.tables if item.preamble.alias == table)
    action_id = next(item.preamble.id for item in info.actions if item.preamble.alias == "port")
    lpm = r'match { field_id: 1 lpm { value: "\n\000\000\000" prefix_len: 8 } }'
    params = rf'params {{ param_id: 1 value: "\{port:03o}" }}'
    action = f"action {{ action {{ action_id: {action_id} {params} }} }}"

    return f"table_entry {{ table_id: {table_id} {lpm} {action} }}"


def test_a_script_brings_entries_and_packets() -> None:
    result = run(TABLES, "--entries", CASES / "tables.stf")

    assert result.exit_code == 0
    assert (
        "hdr.data.d=0x0a0b0c00: hit, hdr.data.d=0x0a0b0000/16 -> CaseIngress.port(to=3)"
        in result.output
    )
    assert result.output.count("packet ") == 3
    assert "\n  tables.p4:" in result.output


def test_own_packets_take_the_place_of_the_scripts() -> None:
    result = run(
        TABLES, "--entries", CASES / "tables.stf", "--packet", FRAME, "--port", 5, "--json"
    )
    [packet] = json.loads(result.output)["packets"]

    assert (packet["port"], packet["frame"]) == (5, FRAME)
    assert packet["sent"] == [{"port": 3, "frame": "011112340a0b0d21"}]
    assert {"kind", "where", "text", "packet"} <= packet["steps"][1].keys()


@pytest.mark.parametrize(
    "shape",
    ["updates {{ type: INSERT entity {{ {} }} }}", "# what a read returned\nentities {{ {} }}"],
)
def test_entries_as_p4runtime_messages(shape: str, tmp_path: Path) -> None:
    file = tmp_path / "entries.txtpb"
    file.write_text(shape.format(entries_as_protobuf("lpm_table", 6)))
    result = run(TABLES, "--entries", file, "--packet", FRAME)

    assert "sent 8 bytes from port 6" in result.output


def test_json_programs_are_traced_too(tmp_path: Path) -> None:
    program = tmp_path / "tables.json"
    program.write_text(json.dumps(compile_file(TABLES).json))

    assert "packet 1" in run(program, "--packet", FRAME).output


def test_the_frames_of_a_capture_are_traced(tmp_path: Path) -> None:
    capture = PcapFile(tmp_path / "in.pcap")
    for text in (FRAME, "0900000000000000"):
        capture.write(bytes.fromhex(text))

    capture.close()
    result = run(TABLES, "--pcap", tmp_path / "in.pcap", "--port", 4, "--json")

    assert [
        (packet["port"], packet["frame"][:2]) for packet in json.loads(result.output)["packets"]
    ] == [(4, "01"), (4, "09")]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--packet", "0x1"], "expected hexadecimal digits"),
        ([], "no packet"),
        (["--packet", "00", "--entries", "nowhere"], "No such file"),
        (["--pcap", "nowhere"], "cannot read nowhere"),
        (["--pcap", "{bad_stf}"], "is not a capture"),
        (["--packet", "00", "--entries", "{bad_stf}"], "line 1: unknown command 'frobnicate'"),
        (["--packet", "00", "--entries", "{bad_proto}"], 'has no field named "bla"'),
        (["--packet", "00", "--entries", "{bad_table}"], "the P4Info has no table 1"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "bad_stf": "frobnicate 1",
        "bad_proto": "updates { bla: 1 }",
        "bad_table": "updates { type: INSERT entity { table_entry { table_id: 1 } } }",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    filled = [item.format(**{name: tmp_path / name for name in texts}) for item in arguments]

    with pytest.raises(SystemExit) as caught:
        ofan.main(["p4", "trace", str(TABLES), *filled])

    assert caught.value.code == 2

    captured = capsys.readouterr()

    assert complaint in captured.err
    assert captured.err.strip().count("\n") == 0


LOOP = """#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; /* I */ }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { /* E */ }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.mark.parametrize(
    ("call", "where", "status", "end"),
    [
        ("recirculate", "E", 1, "goes round for ever: "),
        ("resubmit", "I", 0, "dropped: resubmitted more than 64 times"),
    ],
)
def test_packets_that_go_round_show_how(
    tmp_path: Path, call: str, where: str, status: int, end: str
) -> None:
    program = tmp_path / "round.p4"
    program.write_text(LOOP.replace(f"/* {where} */", f"{call}_preserving_field_list(0);"))
    result = run(program, "--packet", "01")
    shown = [line.strip() for line in result.output.splitlines()]

    assert result.exit_code == status
    assert shown[0] == "packet 1" and "extracted h" in result.output
    assert any(line.startswith(end) for line in shown)
    assert len(shown) < 1000
