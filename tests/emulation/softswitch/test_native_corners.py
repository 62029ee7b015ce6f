"""Programs at the limits of their operations: the same answer on both engines, and BMv2's."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.native import machine
from ofan_p4.softswitch.state.meters import Rates

SOURCE = json.dumps(compile_file(Path(__file__).with_name("corners.p4")).json).encode()
TAIL = b"\x12\x34\xff"


def switch(engine: Engine) -> Switch:
    device = Switch(1, lambda: 0, random=Random(1).randint, ports=range(4), engine=engine)
    device.load(SOURCE)
    assert device.pipeline is not None
    assert (device.pipeline.native is None) == (engine == "python")
    (table,) = (table for table in device.pipeline.tables if table.spec.key)
    table.insert(((5, 0),), 0, table.spec.actions[0], (77,))

    return device


def answer(target: Switch, *packet: int, tail: bytes = TAIL) -> tuple[int, bytes]:
    (pending,) = target.ingress(0, bytes(packet) + tail)
    (sent,) = target.egress(pending)
    return sent.port, sent.frame


# (packet, answer) each by the rules of P4_16 and v1model as BMv2 has them.
CASES = {
    "a sum wraps": ((1, 250, 10), (1, 4, 10, 0x12, 0x34, 0xFF)),
    "a difference wraps": ((2, 3, 5), (2, 254, 5, 0x12, 0x34, 0xFF)),
    "saturation stops at both ends": ((3, 250, 10), (3, 255, 0, 0x12, 0x34, 0xFF)),
    "a shift by less": ((4, 4, 1), (4, 4, 1, 0x23, 0x40, 0xFF)),
    "a shift by more than there are bits": ((4, 200, 200), (4, 200, 200, 0, 0, 0xFF)),
    # 16 bits are computed in 32.
    "a shift by all the bits": ((4, 16, 1), (4, 16, 1, 0, 0, 0xFF)),
    "a shift by as many bits as a machine has": ((4, 32, 1), (4, 32, 1, 0, 0, 0xFF)),
    "a register beyond its end leaves the target": ((5, 9, 1), (5, 9, 7, 0x12, 0x34, 0xFF)),
    "a hit": ((7, 5, 0), (7, 5, 77, 0x12, 0x34, 0xFF)),
    "a miss": ((7, 6, 0), (7, 6, 9, 0x12, 0x34, 0xFF)),
    "minus minus one, and a product that wraps": ((8, 0, 0), (8, 0, 0, 0x46, 0x34, 1)),
    "a draw from one number": ((9, 0, 42), (9, 42, 42, 0x12, 0x34, 0xFF)),
    # LLVM leaves 32 bits of nothing, shifted by 32, undefined.
    "zeros in front of as many bits as a machine has": ((12, 0, 5), (12, 1, 5, 0x12, 0x34, 0xFF)),
    "zeros in front of another number": ((12, 0, 6), (12, 2, 6, 0x12, 0x34, 0xFF)),
    "minus one shifted right is minus one": ((13, 0, 0), (13, 1, 0, 0x12, 0x34, 0xFF)),
    "a hash modulo an empty range": ((10, 0, 1), (10, 0, 1, 0, 0, 0xFF)),
}


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", CASES)
def test_corners(engine: Engine, name: str) -> None:
    packet, expected = CASES[name]
    assert answer(switch(engine), *packet) == (2, bytes(expected))


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_register_that_overflows_wraps(engine: Engine) -> None:
    target = switch(engine)
    # Each packet reads the cell and adds 200 to it: 0, 200, 400 - 256, ...
    read = [answer(target, 6, 1, 0)[1][2] for _ in range(4)]

    assert read == [0, 200, 144, 88]
    assert target.pipeline is not None
    assert list(target.pipeline.registers[0]) == [0, 32, 0, 0]
    # Beyond the end nothing is written.
    assert answer(target, 6, 200, 0)[1][2] == 7
    assert list(target.pipeline.registers[0]) == [0, 32, 0, 0]


def colours(engine: Engine, seed: int) -> tuple[list[int], list[list[int]]]:
    """Return colours of packets at random times under random rates, and the meter's counts."""
    draw = Random(seed)
    now = 0
    target = Switch(1, lambda: now, random=draw.randint, ports=range(4), engine=engine)
    target.load(SOURCE)
    assert target.pipeline is not None
    meter = target.pipeline.meters[0][1]
    meter.configure(Rates(*(draw.randrange(1, 10**5) for _ in range(4))))
    seen = []
    for _ in range(400):
        now += draw.randrange(10**11)
        seen.append(answer(target, 11, 1, 0, tail=TAIL + bytes(draw.randrange(2000)))[1][2])

    return seen, meter.colors


@pytest.mark.parametrize("seed", range(8))
def test_meters_colour_alike(seed: int) -> None:
    seen, counted = colours("native", seed)

    assert (seen, counted) == colours("python", seed)
    assert [sum(colour == mark for mark in seen) for colour in range(3)] == [
        packets for packets, _ in counted
    ]


def test_all_colours_are_seen() -> None:
    assert {colour for seed in range(8) for colour in colours("native", seed)[0]} == {0, 1, 2}


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("size", range(6))
def test_a_packet_shorter_than_its_header(engine: Engine, size: int) -> None:
    # The parser rejects it, and ingress sees no header: it goes on as it came.
    frame = bytes(range(size))
    assert answer(switch(engine), tail=frame) == (3, frame)


@pytest.mark.parametrize(("count", "width", "speed"), [(3, 2048, 2), (10, 2048, 0), (10, 64, 2)])
def test_many_wide_shifts_are_loaded_in_the_simple_way(
    monkeypatch: pytest.MonkeyPatch, count: int, width: int, speed: int
) -> None:
    # LLVM's own way took 20 s for 20 shifts of 2,048 bits.
    taken: list[int] = []
    make = machine._machine

    def noted(asked: int) -> Any:
        taken.append(asked)
        return make(asked)

    monkeypatch.setattr(machine, "_machine", noted)
    shifts = "\n".join(
        f"%v{i + 1} = shl i{width} {f'%v{i}' if i else '%a'}, %b" for i in range(count)
    )
    machine.object_code(
        f"define i{width} @f(i{width} %a, i{width} %b) {{\n{shifts}\nret i{width} %v{count}\n}}"
    )

    assert taken == [speed]
