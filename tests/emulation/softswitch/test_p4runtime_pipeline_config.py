"""SetForwardingPipelineConfig: the effect of each action; a bad pipeline changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from p4.v1 import p4runtime_pb2 as p4

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.p4runtime import StatusError

VERIFY, SAVE, COMMIT_NOW, COMMIT, RECONCILE = range(1, 6)
TABLE, ACTION = 1 << 24, 2 << 24


@pytest.fixture
def program(program: Any) -> Any:
    """One exact table that picks the port."""
    p = program
    p.header("h", kind=8)
    p.state("start", [p.extract("h")])
    forward = p.action(
        "forward", [p.call("assign", "standard_metadata.egress_spec", p.argument(0))], port=9
    )
    p.table("t", {"h.kind": "exact"}, [forward], default=forward, default_data=[1])

    return p


def entry(kind: int, port: int) -> p4.Entity:
    entity = p4.Entity()
    entity.table_entry.table_id = TABLE + 1
    entity.table_entry.match.add(field_id=1).exact.value = bytes([kind])
    entity.table_entry.action.action.action_id = ACTION + 1
    entity.table_entry.action.action.params.add(param_id=1, value=bytes([port]))

    return entity


def wrapped(json: bytes) -> bytes:
    """As p4runtime_lib sends it: `reassign` (field 2), then the JSON as `device_data` (field 3)."""
    length = bytes([len(json) & 0x7F | 0x80, len(json) >> 7 & 0x7F | 0x80, len(json) >> 14])
    return b"\x10\x01\x1a" + length + json


def test_the_json_may_come_in_a_p4_device_config(program: Any, control: Any) -> None:
    c = control(program)
    c.set_pipeline(wrapped(changed(program)))

    assert c.bench.send(b"\x05") == [(2, b"\x05")]

    request = p4.GetForwardingPipelineConfigRequest(device_id=1)

    # A read returns the configuration that was set.
    assert c.service.get_pipeline(request).config.p4_device_config == wrapped(changed(program))


def changed(program: Any) -> bytes:
    """The same program with another default port."""
    program.root["pipelines"][0]["tables"][0]["default_entry"]["action_data"] = ["0x2"]
    return bytes(program.source())


def test_commit_replaces_everything(program: Any, control: Any) -> None:
    c = control(program)
    c.write(("INSERT", entry(5, 6)))
    c.set_pipeline(changed(program))

    assert c.bench.send(b"\x05") == [(2, b"\x05")]


def test_verify_changes_nothing(program: Any, control: Any) -> None:
    c = control(program)
    c.set_pipeline(changed(program), action=VERIFY)

    assert c.bench.send(b"\x05") == [(1, b"\x05")]


def test_saved_pipeline_takes_writes_before_it_forwards(program: Any, control: Any) -> None:
    c = control(program)
    c.set_pipeline(changed(program), action=SAVE)
    c.write(("INSERT", entry(5, 6)))

    assert c.bench.send(b"\x05") == [(1, b"\x05")]

    commit(c)

    assert [c.bench.send(frame)[0][0] for frame in (b"\x05", b"\x07")] == [6, 2]


def commit(c: Any) -> None:
    request = p4.SetForwardingPipelineConfigRequest(device_id=1, action=COMMIT)
    request.election_id.low = 1
    c.service.set_pipeline(request)


def test_commit_without_a_saved_pipeline_is_not_found(program: Any, control: Any) -> None:
    with pytest.raises(StatusError) as caught:
        commit(control(program))

    assert caught.value.code == Code.NOT_FOUND


def test_reconcile_keeps_the_entries(program: Any, control: Any) -> None:
    c = control(program)
    c.write(("INSERT", entry(5, 6)))
    c.set_pipeline(changed(program), action=RECONCILE)

    assert [c.bench.send(frame)[0][0] for frame in (b"\x05", b"\x07")] == [6, 2]


def test_get_returns_what_was_set(program: Any, control: Any) -> None:
    c = control(program)
    c.set_pipeline(program.source(), cookie=99)
    request = p4.GetForwardingPipelineConfigRequest(device_id=1)
    config = c.service.get_pipeline(request).config

    assert (config.cookie.cookie, config.p4info, config.p4_device_config) == (
        99,
        c.p4info,
        program.source(),
    )

    request.response_type = p4.GetForwardingPipelineConfigRequest.COOKIE_ONLY
    config = c.service.get_pipeline(request).config

    assert (config.cookie.cookie, config.p4_device_config) == (99, b"")


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"pipelines": [], "header_types": []}',
        b"\xff\xfe",
        b'{"pipelines": 3, "header_types": 1}',
    ],
)
def test_a_corrupt_json_is_one_line_and_the_old_pipeline_stays(
    program: Any, control: Any, source: bytes
) -> None:
    c = control(program)

    with pytest.raises(StatusError) as caught:
        c.set_pipeline(source)

    assert caught.value.code == Code.INVALID_ARGUMENT
    assert "JSON" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert c.bench.send(b"\x05") == [(1, b"\x05")]


def test_a_p4info_of_another_program_is_refused(program: Any, control: Any) -> None:
    c = control(program)
    c.p4info.tables[0].preamble.name = "another"

    with pytest.raises(StatusError, match="another"):
        c.set_pipeline(program.source())


def test_a_match_type_that_p4info_does_not_have_is_refused_by_number(
    program: Any, control: Any
) -> None:
    c = control(program)
    c.p4info.tables[0].match_fields[0].match_type = 8

    with pytest.raises(StatusError, match=r"the key of table .* no match type 8") as caught:
        c.set_pipeline(program.source())

    assert caught.value.code == Code.INVALID_ARGUMENT


def test_writes_need_a_pipeline(program: Any, control: Any) -> None:
    c = control(program)
    c.service._loaded = None

    with pytest.raises(StatusError) as caught:
        c.write(("INSERT", entry(5, 6)))

    assert caught.value.code == Code.FAILED_PRECONDITION


def test_capabilities_name_the_version(program: Any, control: Any) -> None:
    assert control(program).service.capabilities().p4runtime_api_version.startswith("1.")
