"""Bytes in, bytes out, of hand-written BMv2 JSON: parser, headers, stacks, checksums, deparser."""

from __future__ import annotations

import struct
from typing import Any

import pytest

ETHERNET = bytes.fromhex("0a0000000001 0b0000000002 0800")
PAYLOAD = b"the payload"


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)

    return int(~total & 0xFFFF)


def ipv4(ttl: int = 64, dst: bytes = b"\x0a\x00\x00\x01", damage: int = 0) -> bytes:
    """Return an IPv4 header; `damage` flips bits of its checksum."""
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
    """A program that reads labels, at most three and to the bottom, and then does the rest."""
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
