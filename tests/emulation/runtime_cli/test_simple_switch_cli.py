"""Scripts for BMv2's command line, on a running switch: their settings, output and refusals."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest

Hosts = dict[int, socket.socket]


def frame(dst: int, size: int = 60, kind: int = 0x0800) -> bytes:
    return dst.to_bytes(6, "big") + bytes(6) + struct.pack(">H", kind) + bytes(size - 14)


def ipv4(dst: int, src: bytes, to: bytes, small: int = 0) -> bytes:
    return frame(dst, 14, 0x88B5) + src + to + bytes([small << 1]) + bytes(37)


def test_entries_have_handles_and_are_dumped(running: Any) -> None:
    status, said = running.script(
        "table_add l2 send 00:00:00:00:00:01 => 1",
        "table_add I.l2 drop 0x2 =>",
        "# a remark",
        "// another",
        "table_delete l2 0",
        "table_add l2 flood 3 => 7",
        "table_modify l2 send 1 2",
        "table_dump l2",
        "table_num_entries l2",
    )

    assert status == 0
    assert "match key:           EXACT-00:00:00:00:00:01" in said[0]

    # The place of the deleted entry is given again, under another number, as by BMv2.
    handles = [text.split()[-1] for text in said if "Entry has been added" in text]

    assert handles == ["0", "1", str(1 << 24)]
    assert (
        "Dumping entry 0x1\nMatch key:\n* hdr.ethernet.dst    : EXACT     000000000002\n"
        in (said[-2])
    )
    assert "Action entry: I.send - 0002" in said[-2]
    assert "Dumping default entry\nAction entry: I.drop - " in said[-2]
    assert said[-1] == "2"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("table_add l2 send 1 => 512", "Error: parameter port has 9 bits, and 512 does not fit"),
        ("table_add l2 send 1 2 => 1", "Error: table I.l2 has 1 key fields, found 2"),
        ("table_add l2 send 1 =>", "Error: action I.send takes 1 parameters, found 0"),
        ("table_add l2 rewrite 1 => 1 1", "Error: table I.l2 has no action rewrite"),
        ("table_add nowhere send 1 => 1", "Error: no table is called nowhere"),
        ("table_add fixed NoAction 1 =>", "Invalid table operation (IMMUTABLE_TABLE_ENTRIES)"),
        ("table_add spread send 1 => 1", "Invalid table operation (WRONG_TABLE_TYPE)"),
        ("table_delete l2 5", "Invalid table operation (INVALID_HANDLE)"),
        ("table_set_timeout l2 0 5", "Invalid table operation (AGEING_DISABLED)"),
        (
            "table_add acl drop 10.0.0.1&&&0xff000000 5->1 1 => 3",
            "Invalid table operation (BAD_MATCH_KEY)",
        ),
        ("table_add routes drop 10.0.0.0/33 =>", "Invalid table operation (BAD_MATCH_KEY)"),
        ("table_delete l2 2147483647", "Invalid table operation (INVALID_HANDLE)"),
        ("table_delete l2 -2147483648", "Invalid table operation (INVALID_HANDLE)"),
        (
            "table_delete l2 2147483648",
            "Error: an entry must have 32 bits at most, not 2147483648",
        ),
        (
            "table_delete l2 -2147483649",
            "Error: an entry must have 32 bits at most, not -2147483649",
        ),
        ("register_write memory 4 1", "Invalid register operation (INVALID_INDEX)"),
        ("register_write memory 0 65536", "Invalid register operation (ERROR)"),
        ("counter_read seen 4", "Invalid counter operation (INVALID_INDEX)"),
        ("meter_set_rates speed 0 2:1 1:2", "Invalid meter operation (INVALID_INFO_RATE_VALUE)"),
        (
            "meter_set_rates speed 0 inf:1 inf:2",
            "Invalid meter operation (INVALID_INFO_RATE_VALUE)",
        ),
        (
            "meter_array_set_rates speed 1:1 nan:2",
            "Invalid meter operation (INVALID_INFO_RATE_VALUE)",
        ),
        ("mc_node_associate 1 0", "Invalid PRE operation (INVALID_MGRP_HANDLE)"),
        ("mc_node_create 0 1 | 2", "Error: link aggregation groups are not supported"),
        ("mirroring_get 3", "Invalid mirroring operation (SESSION_NOT_FOUND)"),
        ("set_queue_rate 100 9", "Error: the switch has no port 9"),
        ("pvs_add set 1", "Error: pvs_add is not supported by this switch"),
        ("table_ad l2", "Error: table_ad is no command"),
        ("table_delete l2", "Error: usage: table_delete <table> <entry>"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_1(
    refusing: Any, line: str, answer: str
) -> None:
    assert refusing.script(line) == (1, [answer])


def test_duplicates_and_full_tables_are_refused(running: Any) -> None:
    lines = [f"table_add l2 send {key} => 1" for key in (1, 1, 2, 3, 4, 5)]
    status, said = running.script(*lines)

    assert status == 1
    assert said[1] == "Invalid table operation (DUPLICATE_ENTRY)"
    assert said[5] == "Invalid table operation (TABLE_FULL)"


def test_bits_behind_a_prefix_do_not_count(running: Any) -> None:
    status, said = running.script(
        "table_add routes drop 10.0.1.7/24 =>",
        "table_add routes drop 10.0.1.9/24 =>",
        "table_dump routes",
    )

    assert status == 1
    assert said[1] == "Invalid table operation (DUPLICATE_ENTRY)"
    assert "LPM       0a000100/24" in said[2]


def test_the_counter_of_an_entry_is_what_was_written(running: Any) -> None:
    status, said = running.script(
        "table_add l2 send 1 => 1",
        "table_add l2 send 2 => 1",
        "counter_write hits 1 5 600",
        "counter_read hits 1",
        "counter_read hits 0",
    )

    assert status == 0
    assert "hits[1]= (600 bytes, 5 packets)" in said[-2]
    assert "hits[0]= (0 bytes, 0 packets)" in said[-1]


def test_action_profiles(running: Any) -> None:
    status, said = running.script(
        "act_prof_create_member spread.implementation send 1",
        "act_prof_create_member spread.implementation send 2",
        "act_prof_create_group spread.implementation",
        "act_prof_add_member_to_group spread.implementation 0 0",
        "act_prof_add_member_to_group spread.implementation 1 0",
        "table_indirect_add_with_group spread 5 => 0",
        "table_indirect_add spread 6 => 1",
        "act_prof_delete_member spread.implementation 1",
        "act_prof_delete_group spread.implementation 0",
        "table_indirect_delete spread 0",
        "act_prof_delete_group spread.implementation 0",
        "table_dump spread",
    )

    assert status == 1
    assert said[7:9] == [
        "Invalid table operation (MBR_STILL_USED)",
        "Invalid table operation (GRP_STILL_USED)",
    ]
    assert said[10] == ""
    assert "Index: member(1)" in said[11] and "Dumping member 1" in said[11]
    assert "Dumping group" not in said[11]


def test_a_fresh_start_keeps_what_the_program_says(running: Any) -> None:
    status, said = running.script(
        "table_set_default l2 send 2",
        "table_add l2 send 1 => 1",
        "register_write memory 1 7",
        "meter_set_rates speed 0 0.001:1 0.002:2",
        "mc_mgrp_create 5",
        "mirroring_add 7 2",
        "reset_state",
        "table_dump l2",
        "table_num_entries fixed",
        "register_read memory",
        "meter_get_rates speed 0",
        "mc_mgrp_create 5",
        "mirroring_get 7",
    )

    assert status == 1
    assert "Dumping entry" not in said[7] and "Action entry: I.drop" in said[7]
    assert said[8:] == [
        "1",
        "memory= 0, 0, 0, 0",
        "",
        "Creating multicast group 5",
        "Invalid mirroring operation (SESSION_NOT_FOUND)",
    ]


def test_the_switch_is_told_from_others(running: Any, program: Path, tmp_path: Path) -> None:
    status, said = running.script(
        "switch_info", f"write_config_to_file {tmp_path / 'copy.json'}", "show_tables"
    )

    assert status == 0
    assert said[0].endswith(f": {running.port}")
    assert (tmp_path / "copy.json").read_text() == program.read_text()
    assert "I.acl" in said[2] and "hdr.ipv4.src(ternary, 32)" in said[2]


@pytest.mark.root
def test_packets_follow_tables_groups_and_sessions(wired: Any, hosts: Hosts) -> None:
    status, said = wired.script(
        "table_add l2 send 1 => 2",
        "table_add l2 flood 2 => 9",
        "table_add l2 mirror 3 => 1",
        "mc_mgrp_create 9",
        "mc_node_create 4 1 2",
        "mc_node_associate 9 0",
        "mirroring_add_mc 7 9",
        "table_add routes rewrite 10.0.1.0/24 => 0a:00:00:00:00:09 2",
        "table_add acl drop 10.9.0.0&&&0xffff0000 0->9 1 => 10",
        "table_add acl send 10.9.1.1&&&0xffffffff 0->9 1 => 1 5",
    )

    assert (status, [text for text in said if "Error" in text or "Invalid" in text]) == (0, [])

    first, second = hosts[1], hosts[2]

    first.send(frame(1))

    assert second.recv(2000) == frame(1)

    first.send(frame(2))

    assert (first.recv(2000), second.recv(2000)) == (frame(2), frame(2))

    # The mirrored packet, and its clones to the group.
    first.send(frame(3))

    assert [first.recv(2000), first.recv(2000), second.recv(2000)] == [frame(3)] * 3

    routed = ipv4(1, src=bytes([10, 9, 2, 1]), to=bytes([10, 0, 1, 7]), small=10)
    first.send(routed)

    assert second.recv(2000)[:6] == bytes.fromhex("0a0000000009")

    # Dropped by the second rule, let through by the first, with the smaller number.
    first.send(ipv4(1, src=bytes([10, 9, 2, 1]), to=bytes(4)))
    passed = ipv4(1, src=bytes([10, 9, 1, 1]), to=bytes(4))
    first.send(passed)

    assert first.recv(2000) == passed


@pytest.mark.root
def test_counters_meters_and_registers_are_those_of_the_packets(wired: Any, hosts: Hosts) -> None:
    status, _ = wired.script(
        "table_add l2 send 1 => 2",
        "register_write memory 1 41",
        # Two packets at once, and then none for a thousand seconds.
        "meter_array_set_rates speed 0.000000001:1 0.000000001:2",
    )

    assert status == 0

    first, second = hosts[1], hosts[2]
    for _ in range(3):
        first.send(frame(1))

    assert [second.recv(2000) for _ in range(2)] == [frame(1)] * 2

    first.send(frame(9))
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status, said = wired.script("counter_read seen 1")
        if said == ["seen[1]= (240 bytes, 4 packets)"]:
            break

    status, said = wired.script(
        "counter_read seen 1",
        "counter_read hits 0",
        "register_read memory 2",
        "register_read wide 0",
        "counter_reset seen",
        "counter_reset hits",
        "counter_read seen 1",
        "counter_read hits 0",
        "counter_write I.seen 1 3 4",
        "counter_read seen 1",
    )

    assert status == 1
    assert said[0] == "seen[1]= (240 bytes, 4 packets)"
    assert said[1].endswith("hits[0]= (180 bytes, 3 packets)")
    assert said[2:4] == ["memory[2]= 42", "Invalid register operation (ERROR)"]
    assert said[6] == "seen[1]= (0 bytes, 0 packets)"
    assert said[7].endswith("hits[0]= (0 bytes, 0 packets)")
    assert said[9] == "seen[1]= (4 bytes, 3 packets)"


@pytest.mark.root
def test_queues_take_rates_and_depths_while_packets_flow(wired: Any, hosts: Hosts) -> None:
    assert wired.script("table_add l2 send 1 => 2", "set_queue_rate 20 2", "set_queue_depth 3") == (
        0,
        [
            "Adding entry to exact match table l2\nmatch key:           EXACT-00:00:00:00:00:01\n"
            "action:              send\nruntime data:        00:02\n"
            "Entry has been added with handle 0",
            "",
            "",
        ],
    )

    first, second = hosts[1], hosts[2]
    for _ in range(10):
        first.send(frame(1))

    began = time.monotonic()

    assert [second.recv(2000) for _ in range(3)] == [frame(1)] * 3
    assert time.monotonic() - began > 0.09
    # Packets that did not fit were dropped; without a rate packets pass at once again.
    assert wired.script("set_queue_rate 0", "show_ports")[0] == 0

    waits = []
    for _ in range(100):
        began = time.monotonic()
        first.send(frame(1, 64))
        assert second.recv(2000) == frame(1, 64)
        waits.append(time.monotonic() - began)

    # The rate asked for a twentieth of a second between any two.
    assert min(waits) < 0.05


@pytest.mark.root
def test_no_packet_overtakes_those_that_wait_when_a_rate_goes(wired: Any, hosts: Hosts) -> None:
    assert wired.script("table_add l2 send 1 => 2", "set_queue_rate 1 2")[0] == 0

    first, second = hosts[1], hosts[2]
    first.send(frame(1, 70))
    first.send(frame(1, 71))

    assert wired.script("set_queue_rate 0")[0] == 0

    first.send(frame(1, 72))

    assert [len(second.recv(2000)) for _ in range(3)] == [70, 71, 72]


def test_direct_meters_have_the_rates_of_one_entry_or_of_all(running: Any) -> None:
    status, said = running.script(
        "table_add routes rewrite 10.0.1.0/24 => 1 1",
        "table_add routes rewrite 10.0.2.0/24 => 1 1",
        "meter_set_rates flow 1 0.001:10 0.002:20",
        "meter_get_rates flow 0",
        "meter_get_rates flow 1",
        "meter_array_set_rates flow 0.5:1 0.5:2",
        "meter_get_rates I.flow 0",
        "meter_get_rates flow 7",
    )

    assert status == 1
    assert said[3:5] == [
        "",
        "0: info rate = 0.001, burst size = 10\n1: info rate = 0.002, burst size = 20",
    ]
    assert said[6] == "0: info rate = 0.5, burst size = 1\n1: info rate = 0.5, burst size = 2"
    assert said[7] == "Invalid table operation (INVALID_HANDLE)"
