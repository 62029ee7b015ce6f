"""CRCs with parameters that the control plane sets, on both engines.

The judges are the check values of the catalogues (the CRC of "123456789") and a division of
polynomials bit by bit.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ofan_p4.softswitch.base.crcs import Parameters
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch
from tests.emulation.softswitch.division import divided

SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30
)
ENGINES: tuple[Engine, ...] = ("python", "native")
CHECKED = b"123456789"
CATALOGUE = {
    "CRC-16/ARC": (16, (0x8005, 0, 0, True, True), 0xBB3D),
    "CRC-16/XMODEM": (16, (0x1021, 0, 0, False, False), 0x31C3),
    "CRC-16/IBM-3740": (16, (0x1021, 0xFFFF, 0, False, False), 0x29B1),
    "CRC-16/MODBUS": (16, (0x8005, 0xFFFF, 0, True, True), 0x4B37),
    "CRC-16/KERMIT": (16, (0x1021, 0, 0, True, True), 0x2189),
    "CRC-16/IBM-SDLC": (16, (0x1021, 0xFFFF, 0xFFFF, True, True), 0x906E),
    "CRC-16/GENIBUS": (16, (0x1021, 0xFFFF, 0xFFFF, False, False), 0xD64E),
    # The meaning of "initial" shows where it is no palindrome.
    "CRC-16/RIELLO": (16, (0x1021, 0xB2AA, 0, True, True), 0x63D0),
    "CRC-32/ISO-HDLC": (32, (0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xCBF43926),
    "CRC-32/BZIP2": (32, (0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, False, False), 0xFC891918),
    "CRC-32/ISCSI": (32, (0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True, True), 0xE3069283),
    "CRC-32/JAMCRC": (32, (0x04C11DB7, 0xFFFFFFFF, 0, True, True), 0x340BC6D9),
    "CRC-32/CKSUM": (32, (0x04C11DB7, 0, 0xFFFFFFFF, False, False), 0x765E7680),
}


def hashing(p: Any, engine: Engine, *algorithms: str, fields: tuple[int, ...] = (72,)) -> Switch:
    """Return a switch that puts the hashes of a packet's fields in front of it."""
    p.header("out", **{f"h{i}": 32 for i in range(len(algorithms))})
    p.header("h", emit=False, **{f"f{i}": bits for i, bits in enumerate(fields)})
    inputs = [p.field(f"h.f{i}") for i in range(len(fields))]
    p.root["calculations"] = [
        {"name": f"calc_{i}", "id": i, "algo": algorithm, "input": inputs}
        for i, algorithm in enumerate(algorithms)
    ]
    p.state("start", [p.extract("h")])
    hashes = [
        p.call(
            "modify_field_with_hash_based_offset",
            f"out.h{i}",
            0,
            {"type": "calculation", "value": f"calc_{i}"},
            1 << 32,
        )
        for i in range(len(algorithms))
    ]
    p.run("hash", [p.call("add_header", p.header_operand("out")), *hashes])
    switch = Switch(1, lambda: 0, lambda low, _high: low, range(8), engine=engine)
    switch.load(p.source())

    return switch


def hashes_of(switch: Switch, frame: bytes, count: int) -> list[int]:
    """Return the hashes that a switch puts in front of a packet."""
    [waiting] = switch.ingress(0, frame)
    [sent] = switch.egress(waiting)
    return [int.from_bytes(sent.frame[4 * i : 4 * i + 4], "big") for i in range(count)]


@pytest.mark.parametrize("engine", ENGINES)
def test_crcs_of_the_catalogues_have_their_check_values(program: Any, engine: Engine) -> None:
    switch = hashing(program, engine, "crc16_custom", "crc32_custom")
    assert switch.pipeline is not None
    crcs = {}
    for name, (width, values, _) in CATALOGUE.items():
        switch.pipeline.custom_crcs[width == 32].configure(Parameters(*values))
        crcs[name] = hashes_of(switch, CHECKED, 2)[width == 32]

    assert crcs == {name: check for name, (_, _, check) in CATALOGUE.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_calculations_and_switches_have_parameters_of_their_own(
    new_program: Any, engine: Engine
) -> None:
    algorithms = ("crc16_custom", "crc16", "crc16_custom")
    configured, untouched = (hashing(new_program(), engine, *algorithms) for _ in range(2))
    assert configured.pipeline is not None
    configured.pipeline.custom_crcs[1].configure(Parameters(*CATALOGUE["CRC-16/XMODEM"][1]))

    assert hashes_of(configured, CHECKED, 3) == [0xBB3D, 0xBB3D, 0x31C3]
    assert hashes_of(untouched, CHECKED, 3) == [0xBB3D, 0xBB3D, 0xBB3D]


NUMBERS = st.integers(0, 0xFFFFFFFF)


@pytest.mark.parametrize("engine", ENGINES)
@SETTINGS
@given(
    numbers=st.tuples(NUMBERS, NUMBERS, NUMBERS),
    reflected=st.tuples(st.booleans(), st.booleans()),
    content=st.binary(min_size=5, max_size=5),
)
def test_a_crc_is_the_remainder_of_a_division(
    new_program: Any,
    engine: Engine,
    numbers: tuple[int, int, int],
    reflected: tuple[bool, bool],
    content: bytes,
) -> None:
    # Fields that are no whole bytes.
    switch = hashing(new_program(), engine, "crc16_custom", "crc32_custom", fields=(3, 9, 13, 15))
    assert switch.pipeline is not None
    expected = []
    for crc in switch.pipeline.custom_crcs:
        polynomial, initial, final_xor = (number % (1 << crc.bits) for number in numbers)
        parameters = Parameters(polynomial, initial, final_xor, *reflected)
        crc.configure(parameters)
        expected.append(divided(content, crc.bits, parameters))

    assert hashes_of(switch, content, 2) == expected
