"""P4Runtime conformance, in process.

Sentences in quotes are from the P4Runtime specification 1.4.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from p4.v1 import p4runtime_pb2 as p4

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.p4runtime import StatusError

TABLE, ACTION, REGISTER, COUNTER, METER, PROFILE, DIRECT, DIGEST, VALUE_SET = (
    n << 24 for n in range(1, 10)
)
FORWARD, DROP = ACTION + 1, ACTION + 2
ROUTES, ACL, RANGES, EXACT = (TABLE + n for n in (1, 2, 3, 4))


@pytest.fixture
def program(program: Any) -> Any:
    """Four tables in a row, the last hit decides; a register, a counter and a meter."""
    p = program
    p.header("h", dst=32, kind=8, port=16)
    p.state("start", [p.extract("h")])
    forward = p.action(
        "forward", [p.call("assign", "standard_metadata.egress_spec", p.argument(0))], port=9
    )
    drop = p.action("drop", [p.call("mark_to_drop", p.header_operand("standard_metadata"))])
    nothing = p.action("NoAction", [])
    actions = [forward, drop, nothing]
    p.table(
        "routes",
        {"h.dst": "lpm"},
        actions,
        nothing,
        following="acl",
        with_counters=True,
        max_size=3,
    )
    p.table("acl", {"h.dst": "ternary", "h.kind": "optional"}, actions, nothing, following="ranges")
    p.table("ranges", {"h.port": "range"}, actions, nothing, following="exact")
    p.table("exact", {"h.kind": "exact"}, actions, nothing, following="work", support_timeout=True)
    p.root["register_arrays"] = [{"name": "r", "id": 0, "size": 4, "bitwidth": 12}]
    p.root["counter_arrays"] = [{"name": "c", "id": 0, "size": 2, "is_direct": False}]
    p.root["meter_arrays"] = [
        {"name": "m", "id": 0, "size": 2, "type": "packets", "is_direct": False}
    ]
    p.run("work", [p.call("count", {"type": "counter_array", "value": "c"}, 1)])
    return p


def entry(
    table: int, action: int | None = FORWARD, port: int = 1, priority: int = 0, **fields: Any
) -> p4.Entity:
    """A table entry; `f1=...` gives match field 1 as bytes (exact), (value, length) etc.

    With the kind in front.
    """
    entity = p4.Entity()
    made = entity.table_entry
    made.table_id, made.priority = table, priority
    for name, (kind, *values) in fields.items():
        match = made.match.add(field_id=int(name[1:]))
        for attribute, value in zip(ATTRIBUTES[kind], values, strict=True):
            setattr(getattr(match, kind), attribute, value)
    if action is not None:
        made.action.action.action_id = action
        if action == FORWARD:
            made.action.action.params.add(param_id=1, value=bytes([port]))
    return entity


ATTRIBUTES = {
    "exact": ["value"],
    "lpm": ["value", "prefix_len"],
    "ternary": ["value", "mask"],
    "range": ["low", "high"],
    "optional": ["value"],
}
ROUTE: dict[str, Any] = {"f1": ("lpm", b"\x0a\0\0\0", 8)}
FRAME = struct.pack(">IBH", 0x0A000001, 6, 4791)


def default(table: int, action: int | None = FORWARD, port: int = 1) -> p4.Entity:
    made = entry(table, action, port)
    made.table_entry.is_default_action = True
    return made


def test_entries_are_inserted_read_modified_and_deleted(program: Any, control: Any) -> None:
    c = control(program)
    c.write(("INSERT", entry(ROUTES, port=2, **ROUTE)))
    assert c.read(entry(0, None)) == [entry(ROUTES, port=2, **ROUTE)]
    assert c.bench.send(FRAME) == [(2, FRAME)]
    c.write(("MODIFY", entry(ROUTES, port=3, **ROUTE)))
    assert c.bench.send(FRAME) == [(3, FRAME)]
    c.write(("DELETE", entry(ROUTES, None, **ROUTE)))
    assert c.read(entry(ROUTES, None)) == []
    assert c.bench.send(FRAME) == [(0, FRAME)]


@pytest.mark.parametrize(
    ("kind", "entity", "code"),
    [
        ("INSERT", entry(TABLE + 99, **ROUTE), "NOT_FOUND"),
        ("INSERT", entry(ROUTES, ACTION + 99, **ROUTE), "INVALID_ARGUMENT"),
        ("INSERT", entry(ROUTES, None, **ROUTE), "INVALID_ARGUMENT"),
        ("INSERT", entry(ROUTES, f2=("exact", b"\1")), "INVALID_ARGUMENT"),
        ("INSERT", entry(ROUTES, f1=("exact", b"\1")), "INVALID_ARGUMENT"),
        ("INSERT", entry(ROUTES, f1=("lpm", b"\x0a\0\0\1", 8)), "INVALID_ARGUMENT"),
        ("INSERT", entry(ROUTES, f1=("lpm", b"\0", 0)), "INVALID_ARGUMENT"),
        ("INSERT", entry(ROUTES, f1=("lpm", b"\x0a\0\0\0", 33)), "INVALID_ARGUMENT"),
        ("INSERT", entry(ROUTES, f1=("lpm", b"\1\0\0\0\0", 8)), "OUT_OF_RANGE"),
        ("INSERT", entry(ROUTES, f1=("lpm", b"", 8)), "OUT_OF_RANGE"),
        ("INSERT", entry(ROUTES, priority=1, **ROUTE), "INVALID_ARGUMENT"),
        ("INSERT", entry(ACL, f2=("optional", b"\1")), "INVALID_ARGUMENT"),
        ("INSERT", entry(ACL, priority=1, f1=("ternary", b"\2", b"\1")), "INVALID_ARGUMENT"),
        ("INSERT", entry(ACL, priority=1, f1=("ternary", b"\0", b"\0")), "INVALID_ARGUMENT"),
        ("INSERT", entry(RANGES, priority=1, f1=("range", b"\2", b"\1")), "INVALID_ARGUMENT"),
        ("INSERT", entry(RANGES, priority=1, f1=("range", b"\0", b"\xff\xff")), "INVALID_ARGUMENT"),
        ("INSERT", entry(EXACT), "INVALID_ARGUMENT"),
        ("INSERT", default(ROUTES), "INVALID_ARGUMENT"),
        ("DELETE", default(ROUTES), "INVALID_ARGUMENT"),
        ("MODIFY", entry(ROUTES, **ROUTE), "NOT_FOUND"),
        ("DELETE", entry(ROUTES, **ROUTE), "NOT_FOUND"),
        ("INSERT", p4.Entity(), "INVALID_ARGUMENT"),
        ("INSERT", p4.Entity(extern_entry=p4.ExternEntry()), "UNIMPLEMENTED"),
        ("UNSPECIFIED", entry(ROUTES, **ROUTE), "INVALID_ARGUMENT"),
    ],
)
def test_updates_that_are_refused(
    program: Any, control: Any, kind: str, entity: p4.Entity, code: str
) -> None:
    assert control(program).code(kind, entity) == code


def test_an_entry_twice_already_exists_and_a_full_table_is_exhausted(
    program: Any, control: Any
) -> None:
    c = control(program)
    for i in range(3):
        c.write(("INSERT", entry(ROUTES, f1=("lpm", bytes([i + 1, 0, 0, 0]), 8))))
    assert c.code("INSERT", entry(ROUTES, f1=("lpm", b"\1\0\0\0", 8))) == "ALREADY_EXISTS"
    assert c.code("INSERT", entry(ROUTES, f1=("lpm", b"\4\0\0\0", 8))) == "RESOURCE_EXHAUSTED"


def test_every_update_of_a_batch_is_tried_and_has_its_error(program: Any, control: Any) -> None:
    """ "The number of p4.Error messages ... should always match the number of updates." """
    c = control(program)
    good, bad = entry(ROUTES, **ROUTE), entry(EXACT)
    with pytest.raises(StatusError) as caught:
        c.write(("INSERT", bad), ("INSERT", good), ("INSERT", good))
    assert caught.value.code == Code.UNKNOWN
    assert [error.canonical_code for error in caught.value.details] == [
        Code.INVALID_ARGUMENT,
        Code.OK,
        Code.ALREADY_EXISTS,
    ]
    assert c.read(entry(ROUTES, None)) == [good]


def test_the_default_entry_is_modified_and_reset(program: Any, control: Any) -> None:
    c = control(program)
    c.write(("MODIFY", default(EXACT, DROP)))
    assert c.bench.send(FRAME) == []
    assert c.read(default(EXACT, None)) == [default(EXACT, DROP)]
    c.write(("MODIFY", default(EXACT, None)))
    assert c.bench.send(FRAME) == [(0, FRAME)]


def test_a_const_default_is_refused(program: Any, control: Any) -> None:
    def make_const(p4info: Any) -> None:
        p4info.tables[3].const_default_action_id = DROP

    assert control(program, edit=make_const).code("MODIFY", default(EXACT)) == "PERMISSION_DENIED"


def test_const_entries_can_be_read_but_not_changed(program: Any, control: Any) -> None:
    key = [{"match_type": "exact", "key": "0x06"}]
    program.root["pipelines"][0]["tables"][3]["entries"] = [
        {"match_key": key, "action_entry": {"action_id": 0, "action_data": ["0x5"]}, "priority": 1}
    ]
    c = control(program)
    expected = entry(EXACT, port=5, f1=("exact", b"\6"))
    expected.table_entry.is_const = True
    assert c.read(entry(EXACT, None)) == [expected]
    assert c.bench.send(FRAME) == [(5, FRAME)]
    for kind in ("INSERT", "MODIFY", "DELETE"):
        assert c.code(kind, entry(EXACT, port=2, f1=("exact", b"\6"))) == "PERMISSION_DENIED"


def test_priorities_decide_between_ternary_and_range_entries(program: Any, control: Any) -> None:
    c = control(program)
    c.write(
        ("INSERT", entry(ACL, port=1, priority=5)),
        ("INSERT", entry(ACL, port=2, priority=9, f1=("ternary", b"\x0a\0\0\0", b"\xff\0\0\0"))),
        ("INSERT", entry(ACL, port=3, priority=7, f2=("optional", b"\6"))),
    )
    assert c.bench.send(FRAME)[0][0] == 2
    c.write(("INSERT", entry(RANGES, port=4, priority=1, f1=("range", b"\x10\x00", b"\x13\x00"))))
    assert [
        c.bench.send(FRAME[:5] + struct.pack(">H", port))[0][0] for port in (0x1000, 0x1300, 0x1301)
    ] == [4, 4, 2]
    assert [e.table_entry.priority for e in c.read(entry(ACL, None))] == [5, 9, 7]
    assert [e.table_entry.priority for e in c.read(entry(ACL, None, priority=9))] == [9]


def test_wildcard_reads_filter_by_action_and_metadata(program: Any, control: Any) -> None:
    c = control(program)
    first, second = entry(ROUTES, **ROUTE), entry(ROUTES, DROP, f1=("lpm", b"\x0b\0\0\0", 8))
    second.table_entry.metadata = b"mine"
    c.write(("INSERT", first), ("INSERT", second))
    query = entry(ROUTES, None)
    query.table_entry.action.action.action_id = FORWARD
    assert c.read(query) == [first]
    query = entry(ROUTES, None)
    query.table_entry.metadata = b"mine"
    assert c.read(query) == [second]


def test_values_are_read_back_in_canonical_form(program: Any, control: Any) -> None:
    c = control(program)
    c.write(("INSERT", entry(EXACT, f1=("exact", b"\0\0\6"))))
    [entity] = c.read(entry(EXACT, None))
    assert entity.table_entry.match[0].exact.value == b"\6"


def test_direct_counters_count_hits(program: Any, control: Any) -> None:
    c = control(program)
    c.write(("INSERT", entry(ROUTES, **ROUTE)))
    c.bench.send(FRAME)
    query = p4.Entity()
    query.direct_counter_entry.table_entry.table_id = ROUTES
    [counter] = c.read(query)
    assert counter.direct_counter_entry.data == p4.CounterData(
        packet_count=1, byte_count=len(FRAME)
    )
    counter.direct_counter_entry.data.packet_count = 0
    c.write(("MODIFY", counter))
    query = entry(ROUTES, None)
    query.table_entry.counter_data.SetInParent()
    assert c.read(query)[0].table_entry.counter_data.packet_count == 0
    assert c.code("INSERT", counter) == "INVALID_ARGUMENT"


def cell(kind: str, number: int, index: int | None) -> p4.Entity:
    entity = p4.Entity()
    made = getattr(entity, f"{kind}_entry")
    setattr(made, f"{kind}_id", number)
    made.SetInParent()
    if index is not None:
        made.index.index = index
        made.index.SetInParent()
    return entity


@pytest.mark.parametrize(
    ("kind", "number"), [("counter", COUNTER + 1), ("meter", METER + 1), ("register", REGISTER + 1)]
)
def test_indices_of_arrays_are_checked(program: Any, control: Any, kind: str, number: int) -> None:
    c = control(program)
    assert c.code("MODIFY", cell(kind, number, -1)) == "INVALID_ARGUMENT"
    assert c.code("MODIFY", cell(kind, number, 4)) == "OUT_OF_RANGE"
    assert c.code("INSERT", cell(kind, number, 0)) == "INVALID_ARGUMENT"
    assert c.code("MODIFY", cell(kind, 77, 0)) == "NOT_FOUND"
    assert (
        len(c.read(cell(kind, 0, None)))
        == len(c.read(cell(kind, number, None)))
        == (4 if kind == "register" else 2)
    )


def test_counters_are_read_and_written(program: Any, control: Any) -> None:
    c = control(program)
    c.bench.send(FRAME)
    [counter] = c.read(cell("counter", COUNTER + 1, 1))
    assert (counter.counter_entry.data.packet_count, counter.counter_entry.data.byte_count) == (
        1,
        len(FRAME),
    )
    counter.counter_entry.data.packet_count = 5
    c.write(("MODIFY", counter))
    assert c.read(cell("counter", COUNTER + 1, 1)) == [counter]


def test_registers_are_read_and_written(program: Any, control: Any) -> None:
    c = control(program)
    register = cell("register", REGISTER + 1, 2)
    register.register_entry.data.bitstring = b"\x0a\xbc"
    c.write(("MODIFY", register))
    assert c.read(cell("register", REGISTER + 1, 2)) == [register]
    assert c.bench.switch.pipeline.registers == [[0, 0, 0xABC, 0]]
    register.register_entry.data.bitstring = b"\x1a\xbc"
    assert c.code("MODIFY", register) == "OUT_OF_RANGE"


def test_meters_keep_their_configuration(program: Any, control: Any) -> None:
    c = control(program)
    meter = cell("meter", METER + 1, 0)
    meter.meter_entry.config.CopyFrom(p4.MeterConfig(cir=10, cburst=1, pir=20, pburst=2))
    c.write(("MODIFY", meter))
    assert c.read(cell("meter", METER + 1, 0)) == [meter]
    meter.meter_entry.config.cir = 30
    assert c.code("MODIFY", meter) == "INVALID_ARGUMENT"


def test_idle_entries_are_reported_once_per_timeout(program: Any, control: Any) -> None:
    c = control(program)
    idle_entry = entry(EXACT, f1=("exact", b"\6"))
    idle_entry.table_entry.idle_timeout_ns = 1000
    c.write(("INSERT", idle_entry))
    assert c.service.next_tick_ps() == 1_000_000
    c.bench.now_ps = 900_000
    c.bench.send(FRAME)
    for now in (1_000_000, 1_900_000, 1_900_001):
        c.bench.now_ps = now
        c.service.tick()
    notices = [
        m.idle_timeout_notification for m in c.received if m.HasField("idle_timeout_notification")
    ]
    assert [[e.match[0].exact.value for e in notice.table_entry] for notice in notices] == [[b"\6"]]
    assert c.code("INSERT", with_timeout(entry(ROUTES, **ROUTE))) == "INVALID_ARGUMENT"


def with_timeout(entity: p4.Entity) -> p4.Entity:
    entity.table_entry.idle_timeout_ns = 5
    return entity


def test_reads_report_one_error_per_request(program: Any, control: Any) -> None:
    c = control(program)
    with pytest.raises(StatusError) as caught:
        c.read(entry(ROUTES, None), entry(TABLE + 99, None), p4.Entity())
    assert [e.canonical_code for e in caught.value.details] == [
        Code.OK,
        Code.NOT_FOUND,
        Code.INVALID_ARGUMENT,
    ]


ATOMIC = [p4.WriteRequest.ROLLBACK_ON_ERROR, p4.WriteRequest.DATAPLANE_ATOMIC]


def state_of(c: Any) -> list[p4.Entity]:
    """All that these tests write, with counters."""
    table_queries = [entry(table, None) for table in (ROUTES, ACL, RANGES, EXACT)]
    for item in table_queries:
        item.table_entry.counter_data.SetInParent()

    default = p4.Entity()
    default.table_entry.table_id = EXACT
    default.table_entry.is_default_action = True
    object_queries = [p4.Entity() for _ in range(3)]
    object_queries[0].register_entry.register_id = REGISTER + 1
    object_queries[1].counter_entry.counter_id = COUNTER + 1
    object_queries[2].packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 1
    return list(c.read(*table_queries, default, *object_queries))


def group(*ports: int) -> p4.Entity:
    entity = p4.Entity()
    made = entity.packet_replication_engine_entry.multicast_group_entry
    made.multicast_group_id = 1
    for port in ports:
        made.replicas.add(port=bytes([port]), instance=1)
    return entity


def holding(kind: str, value: int) -> p4.Entity:
    entity = p4.Entity()
    if kind == "register":
        entity.register_entry.register_id = REGISTER + 1
        entity.register_entry.index.index = 2
        entity.register_entry.data.bitstring = bytes([value])
    else:
        entity.counter_entry.counter_id = COUNTER + 1
        entity.counter_entry.index.index = 0
        entity.counter_entry.data.packet_count = value
    return entity


@pytest.mark.parametrize("atomicity", ATOMIC)
def test_an_atomic_batch_that_fails_changes_nothing(
    program: Any, control: Any, atomicity: int
) -> None:
    c = control(program)
    route = entry(ROUTES, port=2, **ROUTE)
    rule = entry(ACL, port=3, priority=5, f2=("optional", b"\x07"))
    # Its match is empty, as is that of a read of the whole table.
    always = entry(ACL, port=3, priority=1)
    route.table_entry.counter_data.packet_count = 17
    for made in (route, rule, always, group(1, 2)):
        c.write(("INSERT", made))
    c.write(("MODIFY", holding("register", 9)), ("MODIFY", holding("counter", 5)))
    before = state_of(c)

    default = entry(EXACT, port=6)
    default.table_entry.is_default_action = True
    request = p4.WriteRequest(device_id=1, atomicity=atomicity)
    request.election_id.low = 1
    for kind, made in (
        ("MODIFY", entry(ROUTES, port=4, **ROUTE)),
        ("DELETE", entry(ACL, None, priority=1)),
        ("INSERT", entry(RANGES, port=5, priority=1)),
        ("MODIFY", default),
        ("MODIFY", holding("register", 1)),
        ("MODIFY", holding("counter", 1)),
        ("MODIFY", group(3)),
        ("DELETE", entry(ROUTES, None, **ROUTE)),
        ("INSERT", rule),
        ("INSERT", entry(RANGES, port=5, priority=2)),
    ):
        request.updates.add(type=p4.Update.Type.Value(kind), entity=made)

    with pytest.raises(StatusError) as caught:
        c.service.write(request)

    codes = [item.canonical_code for item in caught.value.details]
    assert codes == [Code.ABORTED] * 8 + [Code.ALREADY_EXISTS, Code.ABORTED]
    assert sorted(map(repr, state_of(c))) == sorted(map(repr, before))


@pytest.mark.parametrize("atomicity", ATOMIC)
def test_an_atomic_batch_is_one_step_between_packets(
    program: Any, control: Any, atomicity: int
) -> None:
    c = control(program)
    request = p4.WriteRequest(device_id=1, atomicity=atomicity)
    request.election_id.low = 1
    for port in (1, 2):
        made = entry(EXACT, port=port, f1=("exact", bytes([port])))
        request.updates.add(type=p4.Update.INSERT, entity=made)

    assert list(c.service.write_steps(request)) == []
    assert len(c.read(entry(EXACT, None))) == 2


def test_the_wrong_device_is_not_found(program: Any, control: Any) -> None:
    with pytest.raises(StatusError) as caught:
        control(program).service.read(p4.ReadRequest(device_id=2))
    assert caught.value.code == Code.NOT_FOUND
