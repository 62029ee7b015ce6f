"""Names to ids and back; a contract that does not fit is one clear line."""

from pathlib import Path

import pytest
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

import p4src
from controller.entries import Entry
from controller.errors import PlanError
from controller.pipeline import Pipeline

OFAN = Pipeline.read(p4src.p4info_path("ofan"))
PREFIX = (0x0A000000, 8)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (
            Entry("rotues", (PREFIX,), "drop", ()),
            "the program has no table rotues; it has waypoint, routes",
        ),
        (Entry("routes", (PREFIX,), "fly", ()), "table routes cannot take fly with 0 arguments"),
        (
            Entry("routes", (PREFIX,), "to_port", (1, 2)),
            "table routes cannot take to_port with 2 arguments",
        ),
        (Entry("routes", (PREFIX, 1), "drop", ()), "table routes has 1 key fields, not 2"),
    ],
)
def test_entries_that_do_not_fit_are_refused(entry: Entry, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        OFAN.fill(p4runtime_pb2.TableEntry(), entry)


@pytest.mark.parametrize("text", ["tables {", "nonsense: 1", "\0"])
def test_a_corrupt_p4info_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.txtpb"
    path.write_text(text)
    with pytest.raises(PlanError, match=r"^cannot read P4Info .*bad\.txtpb: [^\n]+$"):
        Pipeline.read(path)


def test_a_missing_p4info_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"^cannot read P4Info .*none\.txtpb: .*No such file"):
        Pipeline.read(tmp_path / "none.txtpb")


def test_tables_that_end_alike_are_known_by_their_whole_names() -> None:
    info = p4info_pb2.P4Info()
    for number, name in enumerate(("a.acl", "b.acl", "a.routes")):
        info.tables.add(size=1).preamble.CopyFrom(p4info_pb2.Preamble(id=number + 1, name=name))

    pipeline = Pipeline(info)
    assert {name: table.id for name, table in pipeline.tables.items()} == {
        "a.acl": 1,
        "b.acl": 2,
        "routes": 3,
    }

    with pytest.raises(PlanError, match=r"has no table acl; it has a\.acl, b\.acl, routes"):
        pipeline.fill(p4runtime_pb2.TableEntry(), Entry("acl", (), "drop", ()))


def test_a_table_that_is_too_small_is_named() -> None:
    with pytest.raises(PlanError, match="edge0_0: table waypoint holds 16 entries, 17 are needed"):
        OFAN.check_counts("edge0_0", {"waypoint": 17})


def test_a_table_that_the_contract_lacks_is_told() -> None:
    with pytest.raises(PlanError, match="a table 0x2ffffff that the P4Info lacks"):
        OFAN.entry(p4runtime_pb2.TableEntry(table_id=0x02FFFFFF))


def test_an_action_that_the_table_lacks_is_told() -> None:
    message = p4runtime_pb2.TableEntry(table_id=OFAN.tables["routes"].id)
    message.action.action.action_id = 0x01FFFFFF
    with pytest.raises(PlanError, match="table routes has an entry with action 0x1ffffff"):
        OFAN.entry(message)


@pytest.mark.parametrize(
    ("program", "uplinks"), [("adaptive", 8), ("ofan_jsq_start", 8), ("ofan", None), ("ecmp", None)]
)
def test_programs_tell_how_many_uplinks_they_compare(program: str, uplinks: int | None) -> None:
    assert Pipeline.read(p4src.p4info_path(program)).max_uplinks == uplinks


def test_registers_are_known_by_name() -> None:
    assert OFAN.register("pointers").size == 256
    with pytest.raises(PlanError, match="the program has no register clock"):
        OFAN.register("clock")


@pytest.mark.parametrize(
    ("port", "written"),
    [(0, b"\0"), (1, b"\1"), (127, b"\x7f"), (128, b"\x80"), (255, b"\xff"), (256, b"\1\0")],
)
def test_numbers_are_written_in_the_shortest_form(port: int, written: bytes) -> None:
    """P4Runtime, "Bytestrings": no leading zeros, and 0 is one byte."""
    assert written in {value for _, value in OFAN.packet_out(port)}
    message = p4runtime_pb2.TableEntry()
    OFAN.fill(message, Entry("routes", (PREFIX,), "to_port", (port,)))
    assert message.action.action.params[0].value == written
