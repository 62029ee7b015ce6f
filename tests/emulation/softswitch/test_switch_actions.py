"""Bytes in, bytes out, of hand-written BMv2 JSON: operators, actions, branches, hashes."""

from __future__ import annotations

import struct
from typing import Any

import pytest


def program_with_start(p: Any) -> Any:
    """Give a program a parser that accepts every frame."""
    p.state("start")
    return p


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("+", 250, 10, 4),
        ("-", 3, 5, 254),
        ("*", 20, 20, 144),
        ("/", 7, 2, 3),
        ("/", 7, 0, 0),
        ("%", 7, 4, 3),
        ("%", 7, 0, 0),
        ("<<", 3, 2, 12),
        ("<<", 1, 200, 0),
        (">>", 255, 4, 15),
        (">>", 255, 200, 0),
        ("&", 12, 10, 8),
        ("|", 12, 10, 14),
        ("^", 12, 10, 6),
        ("usat_cast", 300, 8, 255),
        ("two_comp_mod", 200, 8, 200),
    ],
)
def test_operators(
    program: Any, bench: Any, operator: str, left: int, right: int, expected: int
) -> None:
    p = program
    p.header("h", out=8, a=16, b=16)
    p.state("start", [p.extract("h")])
    p.run("compute", [p.call("assign", "h.out", p.op(operator, "h.a", "h.b"))])
    frame = struct.pack(">BHH", 0, left, right)

    assert bench(p).send(frame)[0][1][0] == expected


def test_signed_fields_compare_and_wrap(program: Any, bench: Any) -> None:
    p = program
    p.header("h", out=8, a=8)
    p.root["header_types"][-1]["fields"][1].append(True)
    p.state("start", [p.extract("h")])
    below = p.op("?", 1, 2, cond=p.op("<", "h.a", 0))
    p.run(
        "compute", [p.call("assign", "h.out", below), p.call("assign", "h.a", p.op("+", "h.a", 1))]
    )
    run = bench(p)

    assert [run.send(bytes([9, a]))[0][1] for a in (0xFF, 0x7F)] == [b"\x01\x00", b"\x02\x80"]


def test_jumps_inside_an_action(program: Any, bench: Any) -> None:
    p = program
    p.header("h", a=8)
    p.state("start", [p.extract("h")])
    body = [
        p.call("_jump_if_zero", p.op("==", "h.a", 1), 3),
        p.call("assign", "h.a", 10),
        p.call("_jump", 4),
        p.call("assign", "h.a", 20),
    ]
    p.run("choose", body)
    run = bench(p)

    assert [run.send(bytes([a]))[0][1] for a in (1, 2)] == [b"\x0a", b"\x14"]


def test_a_loop_inside_an_action_ends(program: Any, bench: Any) -> None:
    p = program
    p.header("h", a=8, n=8)
    p.state("start", [p.extract("h")])
    body = [
        p.call("_jump_if_zero", p.op("!=", "h.n", 0), 4),
        p.call("assign", "h.a", p.op("+", "h.a", 2)),
        p.call("assign", "h.n", p.op("-", "h.n", 1)),
        p.call("_jump", 0),
    ]
    p.run("loop", body)

    assert bench(p).send(b"\x00\x05") == [(0, b"\x0a\x00")]


def test_exit_ends_the_pipeline(program: Any, bench: Any) -> None:
    p = program
    p.header("h", a=8)
    p.state("start", [p.extract("h")])
    p.run("first", [p.call("assign", "h.a", 1), p.call("exit")], following="second")
    p.run("second", [p.call("assign", "h.a", 2)])
    p.run("egress", [p.call("assign", "h.a", p.op("+", "h.a", 16))], pipeline="egress")

    assert bench(p).send(b"\x00") == [(0, b"\x11")]


@pytest.mark.parametrize("copied_back", [False, True])
def test_mark_to_drop_writes_the_copy_that_it_is_given(
    program: Any, bench: Any, copied_back: bool
) -> None:
    p = program
    p.header("h", a=16, b=16)
    p.metadata("mine", {"egress_spec": 9, "mcast_grp": 16})
    p.state("start", [p.extract("h")])
    body = [
        p.call("assign", "mine.mcast_grp", 5),
        p.call("mark_to_drop", p.header_operand("mine")),
        p.call("assign", "h.a", "mine.egress_spec"),
        p.call("assign", "h.b", "mine.mcast_grp"),
    ]
    back = p.call("assign", "standard_metadata.egress_spec", "mine.egress_spec")
    p.run("work", [*body, back] if copied_back else body)

    assert bench(p).send(bytes(4)) == ([] if copied_back else [(0, b"\x01\xff\0\0")])


def test_hit_and_miss_take_different_ways(program: Any, bench: Any) -> None:
    p = program
    p.header("h", a=8)
    p.state("start", [p.extract("h")])
    nothing = p.action("nothing", [])
    p.table(
        "t",
        {"h.a": "exact"},
        [nothing],
        default=nothing,
        next_tables={"__HIT__": "hit", "__MISS__": "miss"},
    )
    p.run("hit", [p.call("assign", "h.a", 100)])
    p.run("miss", [p.call("assign", "h.a", 200)])
    run = bench(p)
    run.switch.pipeline.tables[0].insert(((7, 0),), 0, nothing, ())

    assert [run.send(bytes([a]))[0][1] for a in (7, 8)] == [b"\x64", b"\xc8"]


def test_branches_that_share_their_end_run_it_once(program: Any, bench: Any) -> None:
    p = program
    p.header("h", a=8, b=8)
    p.state("start", [p.extract("h")])
    p.root["pipelines"][0]["conditionals"] = [
        {
            "name": "outer",
            "id": 0,
            "expression": p.op("==", "h.a", 0),
            "true_next": "inner",
            "false_next": "end",
        },
        {
            "name": "inner",
            "id": 1,
            "expression": p.op("==", "h.b", 0),
            "true_next": None,
            "false_next": "end",
        },
    ]
    p.run("end", [p.call("assign", "h.b", p.op("+", "h.b", 1))])
    p.root["pipelines"][0]["init_table"] = "outer"
    run = bench(p)
    frames = [b"\x00\x00", b"\x00\x05", b"\x01\x00"]

    assert [run.send(frame)[0][1] for frame in frames] == [b"\x00\x00", b"\x00\x06", b"\x01\x01"]


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("crc16", 0xBB3D),
        ("crc32", 0xCBF43926),
        ("crcCCITT", 0x29B1),
        ("identity", 0x3132333435363738),
    ],
)
def test_hash_check_values(program: Any, bench: Any, algorithm: str, expected: int) -> None:
    """The catalogue's check values: the hash of the digits 1 to 9."""
    p = program
    p.header("h", digits=72, out=64)
    p.state("start", [p.extract("h")])
    p.root["calculations"] = [
        {"name": "c", "id": 0, "algo": algorithm, "input": [p.field("h.digits")]}
    ]
    calculation = {"type": "calculation", "value": "c"}
    p.run("hash", [p.call("modify_field_with_hash_based_offset", "h.out", 0, calculation, 1 << 64)])
    [(_, frame)] = bench(p).send(b"123456789" + bytes(8))

    assert int.from_bytes(frame[9:], "big") == expected


def test_hash_leaves_out_invalid_headers(program: Any, bench: Any) -> None:
    p = program
    p.header("h", a=8, out=32)
    p.header("absent", b=12, c=4)
    p.state("start", [p.extract("h")])
    inputs = [p.field("absent.b"), p.field("h.a")]
    p.root["calculations"] = [{"name": "c", "id": 0, "algo": "crc32", "input": inputs}]
    calculation = {"type": "calculation", "value": "c"}
    p.run("hash", [p.call("modify_field_with_hash_based_offset", "h.out", 5, calculation, 1000)])
    [(_, frame)] = bench(p).send(b"1" + bytes(4))

    assert int.from_bytes(frame[1:], "big") == 0x83DCEFB7 % 1000 + 5


def test_registers_counters_random_and_time(program: Any, bench: Any) -> None:
    p = program
    p.header("h", index=8, out=8, drawn=8, time=32)
    p.state("start", [p.extract("h")])
    p.root["register_arrays"] = [{"name": "r", "id": 0, "size": 4, "bitwidth": 8}]
    p.root["counter_arrays"] = [{"name": "c", "id": 0, "size": 4, "is_direct": False}]
    register = {"type": "register_array", "value": "r"}
    body = [
        p.call("register_read", "h.out", register, "h.index"),
        p.call("register_write", register, "h.index", p.op("+", "h.out", 255)),
        p.call("count", {"type": "counter_array", "value": "c"}, "h.index"),
        p.call("modify_field_rng_uniform", "h.drawn", 3, 9),
        p.call("assign", "h.time", "standard_metadata.ingress_global_timestamp"),
    ]
    p.run("work", body)
    run = bench(p)
    run.now_ps = 5_999_999
    frames = [run.send(bytes([index]) + bytes(6))[0][1] for index in (2, 2, 9)]

    assert frames == [
        b"\x02\x00\x09\0\0\0\x05",
        b"\x02\xff\x09\0\0\0\x05",
        b"\x09\x00\x09\0\0\0\x05",
    ]
    assert run.switch.pipeline.registers == [[0, 0, 254, 0]]
    assert [list(map(list, array)) for array in run.switch.pipeline.counters] == [
        [[0, 0], [0, 0], [2, 14], [0, 0]],
        # Beyond the ends of the register, when it is written and read, and of the counter.
        [[1, 0], [1, 0], [1, 0]],
    ]
    assert run.draws == [(3, 9)] * 3


def test_queue_metadata_reaches_egress(program: Any, bench: Any) -> None:
    p = program
    p.header("h", enq=8, deq=8, delta=8, time=8)
    p.state("start", [p.extract("h")])
    names = {
        "enq": "enq_qdepth",
        "deq": "deq_qdepth",
        "delta": "deq_timedelta",
        "time": "enq_timestamp",
    }
    copies = [
        p.call("assign", f"h.{short}", f"standard_metadata.{name}") for short, name in names.items()
    ]
    p.run("report", copies, pipeline="egress")
    run = bench(p)
    [pending] = run.switch.ingress(0, bytes(4))
    pending.enq_qdepth, pending.enq_timestamp = 3, 9
    [sent] = run.switch.egress(pending, deq_qdepth=4, deq_timedelta_us=5)

    assert sent.frame == bytes([3, 4, 5, 9])


def test_length_overrides_what_the_program_sees(program: Any, bench: Any) -> None:
    p = program
    p.header("h", out=16)
    p.state("start", [p.extract("h")])
    p.run("report", [p.call("assign", "h.out", "standard_metadata.packet_length")])
    run = bench(p)
    [pending] = run.switch.ingress(0, bytes(2), length=4158)

    assert pending.length == 4158
    assert run.switch.egress(pending)[0].frame == struct.pack(">H", 4158)


def test_without_a_pipeline_frames_are_counted_and_dropped(program: Any, bench: Any) -> None:
    run = bench(program_with_start(program))
    run.switch.pipeline = None

    assert run.send(b"frame") == []
    assert run.switch.counts.dropped_without_pipeline == 1


def test_a_port_that_does_not_exist_is_a_counted_drop(program: Any, bench: Any) -> None:
    p = program_with_start(program)
    p.run("far", [p.call("assign", "standard_metadata.egress_spec", 77)])
    run = bench(p)

    assert run.send(b"frame") == []
    assert run.switch.counts.dropped_unknown_port == 1
