"""Every expression keeps the width of its type: programs of one line, on both engines.

The right values are written down by hand or computed by Python and zlib, never by the compiler.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

import pytest

from ofan_p4.compiler import compile_source
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch

PORT = 5
A = 0xF5
N = 0x9
M = 0x6
S = -3
HEAD = """
#include <core.p4>
#include <v1model.p4>

enum bit<4> kind_t { FIRST = 9, SECOND = 6 }
header data_t {
    bit<8> which; bit<8> a; int<8> s; bit<4> n; bit<4> m; kind_t kind; bit<4> rest; bit<64> wide;
}
struct headers_t { data_t data; }
struct metadata_t { bit<4> four; int<4> minus; }
struct pair_t { bit<16> x; bit<16> y; }

bit<24> behind_one(in bit<16> x) { return 8w1 ++ x; }
bit<16> wide(in bit<4> x) { return (bit<16>) x; }
void put(in bit<16> x, out bit<64> result) { result = (bit<64>) (8w1 ++ x); }

parser Parse(packet_in packet, out headers_t h, inout metadata_t meta,
             inout standard_metadata_t standard) {
    state start { packet.extract(h.data); transition accept; }
}
control NoChecks(inout headers_t h, inout metadata_t meta) { apply {} }
control Deparse(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
control OwnEgress(inout headers_t h, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}
control OwnIngress(inout headers_t h, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<16>>(4) cells;
    counter(512, CounterType.packets) seen;
    action act(bit<16> x) { h.data.wide = (bit<64>) (8w1 ++ x); }
    apply {
        standard.egress_spec = 1;
        bit<8> a = h.data.a;
        bit<4> n = h.data.n;
        bit<4> m = h.data.m;
        int<8> s = h.data.s;
        bit<32> hashed = 0;
        bit<16> cell = 0;
        meta.four = n;
        meta.minus = (int<4>) s;
"""
TAIL = """
    }
}
V1Switch(Parse(), NoChecks(), OwnIngress(), OwnEgress(), NoChecks(), Deparse()) main;
"""


def crc16(data: bytes) -> int:
    """CRC-16/ARC, the target's `crc16`, bit by bit."""
    rest = 0
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xA001 if rest & 1 else 0)

    return rest


def of(expression: str) -> str:
    return f"h.data.wide = (bit<64>) ({expression});"


def crc(inputs: str, algorithm: str = "crc32") -> str:
    call = f"hash(hashed, HashAlgorithm.{algorithm}, 32w0, {inputs}, 64w0x100000000);"
    return f"{call} h.data.wide = (bit<64>) hashed;"


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    out: int


LINES = (
    Line(of("8w0x12 ++ (bit<8>) n"), 0x1209),
    Line(of("8w0x12 ++ (bit<8>) h.data.a[3:0]"), 0x1205),
    Line(of("8w0x12 ++ (bit<8>) h.data.a[7:4]"), 0x120F),
    Line(of("(bit<8>) n ++ 8w0x12"), 0x0912),
    Line(of("(bit<8>) n ++ (bit<8>) m"), 0x0906),
    Line(of("(bit<16>) a ++ (bit<16>) n"), 0x00F50009),
    Line(of("n ++ (bit<12>) m"), 0x9006),
    Line(of("8w1 ++ (bit<16>) (int<16>) s"), 0x01FFFD),
    Line(of("(bit<24>) (8s1 ++ (int<16>) s)"), 0x01FFFD),
    Line(of("(bit<24>) ((int<16>) s ++ 8s1)"), 0xFFFD01),
    Line(of("8w1 ++ (bit<8>) (int<8>) meta.minus"), 0x01FD),
    Line(of("((bit<8>) n ++ (bit<8>) m)[11:4]"), 0x90),
    Line(of("8w1 ++ ((bit<16>) a)[11:4]"), 0x010F),
    Line(of("8w1 ++ ((bit<16>) a)[15:0]"), 0x0100F5),
    Line(of("8w1 ++ ((bit<16>) a)[15:8]"), 0x0100),
    Line(of("8w1 ++ (bit<8>) (n + m)"), 0x010F),
    Line(of("8w1 ++ (bit<8>) (n * m)"), 0x0106),
    Line(of("8w1 ++ (bit<8>) (n & m)"), 0x0100),
    Line(of("8w1 ++ (bit<8>) ~n"), 0x0106),
    Line(of("8w1 ++ ~(bit<8>) n"), 0x01F6),
    Line(of("8w1 ++ -(bit<8>) n"), 0x01F7),
    Line(of("8w1 ++ (bit<8>) (n |+| m |+| n)"), 0x010F),
    Line(of("8w1 ++ ((bit<8>) n |+| 8w0xfa)"), 0x01FF),
    Line(of("8w1 ++ (bit<8>) (bit<4>) a"), 0x0105),
    Line(of("8w1 ++ (bit<32>) (bit<16>) n"), 0x0100000009),
    Line(of("8w1 ++ (bit<8>) (n > m ? n : m)"), 0x0109),
    Line(of("8w1 ++ (n < m ? (bit<8>) n : (bit<8>) m)"), 0x0106),
    Line(of("8w1 ++ (bit<8>) (bit<1>) (n > m)"), 0x0101),
    Line(of("8w1 ++ (bit<8>) meta.four"), 0x0109),
    Line(of("8w1 ++ (bit<16>) standard.ingress_port"), 0x010000 | PORT),
    Line(of("8w1 ++ (bit<8>) (bit<4>) h.data.kind"), 0x0109),
    Line(of("8w1 ++ (bit<8>) (n << 1)"), 0x0102),
    Line(of("8w1 ++ ((bit<8>) n << 1)"), 0x0112),
    Line(of("8w1 ++ (wide(n) << m)"), 0x010000 | N << 6),
    Line(of("behind_one((bit<16>) n)"), 0x010009),
    Line(of("8w1 ++ wide(m)"), 0x010006),
    Line("put((bit<16>) n, h.data.wide);", 0x010009),
    Line("act((bit<16>) n);", 0x010009),
    Line("pair_t p = { (bit<16>) a, (bit<16>) n }; " + of("8w1 ++ p.x ++ p.y"), 0x0100F50009),
    Line("cells.write(0, (bit<16>) n); cells.read(cell, 0); " + of("8w1 ++ cell"), 0x010009),
    Line("h.data.wide[23:8] = (bit<16>) n;", 0x000900),
    Line(crc("{ (bit<16>) a }"), zlib.crc32(bytes([0, A]))),
    Line(crc("{ a, (bit<32>) n }"), zlib.crc32(bytes([A, 0, 0, 0, N]))),
    Line(crc("{ (bit<12>) n, m }"), zlib.crc32(bytes([0, N << 4 | M]))),
    Line(crc("{ (int<16>) s }"), zlib.crc32(bytes([0xFF, 0xFD]))),
    Line(crc("{ 8w1 ++ (bit<8>) n }", "crc16"), crc16(bytes([1, N]))),
    Line(crc("{ n > m ? (bit<16>) n : 16w0 }", "crc16"), crc16(bytes([0, N]))),
    Line(crc("{ (bit<24>) a, 8w2 }", "csum16"), 0xFFFF - 0xF502),
)


def frame(which: int) -> bytes:
    return bytes([which, A, S & 0xFF, N << 4 | M, N << 4]) + bytes(8)


def sent(program: str, packet: bytes, engine: Engine) -> list[tuple[int, bytes]]:
    """Return the (port, frame) pairs that a switch sends when the packet arrives."""
    switch = Switch(0, lambda: 0, lambda low, _high: low, range(16), engine=engine)
    switch.load(json.dumps(compile_source(program).json).encode())
    waiting = switch.ingress(PORT, packet)

    return [(out.port, out.frame) for pending in waiting for out in switch.egress(pending)]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text)
def test_line_keeps_its_widths(line: Line) -> None:
    (out,) = sent(HEAD + line.text + TAIL, frame(0), "python")
    assert out == (1, frame(0)[:5] + line.out.to_bytes(8, "big"))


@pytest.mark.parametrize("engine", ["native", "python"])
def test_all_lines_in_one_program(engine: Engine) -> None:
    # One program, since machine code takes long to make.
    body = "".join(f"if (h.data.which == {i}) {{ {line.text} }}\n" for i, line in enumerate(LINES))
    switch = Switch(0, lambda: 0, lambda low, _high: low, range(16), engine=engine)
    switch.load(json.dumps(compile_source(HEAD + body + TAIL).json).encode())

    for which, line in enumerate(LINES):
        (waiting,) = switch.ingress(PORT, frame(which))
        (out,) = switch.egress(waiting)
        assert out.frame[5:] == line.out.to_bytes(8, "big"), line.text
