"""The P4Info's rules for tables, selectors, meters and types hold in the switch."""

from __future__ import annotations

from collections.abc import Callable

from tests.emulation.softswitch.conformance.peer import (
    Peer,
    action,
    entry,
    exact,
    frame,
    one_shot,
)

# isort: split
from p4.config.v1 import p4info_pb2


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


def test_groups_count_weights_or_members() -> None:
    """6.4.3: selector_size_semantics decides the quantity that max_group_size limits."""

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
