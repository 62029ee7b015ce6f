"""Hashes of fields of any width, of headers that may be missing, against one written bit by bit."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30
)
WIDTHS = {"a": (3, 5), "b": (1, 12, 3), "c": (9, 20, 11)}


def bits_of(value: int, width: int) -> str:
    """Return a value in binary."""
    return format(value, f"0{width}b") if width else ""


def as_bytes(bits: str) -> bytes:
    """Return a string of bits, left aligned, as bytes."""
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def parts_program(p: Any, inputs: list[str], algorithm: str = "crc32") -> Any:
    """Hash fields of three headers; the first byte decides which of them are present."""
    p.header("out", hash=64)
    p.header("which", emit=False, bits=8)
    for name, widths in WIDTHS.items():
        p.header(name, emit=False, **{f"f{i}": width for i, width in enumerate(widths)})

    p.state("start", [p.extract("which")], ["which.bits"], {"0x00": None, None: "a"})
    for name, following in (("a", "b"), ("b", "c"), ("c", None)):
        p.state(name, [p.extract(name)], ["which.bits"], {None: following})

    drops = [p.call("_jump_if_zero", p.op("&", "which.bits", 1 << i), 2 * i + 2) for i in range(3)]
    removals = [p.call("remove_header", p.header_operand(name)) for name in WIDTHS]
    p.run("remove", [call for pair in zip(drops, removals, strict=True) for call in pair],
          following="hash")  # fmt: skip
    p.root["calculations"] = [
        {"name": "k", "id": 0, "algo": algorithm, "input": [p.field(name) for name in inputs]}
    ]
    p.run(
        "hash",
        [
            p.call("add_header", p.header_operand("out")),
            p.call(
                "modify_field_with_hash_based_offset",
                "out.hash",
                0,
                {"type": "calculation", "value": "k"},
                1 << 64,
            ),
        ],
    )

    return p


FIELDS = [f"{name}.f{i}" for name, widths in WIDTHS.items() for i in range(len(widths))]


@pytest.mark.parametrize("algorithm", ("crc32", "crc32_custom"))
@SETTINGS
@given(
    inputs=st.lists(st.sampled_from(FIELDS), min_size=1, max_size=8),
    missing=st.integers(0, 7),
    content=st.binary(min_size=8, max_size=8),
)
def test_a_hash_is_that_of_its_present_fields_side_by_side(
    new_program: Any, bench: Any, algorithm: str, inputs: list[str], missing: int, content: bytes
) -> None:
    run = bench(parts_program(new_program(), inputs, algorithm))
    all_bits = bits_of(int.from_bytes(content, "big"), 64)
    fields, start = {}, 0
    for number, (name, widths) in enumerate(WIDTHS.items()):
        for i, width in enumerate(widths):
            is_there = not missing >> number & 1
            fields[f"{name}.f{i}"] = all_bits[start : start + width] if is_there else ""
            start += width

    expected = zlib.crc32(as_bytes("".join(fields[name] for name in inputs)))
    # Bit 3 keeps `which` from being 0, which would end the parser before the fields.
    [(_, sent)] = run.send(bytes([missing | 8]) + content)

    assert int.from_bytes(sent[:8], "big") == expected


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("crc32", zlib.crc32(b"123456789")),
        ("crc32_custom", zlib.crc32(b"123456789")),
        ("crc16", 0xBB3D),
        ("crc16_custom", 0xBB3D),
        ("crcCCITT", 0x29B1),
        ("identity", int.from_bytes(b"12345678", "big")),
        ("csum16", 0xFFFF - (0x3132 + 0x3334 + 0x3536 + 0x3738 + 0x3900) % 0xFFFF),
        ("xor16", 0x3132 ^ 0x3334 ^ 0x3536 ^ 0x3738 ^ 0x3900),
    ],
)
def test_the_check_values_of_the_catalogues(
    program: Any, bench: Any, algorithm: str, expected: int
) -> None:
    p = program
    p.header("out", hash=64)
    p.header("h", emit=False, text=72)
    p.root["calculations"] = [
        {"name": "k", "id": 0, "algo": algorithm, "input": [p.field("h.text")]}
    ]
    p.state("start", [p.extract("h")])
    calculation = {"type": "calculation", "value": "k"}
    named = "modify_field_with_hash_based_offset"
    hashed = p.call(named, "out.hash", 0, calculation, 1 << 64)
    p.run("hash", [p.call("add_header", p.header_operand("out")), hashed])
    [(_, sent)] = bench(p).send(b"123456789")

    assert int.from_bytes(sent, "big") == expected


@pytest.mark.parametrize("option", (b"", b"x", b"xyz"))
def test_a_varbit_is_hashed_with_its_length_at_the_time(
    program: Any, bench: Any, option: bytes
) -> None:
    p = program
    p.header("out", hash=64)
    p.header("h", emit=False, size=8, option="*", last=4, rest=4)
    p.root["calculations"] = [
        {
            "name": "k",
            "id": 0,
            "algo": "crc32",
            "input": [p.field("h.last"), p.field("h.option"), p.field("h.rest")],
        }
    ]
    p.header("peek", emit=False, size=8)
    length = {"type": "lookahead", "value": [0, 8]}
    kept = {"op": "set", "parameters": [p.field("peek.size"), length]}
    target = {"type": "regular", "value": "h"}
    extract = {"op": "extract_VL", "parameters": [target, p.op("*", "peek.size", 8)]}
    p.state("start", [kept, extract])
    named = "modify_field_with_hash_based_offset"
    hashed = p.call(named, "out.hash", 0, {"type": "calculation", "value": "k"}, 1 << 64)
    p.run("hash", [p.call("add_header", p.header_operand("out")), hashed])
    [(_, sent)] = bench(p).send(bytes([len(option)]) + option + b"\xab")
    nibbles = "a" + option.hex() + "b"

    assert int.from_bytes(sent[:8], "big") == zlib.crc32(bytes.fromhex(nibbles))
