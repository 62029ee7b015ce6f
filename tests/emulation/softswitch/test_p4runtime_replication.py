"""Action profiles, multicast, clones, value sets: the program and its control plane together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from p4.v1 import p4runtime_pb2 as p4

TABLE, ACTION, PROFILE, VALUE_SET = 1 << 24, 2 << 24, 6 << 24, 9 << 24
INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATION = 1, 2, 4, 5


@pytest.fixture
def balanced(program: Any, control: Any) -> Any:
    """One table with a selector that hashes the second byte."""
    p = program
    p.header("h", kind=8, label=8)
    p.state("start", [p.extract("h")])
    forward = p.action(
        "forward", [p.call("assign", "standard_metadata.egress_spec", p.argument(0))], port=9
    )
    selector = {"algo": "identity", "input": [p.field("h.label")]}
    p.root["pipelines"][0]["action_profiles"] = [
        {"name": "ap", "id": 0, "max_size": 4, "selector": selector}
    ]
    p.table("t", {"h.kind": "exact"}, [forward], type="indirect_ws", action_profile="ap")

    return control(p)


def action(port: int) -> p4.Action:
    return p4.Action(
        action_id=ACTION + 1, params=[p4.Action.Param(param_id=1, value=bytes([port]))]
    )


def member(number: int, port: int | None = None) -> p4.Entity:
    made = p4.ActionProfileMember(action_profile_id=PROFILE + 1, member_id=number)
    if port is not None:
        made.action.CopyFrom(action(port))
    return p4.Entity(action_profile_member=made)


def group(number: int, *members: tuple[int, int]) -> p4.Entity:
    made = p4.ActionProfileGroup(action_profile_id=PROFILE + 1, group_id=number)
    for name, weight in members:
        made.members.add(member_id=name, weight=weight)

    return p4.Entity(action_profile_group=made)


def entry(**target: Any) -> p4.Entity:
    made = p4.TableEntry(table_id=TABLE + 1)
    made.match.add(field_id=1).exact.value = b"\x07"
    if target:
        made.action.CopyFrom(p4.TableAction(**target))
    return p4.Entity(table_entry=made)


def ports(c: Any, count: int = 12) -> Counter[int]:
    return Counter(port for label in range(count) for port, _ in c.bench.send(bytes([7, label])))


def test_groups_share_traffic_by_weight(balanced: Any) -> None:
    c = balanced
    c.write(
        ("INSERT", member(1, 3)), ("INSERT", member(2, 4)), ("INSERT", group(1, (1, 2), (2, 1)))
    )
    c.write(("INSERT", entry(action_profile_group_id=1)))

    assert ports(c) == {3: 8, 4: 4}

    c.write(("MODIFY", group(1, (2, 1))))

    assert ports(c) == {4: 12}

    c.write(("MODIFY", member(2, 5)))

    assert ports(c) == {5: 12}
    assert c.read(group(0)) == [group(1, (2, 1))]
    assert c.read(member(0)) == [member(1, 3), member(2, 5)]


def test_members_and_groups_in_use_cannot_go(balanced: Any) -> None:
    c = balanced
    c.write(("INSERT", member(1, 3)), ("INSERT", group(1, (1, 1))))

    assert c.code("DELETE", member(1)) == "FAILED_PRECONDITION"

    c.write(("INSERT", entry(action_profile_group_id=1)))

    assert c.code("DELETE", group(1)) == "FAILED_PRECONDITION"

    c.write(("DELETE", entry()), ("DELETE", group(1)), ("DELETE", member(1)))


@pytest.mark.parametrize(
    ("kind", "entity", "code"),
    [
        ("INSERT", member(0, 3), "INVALID_ARGUMENT"),
        ("INSERT", member(1), "INVALID_ARGUMENT"),
        ("MODIFY", member(1, 3), "NOT_FOUND"),
        ("INSERT", member(9, 3), "ALREADY_EXISTS"),
        ("INSERT", group(1, (8, 1)), "NOT_FOUND"),
        ("INSERT", group(1, (9, 0)), "INVALID_ARGUMENT"),
        ("INSERT", group(1, (9, 1), (9, 1)), "INVALID_ARGUMENT"),
        ("INSERT", entry(action_profile_group_id=5), "NOT_FOUND"),
        ("INSERT", entry(action_profile_member_id=5), "NOT_FOUND"),
        ("INSERT", entry(action=action(1)), "INVALID_ARGUMENT"),
    ],
)
def test_refused_profile_updates(balanced: Any, kind: str, entity: p4.Entity, code: str) -> None:
    balanced.write(("INSERT", member(9, 3)))
    assert balanced.code(kind, entity) == code


def test_a_profile_has_a_size(balanced: Any) -> None:
    for i in range(4):
        balanced.write(("INSERT", member(i + 1, i)))

    assert balanced.code("INSERT", member(5, 5)) == "RESOURCE_EXHAUSTED"


def one_shot(*actions: tuple[int, int]) -> p4.Entity:
    entity = entry()
    for port, weight in actions:
        made = entity.table_entry.action.action_profile_action_set.action_profile_actions.add(
            weight=weight
        )
        made.action.CopyFrom(action(port))

    return entity


def test_one_shots_are_read_back_and_replaced_within_the_size(balanced: Any) -> None:
    c = balanced
    first, second = one_shot((3, 1), (4, 2), (5, 1)), one_shot((6, 1), (7, 1), (1, 1))
    c.write(("INSERT", first))

    assert ports(c, 8) == {3: 2, 4: 4, 5: 2}
    assert c.read(p4.Entity(table_entry=p4.TableEntry(table_id=TABLE + 1))) == [first]

    c.write(("MODIFY", second))

    assert ports(c, 6) == {6: 2, 7: 2, 1: 2}
    assert c.code("INSERT", member(1, 2)) == "INVALID_ARGUMENT"

    c.write(("DELETE", entry()))

    assert c.code("INSERT", member(1, 2)) == "OK"


def test_a_member_whose_watch_port_is_down_is_left_out(balanced: Any) -> None:
    c = balanced
    entity = one_shot((3, 1), (4, 1))
    entity.table_entry.action.action_profile_action_set.action_profile_actions[
        0
    ].watch_port = b"\x03"
    c.write(("INSERT", entity))
    c.bench.switch.set_port_status(3, up=False)

    assert ports(c) == {4: 12}

    c.bench.switch.set_port_status(3, up=True)

    assert ports(c) == {3: 6, 4: 6}


@pytest.fixture
def copier(program: Any, control: Any) -> Any:
    """Select an action by the first byte; instance type and egress_rid come back after it."""
    p = program
    p.header("h", what=8, kind=8, rid=8, kept=8)
    p.metadata("meta", {"kept": 8})
    p.state("start", [p.extract("h")])
    p.root["field_lists"] = [{"id": 1, "name": "kept", "elements": [p.field("meta.kept")]}]
    out = p.call("assign", "standard_metadata.egress_spec", 1)
    keep = p.call("assign", "meta.kept", p.op("+", "meta.kept", 9))
    ingress = {
        1: [p.call("assign", "standard_metadata.mcast_grp", 5)],
        2: [keep, p.call("clone_ingress_pkt_to_egress", 7, 1), out],
        3: [keep, p.call("resubmit", 1), p.call("assign", "h.what", 2)],
        6: [p.call("truncate", 5), out],
    }
    actions = [p.action(f"in{number}", body) for number, body in ingress.items()]
    fresh = p.action("fresh", [out, keep])
    key = {"h.what": "exact", "standard_metadata.instance_type": "exact"}
    p.table("in", key, [*actions, fresh], default=fresh)
    egress = {4: [p.call("clone_egress_pkt_to_egress", 7, 1)], 5: [p.call("recirculate", 1)]}
    later = [p.action(f"out{number}", body) for number, body in egress.items()]
    nothing = p.action("nothing", [])
    p.table(
        "out",
        {**key, "meta.kept": "exact"},
        [*later, nothing],
        default=nothing,
        pipeline="egress",
        following="report",
    )
    fields = {
        "kind": "standard_metadata.instance_type",
        "rid": "standard_metadata.egress_rid",
        "kept": "meta.kept",
    }
    p.run(
        "report",
        [p.call("assign", f"h.{to}", origin) for to, origin in fields.items()],
        pipeline="egress",
    )
    c = control(p)
    tables = {table.spec.name: table for table in c.bench.switch.pipeline.tables}
    for number, action_id in zip(ingress, actions, strict=True):
        tables["in"].insert(((number, 0), (0, 0)), 0, action_id, ())
    for number, action_id in zip(egress, later, strict=True):
        tables["out"].insert(((number, 0), (0, 0), (9, 0)), 0, action_id, ())

    return c


def replicas(*pairs: tuple[int, int]) -> list[p4.Replica]:
    return [p4.Replica(port=bytes([port]), instance=instance) for port, instance in pairs]


def multicast(*pairs: tuple[int, int]) -> p4.Entity:
    made = p4.MulticastGroupEntry(multicast_group_id=5, replicas=replicas(*pairs))
    return p4.Entity(packet_replication_engine_entry={"multicast_group_entry": made})


def session(*pairs: tuple[int, int], size: int = 0) -> p4.Entity:
    made = p4.CloneSessionEntry(session_id=7, replicas=replicas(*pairs), packet_length_bytes=size)
    return p4.Entity(packet_replication_engine_entry={"clone_session_entry": made})


def test_multicast_copies_to_every_replica(copier: Any) -> None:
    c = copier

    assert c.bench.send(b"\1\0\0\0x") == []

    c.write(("INSERT", multicast((2, 0), (3, 1))))

    assert c.bench.send(b"\1\0\0\0x") == [
        (2, bytes([1, REPLICATION, 0, 0]) + b"x"),
        (3, bytes([1, 5, 1, 0]) + b"x"),
    ]
    assert c.read(multicast()) == [multicast((2, 0), (3, 1))]

    c.write(("MODIFY", multicast((4, 0))))

    assert [port for port, _ in c.bench.send(b"\1\0\0\0x")] == [4]

    c.write(("DELETE", multicast()))

    assert c.bench.send(b"\1\0\0\0x") == []


def test_a_backup_replica_takes_over_while_the_port_is_down(copier: Any) -> None:
    c = copier
    group = multicast((2, 0), (3, 1))
    replica = group.packet_replication_engine_entry.multicast_group_entry.replicas[0]
    for port in (4, 5):
        replica.backup_replicas.add(port=bytes([port]), instance=port)

    c.write(("INSERT", group))

    assert c.read(multicast()) == [group]

    seen = []
    for down in ((), (2,), (2, 4), (2, 4, 5)):
        for port in (2, 4, 5):
            c.bench.switch.set_port_status(port, port not in down)
        seen.append(c.bench.send(b"\1\0\0\0x")[0])

    # Where no backup is up either, the copy goes where it always went.
    assert [(port, frame[2]) for port, frame in seen] == [(2, 0), (4, 4), (5, 5), (2, 0)]


def test_an_ingress_clone_is_the_packet_as_it_came_in(copier: Any) -> None:
    c = copier
    c.write(("INSERT", session((2, 3), size=4)))
    clone = bytes([2, INGRESS_CLONE, 3, 9])

    assert sorted(c.bench.send(b"\2\0\0\0x")) == [(1, bytes([2, 0, 0, 9]) + b"x"), (2, clone)]


def test_a_resubmitted_packet_starts_over_with_its_kept_fields(copier: Any) -> None:
    assert copier.bench.send(b"\3\0\0\0x") == [(1, bytes([3, 0, 0, 18]) + b"x")]


def test_an_egress_clone_and_its_original_both_leave(copier: Any) -> None:
    c = copier
    c.write(("INSERT", session((2, 3))))
    original, clone = bytes([4, 0, 0, 9]), bytes([4, EGRESS_CLONE, 3, 9])

    assert sorted(c.bench.send(b"\4\0\0\0x")) == [(1, original + b"x"), (2, clone + b"x")]


def test_a_recirculated_packet_goes_through_again(copier: Any) -> None:
    assert copier.bench.send(b"\5\0\0\0x") == [(1, bytes([5, 0, 0, 18]) + b"x")]


def test_truncate_shortens_the_frame(copier: Any) -> None:
    assert copier.bench.send(b"\6\0\0\0xyz") == [(1, b"\6\0\0\0x")]


@pytest.mark.parametrize(
    ("kind", "entity", "code"),
    [
        ("DELETE", multicast(), "NOT_FOUND"),
        ("MODIFY", session(), "NOT_FOUND"),
        ("INSERT", multicast((2, 0), (2, 0)), "INVALID_ARGUMENT"),
        ("INSERT", multicast((2, 1 << 16)), "INVALID_ARGUMENT"),
        (
            "INSERT",
            p4.Entity(packet_replication_engine_entry={"multicast_group_entry": {}}),
            "INVALID_ARGUMENT",
        ),
        ("INSERT", p4.Entity(packet_replication_engine_entry={}), "INVALID_ARGUMENT"),
    ],
)
def test_refused_replication_updates(copier: Any, kind: str, entity: p4.Entity, code: str) -> None:
    assert copier.code(kind, entity) == code


def test_value_sets_steer_the_parser(program: Any, control: Any) -> None:
    p = program
    p.header("h", kind=16)
    p.header("more", emit=False, port=8)
    p.root["parse_vsets"] = [{"name": "pvs", "id": 0, "compressed_bitwidth": 16}]
    p.state("start", [p.extract("h")], ["h.kind"], {None: None})
    hit = {"type": "parse_vset", "value": "pvs", "mask": None, "next_state": "more"}
    p.root["parsers"][0]["parse_states"][0]["transitions"].insert(0, hit)
    p.state("more", [p.extract("more")])
    p.run("out", [p.call("assign", "standard_metadata.egress_spec", "more.port")])
    c = control(p)
    value_set = p4.Entity()
    value_set.value_set_entry.value_set_id = VALUE_SET + 1
    value_set.value_set_entry.members.add().match.add(field_id=1).exact.value = b"\x12\x34"
    c.write(("MODIFY", value_set))

    assert [c.bench.send(frame)[0][0] for frame in (b"\x12\x34\x05", b"\x12\x35\x05")] == [5, 0]
    assert c.read(p4.Entity(value_set_entry=p4.ValueSetEntry())) == [value_set]

    value_set.value_set_entry.members.append(value_set.value_set_entry.members[0])

    assert c.code("MODIFY", value_set) == "ALREADY_EXISTS"
