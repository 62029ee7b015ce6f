"""Caps, bounds and widths in generated code: values exactly at the limit, and 1 beyond it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ofan_p4.softswitch.base.hashes import ALGORITHMS
from ofan_p4.softswitch.state.replication import CloneSession, Replica

REGISTER = {"type": "register_array", "value": "r"}
COUNTER = {"type": "counter_array", "value": "c"}


def index_program(p: Any, size: int) -> Any:
    """Count and write at the index in the first three bits, and at the index in the byte less 1."""
    p.header("h", small=3, pad=5, large=8)
    p.state("start", [p.extract("h")])
    p.root["register_arrays"] = [{"name": "r", "id": 0, "size": size, "bitwidth": 8}]
    p.root["counter_arrays"] = [{"name": "c", "id": 0, "size": size, "is_direct": False}]
    below = p.op("-", "h.large", 1)
    p.run(
        "touch",
        [
            p.call("count", COUNTER, "h.small"),
            p.call("register_write", REGISTER, below, 7),
        ],
    )

    return p


@pytest.mark.parametrize("size", (6, 7, 8))
@pytest.mark.parametrize("index", range(8))
def test_an_array_has_its_cells_and_no_others(
    program: Any, bench: Any, size: int, index: int
) -> None:
    run = bench(index_program(program, size))
    run.send(bytes([index << 5, index]))
    counted = [i for i, (packets, _) in enumerate(run.switch.pipeline.counters[0]) if packets]
    written = [i for i, value in enumerate(run.switch.pipeline.registers[0]) if value]

    assert counted == ([index] if index < size else [])
    assert written == ([index - 1] if 0 <= index - 1 < size else [])


@pytest.mark.parametrize("index", (2, 3, 4))
def test_a_constant_index_beyond_the_end_reads_nothing(
    program: Any, bench: Any, index: int
) -> None:
    p = program
    p.header("h", value=8)
    p.state("start", [p.extract("h")])
    p.root["register_arrays"] = [{"name": "r", "id": 0, "size": 3, "bitwidth": 8}]
    p.run("read", [p.call("register_read", "h.value", REGISTER, index)])
    run = bench(p)
    run.switch.pipeline.registers[0][2] = 9

    assert run.send(b"\5") == [(0, b"\x09" if index == 2 else b"\5")]


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("*", 255, 255, 255 * 255 & 0xFF),
        ("+", 255, 1, 0),
        ("-", 0, 1, 255),
        ("|", 0x80, 0x01, 0x81),
        ("<<", 255, 1, 0xFE),
    ],
)
def test_a_result_is_cut_to_the_width_of_its_field(
    program: Any, bench: Any, operator: str, left: int, right: int, expected: int
) -> None:
    p = program
    p.header("h", left=8, right=8, result=8)
    p.state("start", [p.extract("h")])
    p.run("compute", [p.call("assign", "h.result", p.op(operator, "h.left", "h.right"))])
    [(_, sent)] = bench(p).send(bytes([left, right, 0]))

    assert sent[2] == expected


@pytest.mark.parametrize("amount", (0, 7, 8, 15, 16, 255))
def test_a_shift_by_a_field_keeps_what_fits(program: Any, bench: Any, amount: int) -> None:
    p = program
    p.header("h", amount=8, left=16, right=16)
    p.state("start", [p.extract("h")])
    p.run("left", [p.call("assign", "h.left", p.op("<<", "h.left", "h.amount"))], following="right")
    p.run("right", [p.call("assign", "h.right", p.op(">>", "h.right", "h.amount"))])
    [(_, sent)] = bench(p).send(bytes([amount, 0x80, 0x01, 0x80, 0x01]))

    assert int.from_bytes(sent[1:3], "big") == (0x8001 << amount) & 0xFFFF
    assert int.from_bytes(sent[3:5], "big") == 0x8001 >> amount


@pytest.mark.parametrize("is_constant", (True, False))
@pytest.mark.parametrize("size", (0, 1, 3, 64, 255))
def test_a_hash_stays_below_its_size_and_a_size_of_0_is_1(
    program: Any, bench: Any, size: int, is_constant: bool
) -> None:
    p = program
    p.header("h", size=8, key=8, result=16)
    p.state("start", [p.extract("h")])
    p.root["calculations"] = [{"name": "k", "id": 0, "algo": "crc16", "input": [p.field("h.key")]}]
    named = "modify_field_with_hash_based_offset"
    calculation = {"type": "calculation", "value": "k"}
    limit = size if is_constant else "h.size"
    p.run("hash", [p.call(named, "h.result", 5, calculation, limit)])
    run = bench(p)
    function, _ = ALGORITHMS["crc16"]
    for key in range(64):
        [(_, sent)] = run.send(bytes([size, key, 0, 0]))
        assert int.from_bytes(sent[2:], "big") == 5 + function(bytes([key])) % (size or 1)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_the_width_of_a_hash_is_that_of_its_largest_results(name: str) -> None:
    function, bits = ALGORITHMS[name]
    rng = random.Random(name)
    results = [function(rng.randbytes(12)) for _ in range(200)]

    assert max(results).bit_length() == bits


@pytest.mark.parametrize("session", (1, 1 << 14, (1 << 15) - 1))
def test_a_clone_session_has_15_bits(program: Any, bench: Any, session: int) -> None:
    p = program
    p.header("h", value=8)
    p.state("start", [p.extract("h")])
    p.run("clone", [p.call("clone_ingress_pkt_to_egress", session | 1 << 15, 0)])
    run = bench(p)
    run.switch.replication.sessions[session] = CloneSession((Replica(3),))

    assert sorted(run.send(b"x")) == [(0, b"x"), (3, b"x")]
