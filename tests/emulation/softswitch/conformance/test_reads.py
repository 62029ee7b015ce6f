"""Sections 8.3, 9.1.6, 13 and 14 of the P4Runtime specification 1.4: reads, and kept state."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.p4runtime import StatusError
from tests.emulation.softswitch.conformance.peer import (
    DEVICE,
    Peer,
    Set,
    action,
    between,
    entity,
    entry,
    exact,
    frame,
    group,
    ids,
    lpm,
    member,
    multicast,
    session,
    ternary,
)

# isort: split
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4

KNOWN = entry("exact_table", exact(5), action("forward", 3))

# An entity of each kind, as messages have it: a test writes it, and then wants to read it.
EVERYTHING = [
    ("INSERT", entry("exact_table", exact(5), action("forward", 3), "metadata: 'm'")),
    ("INSERT", entry("ternary_table", ternary(1, 3), between(5, 9), action("drop"), "priority: 4")),
    ("INSERT", entry("lpm_table", lpm(0x0A000000, 8), action("forward", 2))),
    ("INSERT", entry("idle_table", exact(1), action("NoAction"), "idle_timeout_ns: 5")),
    ("INSERT", member(1)),
    ("INSERT", member(2)),
    ("INSERT", group(1, "1 2", "2 1 watch_port: '\\003'", more="max_size: 4")),
    ("INSERT", entry("selected_table", exact(9), "action { action_profile_group_id: 1 }")),
    ("INSERT", multicast(3, "port: '\\001' instance: 2", "port: '\\002'")),
    ("INSERT", session(4, "port: '\\005'", more="class_of_service: 1 packet_length_bytes: 20")),
    (
        "INSERT",
        "digest_entry { digest_id: $learn_t"
        " config { max_timeout_ns: 9 max_list_size: 2 ack_timeout_ns: 7 } }",
    ),
    ("MODIFY", f"value_set_entry {{ value_set_id: $chosen members {{ {exact(7)} }} }}"),
    (
        "MODIFY",
        "counter_entry { counter_id: $counted index { index: 1 }"
        " data { packet_count: 3 byte_count: 99 } }",
    ),
    (
        "MODIFY",
        "meter_entry { meter_id: $metered index { index: 1 }"
        " config { cir: 1 cburst: 2 pir: 3 pburst: 4 } }",
    ),
    (
        "MODIFY",
        "register_entry { register_id: $cells index { index: 1 } data { bitstring: '\\005' } }",
    ),
]

# Reads that select all of it.
WANTED = [
    "table_entry { table_id: 0 }",
    "action_profile_member { }",
    "action_profile_group { }",
    "packet_replication_engine_entry { multicast_group_entry { } }",
    "packet_replication_engine_entry { clone_session_entry { } }",
    "digest_entry { }",
    "value_set_entry { }",
    "counter_entry { }",
    "meter_entry { }",
    "register_entry { }",
]


def written(peer: Peer) -> list[p4.Entity]:
    """Write everything, and return it as it was written."""
    for kind, text in EVERYTHING:
        peer.write((kind, text))

    return [entity(text) for _, text in EVERYTHING]


def test_what_was_written_is_read() -> None:
    """8.3 Read-write symmetry: the message written and the message read should match."""
    peer = Peer()
    expected = written(peer)
    answered = peer.read(*WANTED)

    assert [item for item in expected if item not in answered] == []


def test_reconcile_preserves_the_forwarding_state() -> None:
    """14: RECONCILE_AND_COMMIT realises the config while preserving the forwarding state."""
    peer = Peer()
    written(peer)
    peer.write(("MODIFY", entry("exact_table", action("drop"), "is_default_action: true")))
    peer.send(frame(5))
    queries = [
        *WANTED,
        entry("exact_table", "is_default_action: true"),
        entry("exact_table", "counter_data { }"),
    ]
    before = peer.read(*queries)
    peer.set_pipeline(Set.RECONCILE_AND_COMMIT)

    assert peer.read(*queries) == before


def test_commit_clears_the_forwarding_state() -> None:
    """14: VERIFY_AND_COMMIT clears the forwarding state."""
    peer = Peer()
    fresh = peer.read(*WANTED)
    written(peer)
    peer.set_pipeline(Set.VERIFY_AND_COMMIT)

    assert peer.read(*WANTED) == fresh


def test_writes_after_save_wait_for_the_commit() -> None:
    """14: VERIFY_AND_SAVE modifies no forwarding state; COMMIT replays the writes since."""
    peer = Peer()
    peer.write(("INSERT", KNOWN))
    peer.set_pipeline(Set.VERIFY_AND_SAVE)
    peer.write(
        ("INSERT", entry("exact_table", exact(5), action("copy", 3))),
        ("INSERT", multicast(3, "port: '\\001'", "port: '\\002'")),
    )

    assert [port for port, _ in peer.send(frame(5))] == [3]

    peer.set_pipeline(Set.COMMIT, has_config=False)

    assert [port for port, _ in peer.send(frame(5))] == [1, 2]


def test_a_long_answer_comes_in_several_messages() -> None:
    """13.3: the server may break entities apart across responses (clients take 4 MB each)."""

    def enlarge(info: p4info_pb2.P4Info) -> None:
        info.registers[0].size = 4

    peer = Peer(enlarge)
    request = p4.ReadRequest(device_id=DEVICE)
    for _ in range(600):
        request.entities.add().register_entry.register_id = ids()["cells"]

    sizes = [len(response.entities) for response in peer.service.read(request)]

    assert sizes == [1000, 1000, 400]


class Selection(NamedTuple):
    """A read of `exact_table` or another, and how many entries it returns."""

    words: str
    text: str
    result: int | str


def insert_three_each(peer: Peer) -> None:
    """Insert three entries into `exact_table` and three into `ternary_table`."""
    for kind, name, more in (
        (1, "drop", "metadata: 'a'"),
        (2, "drop", "controller_metadata: 7"),
        (3, "learn", ""),
    ):
        peer.write(("INSERT", entry("exact_table", exact(kind), action(name), more)))

    for priority in (3, 3, 8):
        peer.write(
            (
                "INSERT",
                entry(
                    "ternary_table",
                    between(priority + len(peer.read(entry("ternary_table"))), 99),
                    action("drop"),
                    f"priority: {priority}",
                ),
            )
        )


SELECTIONS = [
    Selection("all tables, const ones too", "table_entry { }", 8),
    Selection("all tables take no other filter", "table_entry { priority: 3 }", "INVALID_ARGUMENT"),
    Selection("one table", entry("exact_table"), 3),
    Selection("one match", entry("exact_table", exact(2)), 1),
    Selection("a match that is not there", entry("exact_table", exact(9)), 0),
    Selection("a match that cannot be", entry("exact_table", lpm(1, 8)), "INVALID_ARGUMENT"),
    Selection("an action", entry("exact_table", "action { action { action_id: $drop } }"), 2),
    Selection("metadata", entry("exact_table", "metadata: 'a'"), 1),
    Selection("controller_metadata", entry("exact_table", "controller_metadata: 7"), 1),
    Selection("a priority", entry("ternary_table", "priority: 3"), 2),
    Selection("the default entry only", entry("exact_table", "is_default_action: true"), 1),
    Selection(
        "the default entry has no match",
        entry("exact_table", exact(1), "is_default_action: true"),
        "INVALID_ARGUMENT",
    ),
    Selection(
        "the default entry has no timeout",
        entry("idle_table", "is_default_action: true time_since_last_hit { }"),
        "INVALID_ARGUMENT",
    ),
    Selection(
        "time since the last hit where it is not known",
        entry("exact_table", "time_since_last_hit { }"),
        "INVALID_ARGUMENT",
    ),
    Selection("all cells of all counters", "counter_entry { }", 4),
    Selection("one cell", "counter_entry { counter_id: $counted index { index: 2 } }", 1),
    Selection(
        "a cell beyond the array",
        "counter_entry { counter_id: $counted index { index: 4 } }",
        "OUT_OF_RANGE",
    ),
    Selection(
        "a negative cell",
        "register_entry { register_id: $cells index { index: -1 } }",
        "INVALID_ARGUMENT",
    ),
    Selection(
        "direct counters of a table",
        "direct_counter_entry { table_entry { table_id: $exact_table } }",
        3,
    ),
    Selection(
        "the direct counter of an entry",
        "direct_counter_entry { table_entry { table_id: $exact_table " + exact(2) + " } }",
        1,
    ),
    Selection(
        "of no entry",
        "direct_counter_entry { table_entry { table_id: $exact_table " + exact(9) + " } }",
        "NOT_FOUND",
    ),
]


@pytest.mark.parametrize("rule", SELECTIONS, ids=lambda rule: rule.words)
def test_read_selects(rule: Selection) -> None:
    """9.1.6 and 9.3: default values are wildcards, others filter."""
    peer = Peer()
    insert_three_each(peer)

    try:
        result: int | str = len(peer.read(rule.text))
    except StatusError as error:
        result = Code(error.details[0].canonical_code).name

    assert result == rule.result


def test_a_reset_default_entry_is_as_the_program_made_it() -> None:
    """9.1.3: without action the default entry is reset, with its metadata and its direct resources'
    configuration.
    """
    peer = Peer()
    query = entry("metered_table", "is_default_action: true meter_config { }")
    before = peer.read(query)
    more = "metadata: 'x' meter_config { cir: 1 cburst: 1 pir: 2 pburst: 2 }"
    peer.write(
        ("MODIFY", entry("metered_table", action("police"), "is_default_action: true", more))
    )

    assert peer.read(query) != before

    peer.write(("MODIFY", entry("metered_table", "is_default_action: true metadata: 'y'")))

    assert peer.read(query) == before


def test_const_entries_are_marked_when_read() -> None:
    """9.1: is_const is true if and only if the client cannot change the entry."""
    peer = Peer()
    assert [item.table_entry.is_const for item in peer.read(entry("const_table"))] == [True, True]


def test_time_since_last_hit_is_told_where_asked() -> None:
    """9.1.8: set in the response if and only if it was set in the request, even if the timeout is
    0.
    """
    peer = Peer()
    peer.write(("INSERT", entry("idle_table", exact(5), action("NoAction"))))
    peer.now_ps = 7_000_000
    [told] = peer.read(entry("idle_table", "time_since_last_hit { }"))
    [plain] = peer.read(entry("idle_table"))

    assert told.table_entry.time_since_last_hit.elapsed_ns == 7000
    assert not plain.table_entry.HasField("time_since_last_hit")
