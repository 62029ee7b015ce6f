"""What the P4Runtime specification 1.4 says about calls, reads and streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ofan_p4.softswitch.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.bytestrings import decode, encode
from ofan_p4.softswitch.p4runtime import StatusError
from tests.emulation.softswitch.conformance import (
    CPU,
    DEVICE,
    Peer,
    Set,
    action,
    between,
    entry,
    exact,
    frame,
    group,
    ids,
    lpm,
    member,
    multicast,
    one_shot,
    session,
    ternary,
)

# isort: split
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4

Get = p4.GetForwardingPipelineConfigRequest
KNOWN = entry("exact_table", exact(5), action("forward", 3))


class Call(NamedTuple):
    """One rule about a call: the call, and the code that it ends with."""

    section: str
    words: str
    call: Callable[[Peer], Any]
    code: str


def get(**fields: Any) -> Callable[[Peer], Any]:
    return lambda peer: peer.service.get_pipeline(Get(**fields))


def read(**fields: Any) -> Callable[[Peer], Any]:
    return lambda peer: peer.service.read(p4.ReadRequest(**{"device_id": DEVICE, **fields}))


def write(**fields: Any) -> Callable[[Peer], Any]:
    return lambda peer: peer.write(("INSERT", KNOWN), **fields)


def configure(kind: int, has_config: bool = True, **fields: Any) -> Callable[[Peer], Any]:
    return lambda peer: peer.set_pipeline(kind, has_config, **fields)


def without_election(peer: Peer) -> None:
    peer.service.write(p4.WriteRequest(device_id=DEVICE))


def with_broken_config(peer: Peer) -> None:
    peer.info.tables[0].preamble.name = "I.other"
    peer.set_pipeline(Set.VERIFY)


def of_another_role(peer: Peer) -> None:
    Peer.announce(peer.service.open_stream(lambda _message: None), 5, role="sdn")
    peer.write(("INSERT", KNOWN), role="sdn")


CALLS = [
    Call("12 Write", "an unknown device", write(device_id=9), "NOT_FOUND"),
    Call("12 Write", "an unknown role", write(role="nobody"), "NOT_FOUND"),
    Call("12 Write", "not the primary's election id", without_election, "PERMISSION_DENIED"),
    Call(
        "12 Write",
        "the primary of the role by its own election id",
        of_another_role,
        "PERMISSION_DENIED",
    ),
    Call(
        "12 Write",
        "CONTINUE_ON_ERROR is required",
        write(atomicity=p4.WriteRequest.CONTINUE_ON_ERROR),
        "OK",
    ),
    Call(
        "12 Write",
        "ROLLBACK_ON_ERROR is supported",
        write(atomicity=p4.WriteRequest.ROLLBACK_ON_ERROR),
        "OK",
    ),
    Call(
        "12 Write",
        "DATAPLANE_ATOMIC is supported",
        write(atomicity=p4.WriteRequest.DATAPLANE_ATOMIC),
        "OK",
    ),
    Call("13 Read", "an unknown device", read(device_id=9), "NOT_FOUND"),
    Call(
        "13 Read",
        "requires neither election id nor stream",
        read(entities=[p4.Entity(table_entry=p4.TableEntry())]),
        "OK",
    ),
    Call("13 Read", "an empty entity is no wildcard", read(entities=[p4.Entity()]), "UNKNOWN"),
    Call("14 Set", "an unknown device", configure(Set.VERIFY, device_id=9), "NOT_FOUND"),
    Call("14 Set", "an unknown role", configure(Set.VERIFY, role="nobody"), "NOT_FOUND"),
    Call("14 Set", "no action", configure(Set.UNSPECIFIED), "INVALID_ARGUMENT"),
    Call("14 Set", "VERIFY", configure(Set.VERIFY), "OK"),
    Call("14 Set", "VERIFY without config", configure(Set.VERIFY, False), "INVALID_ARGUMENT"),
    Call("14 Set", "VERIFY of what cannot be realised", with_broken_config, "INVALID_ARGUMENT"),
    Call("14 Set", "VERIFY_AND_SAVE", configure(Set.VERIFY_AND_SAVE), "OK"),
    Call(
        "14 Set",
        "VERIFY_AND_SAVE without config",
        configure(Set.VERIFY_AND_SAVE, False),
        "INVALID_ARGUMENT",
    ),
    Call(
        "14 Set",
        "VERIFY_AND_COMMIT without config",
        configure(Set.VERIFY_AND_COMMIT, False),
        "INVALID_ARGUMENT",
    ),
    Call("14 Set", "COMMIT without a saved config", configure(Set.COMMIT, False), "NOT_FOUND"),
    Call("14 Set", "COMMIT with a config", configure(Set.COMMIT), "INVALID_ARGUMENT"),
    Call("14 Set", "RECONCILE_AND_COMMIT", configure(Set.RECONCILE_AND_COMMIT), "OK"),
    Call(
        "14 Set",
        "RECONCILE_AND_COMMIT without config",
        configure(Set.RECONCILE_AND_COMMIT, False),
        "INVALID_ARGUMENT",
    ),
    Call("15 Get", "an unknown device", get(device_id=9), "NOT_FOUND"),
    Call(
        "15 Get",
        "a response type that there is not",
        get(device_id=DEVICE, response_type=9),
        "INVALID_ARGUMENT",
    ),
    Call(
        "17 Capabilities",
        "without a device",
        lambda peer: peer.service.capabilities(p4.CapabilitiesRequest()),
        "OK",
    ),
    Call(
        "17 Capabilities",
        "an unknown device",
        lambda peer: peer.service.capabilities(p4.CapabilitiesRequest(device_id=9)),
        "NOT_FOUND",
    ),
]


def code_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except StatusError as error:
        return error.code.name
    return "OK"


@pytest.mark.parametrize("rule", CALLS, ids=lambda rule: f"{rule.section}: {rule.words}")
def test_call(rule: Call) -> None:
    peer = Peer()
    assert code_of(lambda: rule.call(peer)) == rule.code


@pytest.mark.parametrize("call", [write(), read()], ids=["Write", "Read"])
def test_before_a_config_is_set_reads_and_writes_fail(call: Callable[[Peer], Any]) -> None:
    """12, 13: before a ForwardingPipelineConfig has been set, FAILED_PRECONDITION."""
    peer = Peer(has_pipeline=False)
    assert code_of(lambda: call(peer)) == "FAILED_PRECONDITION"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Get.ALL, {"p4info", "p4_device_config", "cookie"}),
        (Get.COOKIE_ONLY, {"cookie"}),
        (Get.P4INFO_AND_COOKIE, {"p4info", "cookie"}),
        (Get.DEVICE_CONFIG_AND_COOKIE, {"p4_device_config", "cookie"}),
    ],
)
def test_get_returns_the_fields_of_its_type(kind: int, fields: set[str]) -> None:
    """15: response_type says which fields to populate; the cookie is the one that was set."""
    config = Peer().service.get_pipeline(Get(device_id=DEVICE, response_type=kind)).config
    assert {field.name for field, _ in config.ListFields()} == fields
    assert config.cookie.cookie == 42


def test_get_without_a_config_leaves_it_unset() -> None:
    """15: the top-level config is unset where it is not known."""
    assert (
        not Peer(has_pipeline=False).service.get_pipeline(Get(device_id=DEVICE)).HasField("config")
    )


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
WANTED = [
    *("table_entry { table_id: 0 }", "action_profile_member { }", "action_profile_group { }"),
    *(
        "packet_replication_engine_entry { multicast_group_entry { } }",
        "packet_replication_engine_entry { clone_session_entry { } }",
    ),
    *(
        "digest_entry { }",
        "value_set_entry { }",
        "counter_entry { }",
        "meter_entry { }",
        "register_entry { }",
    ),
]


def written(peer: Peer) -> list[p4.Entity]:
    """Write everything, and return it as it was written."""
    from tests.emulation.softswitch.conformance import entity

    for kind, text in EVERYTHING:
        peer.write((kind, text))
    return [entity(text) for _, text in EVERYTHING]


def test_what_was_written_is_read() -> None:
    """8.3 Read-write symmetry: the message written and the message read should match."""
    peer = Peer()
    wanted = written(peer)
    found = peer.read(*WANTED)
    assert [item for item in wanted if item not in found] == []


def test_reconcile_preserves_the_forwarding_state() -> None:
    """14: RECONCILE_AND_COMMIT realises the config while preserving the forwarding state."""
    peer = Peer()
    written(peer)
    peer.write(("MODIFY", entry("exact_table", action("drop"), "is_default_action: true")))
    peer.send(frame(5))
    wanted = [
        *WANTED,
        entry("exact_table", "is_default_action: true"),
        entry("exact_table", "counter_data { }"),
    ]
    before = peer.read(*wanted)
    peer.set_pipeline(Set.RECONCILE_AND_COMMIT)
    assert peer.read(*wanted) == before


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


def test_every_update_is_tried_and_has_its_error() -> None:
    """12.3: one p4.Error per update, in order; OK ones carry the code only.

    The status is UNKNOWN.
    """
    peer = Peer()
    with pytest.raises(StatusError) as caught:
        peer.write(
            ("INSERT", KNOWN),
            ("INSERT", KNOWN),
            ("DELETE", entry("lpm_table", lpm(1, 32))),
            ("MODIFY", KNOWN),
        )
    codes = [detail.canonical_code for detail in caught.value.details]
    assert (caught.value.code, codes) == (
        Code.UNKNOWN,
        [Code.OK, Code.ALREADY_EXISTS, Code.NOT_FOUND, Code.OK],
    )
    assert caught.value.details[0] == p4.Error()
    assert all(detail.message and detail.space for detail in caught.value.details[1:3])


def test_valid_requests_of_a_read_are_answered() -> None:
    """13.3: the entities of the valid requests, then a status with one p4.Error per request."""
    from tests.emulation.softswitch.conformance import entity

    peer = Peer()
    peer.write(("INSERT", KNOWN))
    wanted = [
        entity(entry("exact_table")),
        entity("table_entry { table_id: 7 }"),
        entity("counter_entry { counter_id: $counted }"),
    ]
    responses, failure = peer.service.read_all(p4.ReadRequest(device_id=DEVICE, entities=wanted))
    assert [
        found.WhichOneof("entity") for response in responses for found in response.entities
    ] == ["table_entry"] + ["counter_entry"] * 4
    assert failure is not None
    assert [detail.canonical_code for detail in failure.details] == [
        Code.OK,
        Code.NOT_FOUND,
        Code.OK,
    ]


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


def three(peer: Peer) -> None:
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
    three(peer)
    try:
        found: int | str = len(peer.read(rule.text))
    except StatusError as error:
        found = Code(error.details[0].canonical_code).name
    assert found == rule.result


def test_a_reset_default_entry_is_as_the_program_made_it() -> None:
    """9.1.3: without action the default entry is reset, with its metadata and its direct resources'
    configuration.
    """
    peer = Peer()
    wanted = entry("metered_table", "is_default_action: true meter_config { }")
    before = peer.read(wanted)
    more = "metadata: 'x' meter_config { cir: 1 cburst: 1 pir: 2 pburst: 2 }"
    peer.write(
        ("MODIFY", entry("metered_table", action("police"), "is_default_action: true", more))
    )
    assert peer.read(wanted) != before
    peer.write(("MODIFY", entry("metered_table", "is_default_action: true metadata: 'y'")))
    assert peer.read(wanted) == before


def test_entries_of_a_preinitialised_table_can_change() -> None:
    """9.1.5: has_initial_entries without is_const_table: entries may be modified, deleted and
    inserted.
    """

    def loosen(info: p4info_pb2.P4Info) -> None:
        [table] = [table for table in info.tables if table.is_const_table]
        table.is_const_table = False

    peer = Peer(loosen)
    changes = [("MODIFY", exact(200)), ("DELETE", exact(201)), ("INSERT", exact(5))]
    assert [
        peer.code(kind, entry("const_table", match, action("forward", 6)))
        for kind, match in changes
    ] == ["OK"] * 3
    assert [
        (item.table_entry.match[0].exact.value, item.table_entry.is_const)
        for item in peer.read(entry("const_table"))
    ] == [
        (b"\xc8", False),
        (b"\5", False),
    ]


def test_const_entries_are_marked_when_read() -> None:
    """9.1: is_const is true if and only if the client cannot change the entry."""
    peer = Peer()
    assert [item.table_entry.is_const for item in peer.read(entry("const_table"))] == [True, True]


def test_groups_count_weights_or_members() -> None:
    """6.4.3: selector_size_semantics says what max_group_size limits."""

    def by(members: bool) -> Callable[[p4info_pb2.P4Info], None]:
        def edit(info: p4info_pb2.P4Info) -> None:
            [selector] = [profile for profile in info.action_profiles if profile.with_selector]
            selector.max_group_size = 2
            if members:
                selector.sum_of_members.max_member_weight = 5

        return edit

    shots = [one_shot("1 3"), one_shot("1 1", "2 1", "3 1"), one_shot("1 6")]
    codes = [
        [
            Peer(by(members)).code("INSERT", entry("selected_table", exact(1), shot))
            for shot in shots
        ]
        for members in (False, True)
    ]
    bad = "INVALID_ARGUMENT"
    assert codes == [[bad, bad, bad], ["OK", bad, bad]]


def test_translated_values_fit_into_the_device() -> None:
    """18.1: a translated type has its own width in the P4Info; translation here is the identity."""

    def translate(info: p4info_pb2.P4Info) -> None:
        [forward] = [item for item in info.actions if item.preamble.alias == "forward"]
        forward.params[0].bitwidth = 32
        forward.params[0].type_name.name = "port_id_t"

    peer = Peer(translate)
    assert peer.code("INSERT", entry("exact_table", exact(1), action("forward", 511))) == "OK"
    assert (
        peer.code("INSERT", entry("exact_table", exact(2), action("forward", 512)))
        == "OUT_OF_RANGE"
    )


def test_single_rate_two_colour_meters_have_one_rate() -> None:
    """9.4: pir and pburst are those of cir and cburst."""

    def edit(info: p4info_pb2.P4Info) -> None:
        info.meters[0].spec.type = p4info_pb2.MeterSpec.SINGLE_RATE_TWO_COLOR

    peer = Peer(edit)
    texts = [
        f"meter_entry {{ meter_id: $metered config {{ cir: 3 cburst: 4 pir: {pir} pburst: 4 }} }}"
        for pir in (3, 5)
    ]
    assert [peer.code("MODIFY", text) for text in texts] == ["OK", "INVALID_ARGUMENT"]


def test_backup_members_are_left_out_while_their_port_is_down() -> None:
    """9.2.2: a member must be excluded from selection if its watch port is down."""
    peer = Peer()
    peer.write(
        (
            "INSERT",
            entry(
                "selected_table",
                exact(5),
                one_shot("1 1 watch_port: '\\001'", "2 1 watch_port: '\\002'"),
            ),
        )
    )
    peer.switch.set_port_status(1, up=False)
    ports = {port for high in range(20) for port, _ in peer.send(frame(5, high=high))}
    assert ports == {2}


# Bytestrings

UNSIGNED = [
    (8, "63", 99),
    (16, "0063", 99),
    (16, "63", 99),
    (16, "3064", 12388),
    (16, "003064", 12388),
    (12, "000063", 99),
]
BAD_UNSIGNED = [(8, "0163"), (8, ""), (16, "010063"), (12, "1063"), (12, "010063"), (12, "004063")]


@pytest.mark.parametrize(("bits", "text", "value"), UNSIGNED)
def test_valid_unsigned_bytestrings(bits: int, text: str, value: int) -> None:
    """8.4, table of valid encodings: bit<W>."""
    assert decode(bytes.fromhex(text), bits, "x") == value


@pytest.mark.parametrize(("bits", "text"), BAD_UNSIGNED)
def test_invalid_unsigned_bytestrings(bits: int, text: str) -> None:
    """8.4, table of invalid encodings: bit<W>, OUT_OF_RANGE."""
    with pytest.raises(EntryError) as caught:
        decode(bytes.fromhex(text), bits, "x")
    assert caught.value.code == Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("value", "data"), [(0, "00"), (99, "63"), (256, "0100"), (0x0A000001, "0a000001")]
)
def test_the_server_writes_the_shortest_bytestring(value: int, data: str) -> None:
    """8.4: the canonical representation uses the shortest string."""
    assert encode(value).hex() == data


# Streams

OK, TAKEN, NONE = int(Code.OK), int(Code.ALREADY_EXISTS), int(Code.NOT_FOUND)


class Clients:
    """Controllers of one role, by number, and the codes that each was told since last asked."""

    def __init__(self) -> None:
        self.peer = Peer(has_pipeline=False)
        self.peer.stream.close()
        self.heard: dict[int, list[p4.StreamMessageResponse]] = {}
        self.streams: dict[int, Any] = {}

    def say(self, number: int, election: int | None) -> dict[int, list[int]]:
        if number not in self.streams:
            self.heard[number] = []
            self.streams[number] = self.peer.service.open_stream(self.heard[number].append)
        Peer.announce(self.streams[number], election, role="r")
        return self.told()

    def leave(self, number: int) -> dict[int, list[int]]:
        self.streams.pop(number).close()
        return self.told()

    def told(self) -> dict[int, list[int]]:
        codes = {
            number: [message.arbitration.status.code for message in heard]
            for number, heard in self.heard.items()
            if heard
        }
        for heard in self.heard.values():
            heard.clear()
        return codes


def test_arbitration_from_the_first_controller_to_the_last() -> None:
    """5.3 and 5.4: who becomes primary, and who is told what."""
    clients = Clients()
    assert clients.say(1, 10) == {1: [OK]}, "the first becomes primary"
    assert clients.say(2, 5) == {2: [TAKEN]}, "a backup is told alone"
    assert clients.say(3, None) == {3: [TAKEN]}, "no election id is never primary"
    assert clients.say(2, 20) == {1: [TAKEN], 2: [OK], 3: [TAKEN]}, "a new primary: all are told"
    assert clients.say(2, 20) == {1: [TAKEN], 2: [OK], 3: [TAKEN]}, "the primary says it again"
    assert clients.say(2, 15) == {1: [NONE], 2: [NONE], 3: [NONE]}, (
        "the primary steps down: nobody reaches the highest id"
    )
    assert clients.say(1, 20) == {1: [OK], 2: [TAKEN], 3: [TAKEN]}, (
        "the highest id may be taken over"
    )
    assert clients.leave(1) == {2: [NONE], 3: [NONE]}, "the primary's stream is broken"
    assert clients.say(2, 19) == {2: [NONE]}, "below the highest id ever seen"


def test_notifications_carry_the_highest_election_id() -> None:
    """5.4: election_id is the highest that the server has seen, unset while there has not been any
    primary.
    """
    clients = Clients()
    streams = [
        clients.peer.service.open_stream(heard.append)
        for heard in (clients.heard.setdefault(i, []) for i in (1, 2))
    ]
    Peer.announce(streams[0], None, role="r")
    assert not clients.heard[1][-1].arbitration.HasField("election_id")
    Peer.announce(streams[1], 9, role="r")
    Peer.announce(streams[1], 4, role="r")
    assert clients.heard[1][-1].arbitration.election_id.low == 9
    assert (
        clients.heard[1][-1].arbitration.device_id,
        clients.heard[1][-1].arbitration.role.name,
    ) == (DEVICE, "r")


class Refusal(NamedTuple):
    """An arbitration message that ends the stream."""

    words: str
    is_first: bool
    fields: dict[str, Any]
    code: str


REFUSALS = [
    Refusal("an unknown device", True, {"device": 9}, "NOT_FOUND"),
    Refusal("an election id in use", True, {"election": 1}, "INVALID_ARGUMENT"),
    Refusal("another device on a live stream", False, {"device": 9}, "FAILED_PRECONDITION"),
    Refusal("another role on a live stream", False, {"role": "other"}, "FAILED_PRECONDITION"),
    Refusal("an election id in use, on a live stream", False, {"election": 1}, "INVALID_ARGUMENT"),
]


@pytest.mark.parametrize("rule", REFUSALS, ids=lambda rule: rule.words)
def test_arbitration_refuses(rule: Refusal) -> None:
    """5.3: the server shall terminate the stream."""
    peer = Peer(has_pipeline=False)
    stream = peer.service.open_stream(lambda _message: None)
    if not rule.is_first:
        Peer.announce(stream, 7)
    assert code_of(lambda: Peer.announce(stream, **{"election": 8, **rule.fields})) == rule.code


def test_role_config_of_no_agreed_scheme_is_refused() -> None:
    """5.3: if role.config does not match the scheme previously agreed upon, INVALID_ARGUMENT."""
    message = p4.StreamMessageRequest()
    message.arbitration.device_id = DEVICE
    message.arbitration.role.name = "r"
    message.arbitration.role.config.Pack(p4.Uint128(low=1))
    stream = Peer(has_pipeline=False).service.open_stream(lambda _message: None)
    assert code_of(lambda: stream.receive(message)) == "INVALID_ARGUMENT"


def test_too_many_streams_are_refused() -> None:
    """5.3: RESOURCE_EXHAUSTED beyond the supported number of streams."""
    peer = Peer(has_pipeline=False)
    codes = [
        code_of(lambda: Peer.announce(peer.service.open_stream(lambda _message: None), None))
        for _ in range(70)
    ]
    assert (codes[:63], set(codes[63:])) == (["OK"] * 63, {"RESOURCE_EXHAUSTED"})


def packet_out(
    port: int, payload: bytes = b"\1\2\3\4\5\6\7\x08", more: dict[int, int] | None = None
) -> p4.StreamMessageRequest:
    message = p4.StreamMessageRequest()
    message.packet.payload = payload
    for number, value in {1: port, 2: 0, **(more or {})}.items():
        message.packet.metadata.add(metadata_id=number, value=value.to_bytes(2, "big"))
    return message


@pytest.mark.parametrize(
    ("message", "code", "kind"),
    [
        (packet_out(3, more={7: 1}), Code.INVALID_ARGUMENT, "packet_out"),
        (packet_out(512), Code.OUT_OF_RANGE, "packet_out"),
        (
            p4.StreamMessageRequest(digest_ack=p4.DigestListAck(digest_id=9)),
            Code.INVALID_ARGUMENT,
            "digest_list_ack",
        ),
        (p4.StreamMessageRequest(), Code.UNIMPLEMENTED, "other"),
    ],
    ids=[
        "metadata not of the P4Info",
        "metadata too wide",
        "an unknown digest",
        "neither of the three",
    ],
)
def test_stream_errors_name_their_message(message: Any, code: Code, kind: str) -> None:
    """16.6: the error has its code, and `details` says which message it is about."""
    peer = Peer()
    peer.received.clear()
    peer.stream.receive(message)
    [response] = peer.received
    assert (response.error.canonical_code, response.error.WhichOneof("details")) == (code, kind)


def test_packet_outs_of_a_backup_are_dropped_and_said_so() -> None:
    """16.1: a PacketOut of a client that may not send it must be dropped."""
    peer = Peer()
    heard: list[p4.StreamMessageResponse] = []
    backup = peer.service.open_stream(heard.append)
    Peer.announce(backup, 0)
    backup.receive(packet_out(3))
    assert heard[-1].error.canonical_code == Code.PERMISSION_DENIED
    assert peer.switch.take_requeued() == []


def test_packet_ins_go_to_the_primary_with_their_metadata() -> None:
    """16.1: one metadata field for each in the P4Info."""
    peer = Peer()
    heard: list[p4.StreamMessageResponse] = []
    Peer.announce(peer.service.open_stream(heard.append), 0)
    heard.clear()
    peer.write(("INSERT", entry("exact_table", exact(5), action("forward", CPU))))
    peer.send(frame(5), port=6)
    packet = peer.received[-1].packet
    assert (packet.payload, {item.metadata_id: item.value for item in packet.metadata}) == (
        frame(5),
        {1: b"\6", 2: b"\0"},
    )
    assert heard == []


def test_idle_notifications_name_the_entry_and_start_again() -> None:
    """16.4: key, metadata and timeout of the entry, nanoseconds since the epoch.

    Again after another timeout.
    """
    peer = Peer()
    peer.write(
        (
            "INSERT",
            entry(
                "idle_table", exact(5), action("NoAction"), "idle_timeout_ns: 1000 metadata: 'm'"
            ),
        )
    )
    times = []
    for now_ns in (999, 1000, 1500, 2000):
        peer.now_ps = now_ns * 1000
        peer.received.clear()
        peer.service.tick()
        times += [
            (message.idle_timeout_notification.timestamp - 10**18, message)
            for message in peer.received
        ]
    assert [time for time, _ in times] == [1000, 2000]
    [item] = times[0][1].idle_timeout_notification.table_entry
    assert (item.match[0].exact.value, item.metadata, item.idle_timeout_ns) == (b"\5", b"m", 1000)


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


def test_digests_wait_are_distinct_and_come_again_without_ack() -> None:
    """9.8: lists of distinct messages after max_timeout_ns.

    Sent ones not again until acknowledged or ack_timeout_ns.
    """
    peer = Peer()
    config = "config { max_timeout_ns: 1000 max_list_size: 9 ack_timeout_ns: 5000 }"
    peer.write(
        ("INSERT", f"digest_entry {{ digest_id: $learn_t {config} }}"),
        ("INSERT", entry("exact_table", exact(5), action("learn"))),
    )

    def learnt(now_ns: int, *highs: int) -> list[int]:
        """Return how many messages each list has that is sent within the timeout."""
        peer.received.clear()
        for time in (now_ns, now_ns + 1000):
            peer.now_ps = time * 1000
            for high in highs if time == now_ns else ():
                peer.send(frame(5, high=high))
            peer.service.tick()
        return [len(message.digest.data) for message in peer.received]

    assert learnt(0, 1, 2, 1) == [2], "distinct"
    assert peer.received[0].digest.timestamp == 10**18 + 1000
    assert learnt(2000, 1) == [], "sent and not acknowledged"
    assert learnt(7000, 1) == [1], "ack_timeout_ns has passed"
    ack = p4.StreamMessageRequest()
    ack.digest_ack.digest_id, ack.digest_ack.list_id = (
        ids()["learn_t"],
        peer.received[0].digest.list_id,
    )
    peer.stream.receive(ack)
    assert learnt(9000, 1) == [1], "acknowledged"
