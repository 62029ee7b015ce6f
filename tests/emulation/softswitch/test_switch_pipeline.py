"""Bytes in, bytes out: parser, tables, actions, checksums, deparser of hand-written BMv2 JSON."""

from __future__ import annotations

import struct
from typing import Any

import pytest

ETHERNET = bytes.fromhex("0a0000000001 0b0000000002 0800")
PAYLOAD = b"the payload"


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


def ipv4(ttl: int = 64, dst: bytes = b"\x0a\x00\x00\x01", damage: int = 0) -> bytes:
    start = struct.pack(">BBHHHBB", 0x45, 0, 31, 7, 0x4000, ttl, 17)
    addresses = b"\xc0\xa8\x00\x01" + dst
    return start + struct.pack(">H", checksum(start + b"\0\0" + addresses) ^ damage) + addresses


@pytest.fixture
def router(program: Any) -> Any:
    """Forward by destination prefix, decrement the TTL, keep the checksum right."""
    p = program
    p.header("ethernet", dst=48, src=48, kind=16)
    widths = {"version": 4, "ihl": 4, "tos": 8, "length": 16, "id": 16, "flags": 3, "offset": 13}
    p.header("ipv4", **widths, ttl=8, protocol=8, checksum=16, src=32, dst=32)
    p.state("start", [p.extract("ethernet")], ["ethernet.kind"], {"0x0800": "ipv4", None: None})
    p.state("ipv4", [p.extract("ipv4")])
    forward = p.action(
        "forward",
        [
            p.call("assign", "standard_metadata.egress_spec", p.argument(0)),
            p.call("assign", "ipv4.ttl", p.op("&", p.op("-", "ipv4.ttl", 1), 255)),
        ],
        port=9,
    )
    drop = p.action("drop", [p.call("mark_to_drop", p.header_operand("standard_metadata"))])
    p.table("routes", {"ipv4.dst": "lpm"}, [forward, drop], default=drop)
    inputs = [f"ipv4.{name}" for name in (*widths, "ttl", "protocol", "src", "dst")]
    p.root["calculations"] = [
        {"name": "c", "id": 0, "algo": "csum16", "input": [p.field(name) for name in inputs]}
    ]
    target = ["ipv4", "checksum"]
    p.root["checksums"] = [
        {"name": "c", "id": 0, "target": target, "type": "generic", "calculation": "c"}
    ]
    return p


def test_the_longest_prefix_wins_and_the_checksum_follows_the_ttl(router: Any, bench: Any) -> None:
    run = bench(router)
    routes = run.switch.pipeline.tables[0]
    routes.insert(((0x0A000000, 8),), 0, 0, (1,))
    routes.insert(((0x0A000001, 32),), 0, 0, (2,))
    expected = ETHERNET + ipv4(63) + PAYLOAD
    assert run.send(ETHERNET + ipv4(64) + PAYLOAD) == [(2, expected)]
    assert [port for port, _ in run.send(ETHERNET + ipv4(dst=b"\x0a\x01\x00\x01"))] == [1]
    assert run.send(ETHERNET + ipv4(dst=b"\x0b\0\0\1")) == []
    assert run.switch.counts.dropped_by_ingress == 1


def test_bad_checksum_sets_checksum_error(router: Any, bench: Any) -> None:
    router.run(
        "report",
        [router.call("assign", "ipv4.tos", "standard_metadata.checksum_error")],
        pipeline="egress",
    )
    run = bench(router)
    run.switch.pipeline.tables[0].insert(((0, 0),), 0, 0, (1,))
    tos = [run.send(ETHERNET + ipv4(damage=damage))[0][1][15] for damage in (0, 1)]
    assert tos == [0, 1]


@pytest.mark.parametrize("length", range(len(ETHERNET) + 20 + 1))
def test_every_truncation_is_forwarded_or_dropped_but_never_raises(
    router: Any, bench: Any, length: int
) -> None:
    run = bench(router)
    run.switch.pipeline.tables[0].set_default(0, (3,))
    frame = (ETHERNET + ipv4())[:length]
    [(port, sent)] = run.send(frame)
    assert port == 3
    assert sent == frame if length < 34 else sent == ETHERNET + ipv4(63)


def test_headers_are_added_removed_and_their_fields_start_at_zero(program: Any, bench: Any) -> None:
    p = program
    p.header("tag", value=16)
    p.header("ethernet", dst=48, src=48, kind=16)
    p.header("trailer", one=4, two=12)
    p.state("start", [p.extract("ethernet")])
    adds = [p.call("add_header", p.header_operand("tag")), p.call("assign", "tag.value", 0x1FFFF)]
    p.run(
        "change", [*adds, p.call("remove_header", p.header_operand("ethernet"))], following="more"
    )
    p.run(
        "more",
        [p.call("add_header", p.header_operand("trailer")), p.call("assign", "trailer.two", 0xABC)],
    )
    run = bench(p)
    assert run.send(ETHERNET + PAYLOAD) == [(0, b"\xff\xff\x0a\xbc" + PAYLOAD)]
    [pending] = run.switch.ingress(0, ETHERNET + PAYLOAD)
    assert pending.length == len(ETHERNET + PAYLOAD) - 14 + 2 + 2


def stack_program(p: Any, primitives: list[Any]) -> Any:
    p.stack("label", 3, value=7, bottom=1)
    bottom = {"type": "stack_field", "value": ["label", "bottom"]}
    p.state("start", [p.extract("label", "stack")], [bottom], {"0x00": "start", None: None})
    p.run("change", primitives)
    return p


@pytest.mark.parametrize(
    ("primitive", "expected"),
    [
        (("push", 1), b"\x02\x04rest"),
        (("pop", 1), b"\x04\x07rest"),
        (("pop", 5), b"rest"),
        (("push", 3), b"rest"),
    ],
)
def test_stacks_shift(
    program: Any, bench: Any, primitive: tuple[str, int], expected: bytes
) -> None:
    name, count = primitive
    stack = {"type": "header_stack", "value": "label"}
    run = bench(stack_program(program, [program.call(name, stack, count)]))
    assert run.send(b"\x02\x04\x07rest") == [(0, expected)]


LABELS = (b"\x01", b"\x02\x01", b"\x02\x02\x01")


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("parsed", (1, 2, 3))
@pytest.mark.parametrize("name", ("push", "pop"))
def test_the_next_element_moves_with_a_stack_but_not_past_its_ends(
    program: Any, bench: Any, name: str, parsed: int, count: int
) -> None:
    stack = {"type": "header_stack", "value": "label"}
    following = program.op("size_stack", None, stack)
    shift = program.call(name, stack, count)
    tell = program.call("assign", "standard_metadata.egress_spec", following)
    run = bench(stack_program(program, [shift, tell]))
    [(port, _)] = run.send(LABELS[parsed - 1])
    assert port == (min(3, parsed + count) if name == "push" else max(0, parsed - count))


def test_a_stack_that_is_full_ends_the_parser_with_its_error(program: Any, bench: Any) -> None:
    p = stack_program(
        program,
        [program.call("assign", "standard_metadata.egress_spec", "standard_metadata.parser_error")],
    )
    run = bench(p)
    assert run.send(b"\x02\x02\x02\x02\x01rest") == [(3, b"\x02\x02\x02\x02\x01rest")]
    assert run.send(b"\x01rest") == [(0, b"\x01rest")]


def test_no_error_has_the_number_that_the_program_gives_it(program: Any, bench: Any) -> None:
    p = program
    p.root["errors"] = [["Unwanted", 0], ["NoError", 1], ["PacketTooShort", 2]]
    p.header("h", a=32)
    p.header("rest", a=8)
    p.state("start", [p.extract("h")], ["h.a"], {"0x00000001": "more", None: None})
    p.state("more", [p.extract("rest")])
    p.run("tell", [p.call("assign", "h.a", "standard_metadata.parser_error")])
    run = bench(p)
    assert run.send(bytes(4)) == [(0, bytes([0, 0, 0, 1]))]
    assert run.send(bytes([0, 0, 0, 1])) == [(0, bytes([0, 0, 0, 2]))]


def test_a_stack_element_is_chosen_at_run_time(program: Any, bench: Any) -> None:
    p = program
    element = p.op(
        "dereference_header_stack", {"type": "header_stack", "value": "label"}, "label[0].value"
    )
    target = {"type": "expression", "value": {"op": "access_field", "left": element, "right": 0}}
    run = bench(stack_program(p, [p.call("assign", target, 0x55)]))
    assert run.send(b"\x02\x04\x07") == [(0, b"\x02\xaa\x07")]
    assert run.send(b"\x04\x04\x07") == [(0, b"\x04\x04\xab")]
    assert run.send(b"\x7e\x04\x07") == [(0, b"\x7e\x04\x07")]


def test_varbit_is_extracted_copied_and_emitted(program: Any, bench: Any) -> None:
    p = program
    p.header("option", length=8, data="*", last=8, max_length=6)
    bits = p.op("*", "option.length", 8)
    p.header("size", emit=False, value=8)
    ahead = {
        "op": "set",
        "parameters": [p.field("option.length"), {"type": "lookahead", "value": [0, 8]}],
    }
    extract = {"op": "extract_VL", "parameters": [{"type": "regular", "value": "option"}, bits]}
    p.state("start", [ahead, extract])
    errors = p.call("assign", "standard_metadata.egress_spec", "standard_metadata.parser_error")
    p.run("change", [errors, p.call("assign", "option.last", p.op("+", "option.last", 1))])
    run = bench(p)
    assert run.send(b"\x03abc\x07rest") == [(0, b"\x03abc\x08rest")]
    assert run.send(b"\x00\x07rest") == [(0, b"\x00\x08rest")]
    assert run.send(b"\x05abcde\x07rest") == [(4, b"\x05abcde\x07rest")]
    assert run.send(b"\x03ab") == [(1, b"\x03ab")]


@pytest.mark.parametrize(
    ("parameters", "left", "right", "expected"),
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
    program: Any, bench: Any, parameters: str, left: int, right: int, expected: int
) -> None:
    p = program
    p.header("h", out=8, a=16, b=16)
    p.state("start", [p.extract("h")])
    p.run("compute", [p.call("assign", "h.out", p.op(parameters, "h.a", "h.b"))])
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
    assert run.switch.pipeline.counters == [[[0, 0], [0, 0], [2, 14], [0, 0]]]
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


def program_with_start(p: Any) -> Any:
    p.state("start")
    return p


@pytest.mark.parametrize("source", (0, 1, 2))
@pytest.mark.parametrize("target", (0, 1, 2))
def test_both_elements_of_a_copy_are_chosen_at_run_time(
    program: Any, bench: Any, target: int, source: int
) -> None:
    p = program
    p.header("which", to=8, origin=8)
    p.stack("label", 3, value=8)
    p.state("start", [p.extract("which"), *[p.extract("label", "stack")] * 3])
    stack = {"type": "header_stack", "value": "label"}
    to, origin = (
        p.op("dereference_header_stack", stack, f"which.{name}") for name in ("to", "origin")
    )
    p.run("copy", [p.call("assign_header", to, origin)])
    labels = bytearray(b"abc")
    labels[target] = labels[source]
    [(_, sent)] = bench(p).send(bytes([target, source]) + b"abc")
    assert sent[2:] == bytes(labels)


def test_the_parser_may_select_on_the_validity_of_a_header(program: Any, bench: Any) -> None:
    p = program
    p.header("h", kind=8)
    p.header("option", value=8)
    p.header("end", emit=False, value=8)
    p.state("start", [p.extract("h")], ["h.kind"], {"0x01": "option", None: "end"})
    p.state("option", [p.extract("option")], following := ["option.$valid$"], {None: "end"})
    p.state("end", [], following, {"0x01": "more", None: None})
    p.state("more", [p.extract("end")])
    run = bench(p)
    assert run.send(b"\1\2\3rest") == [(0, b"\1\2rest")]
    assert run.send(b"\2\2\3rest") == [(0, b"\2\2\3rest")]


def test_a_varbit_counts_in_the_length_that_egress_sees(program: Any, bench: Any) -> None:
    p = program
    p.header("h", emit=False, size=8, option="*")
    length = {"type": "lookahead", "value": [0, 8]}
    p.header("peek", emit=False, size=8)
    kept = {"op": "set", "parameters": [p.field("peek.size"), length]}
    target = {"type": "regular", "value": "h"}
    extract = {"op": "extract_VL", "parameters": [target, p.op("*", "peek.size", 8)]}
    p.state("start", [kept, extract])
    p.run("remove", [p.call("remove_header", p.header_operand("h"))])
    [pending] = bench(p).switch.ingress(0, b"\3abcrest")
    assert pending.length == len(b"rest")
