"""The hash algorithms of v1model as BMv2 computes them, each from bytes to an unsigned integer."""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Callable, Iterable, Sequence

from ofan_p4.softswitch.base.errors import PipelineError

Hash = Callable[[bytes], int]
Part = tuple[object, int | bytes, int]


def csum16(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    return fold(words(data))


def words(data: bytes) -> int:
    """Return a number that is the sum of 16-bit words modulo 2^16 - 1, 0 only if all are 0."""
    return int.from_bytes(data + bytes(len(data) % 2), "big")


def fold(total: int) -> int:
    """Return the one's complement of a sum of 16-bit words."""
    # 2^16 is 1 modulo 2^16 - 1, so that adding the carries back (RFC 1071) is a remainder. A
    # multiple folds to 0xFFFF, one's complement's other 0, unless every word is 0.
    return 0xFFFF - (total % 0xFFFF or 0xFFFF) if total else 0xFFFF


def crc_table(polynomial: int) -> tuple[int, ...]:
    """Return a reflected CRC's addend for each byte; `polynomial` has its bits reversed."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)

        table.append(value)

    return tuple(table)


def reflected_crc(data: bytes | bytearray, table: Sequence[int], start: int) -> int:
    """Return a reflected CRC by the table of its polynomial."""
    crc = start
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]

    return crc


def crc16(data: bytes) -> int:
    """Return CRC-16/ARC: polynomial 0x8005, reflected."""
    return reflected_crc(data, _CRC16, 0)


_CRC16 = crc_table(0xA001)


def crc_ccitt(data: bytes) -> int:
    """Return CRC-16/CCITT-FALSE."""
    return binascii.crc_hqx(data, 0xFFFF)


def xor16(data: bytes) -> int:
    """Return the exclusive or of the data's 16-bit words, the last one padded with zeros."""
    padded = data + bytes(len(data) % 2)
    value = 0
    for i in range(0, len(padded), 2):
        value ^= padded[i] << 8 | padded[i + 1]

    return value


def identity(data: bytes) -> int:
    """Return the first eight bytes as a number."""
    return int.from_bytes(data[:8], "big")


# BMv2's custom ones are the plain ones where their parameters cannot be set (`crcs`): in selectors.
ALGORITHMS: dict[str, tuple[Hash, int]] = {
    "csum16": (csum16, 16),
    "cksum16": (csum16, 16),
    "crc16": (crc16, 16),
    "crc16_custom": (crc16, 16),
    "crcCCITT": (crc_ccitt, 16),
    "crc32": (zlib.crc32, 32),
    "crc32_custom": (zlib.crc32, 32),
    "xor16": (xor16, 16),
    "identity": (identity, 64),
}


def algorithm(name: str) -> tuple[Hash, int]:
    """Return a hash function and the width of its result in bits."""
    if name not in ALGORITHMS:
        raise PipelineError(
            f"unknown hash algorithm {name!r}; known: {', '.join(sorted(ALGORITHMS))}"
        )

    return ALGORITHMS[name]


def plain_name(name: str) -> str:
    """Return the first name of the algorithm that a name stands for."""
    return next(plain for plain, algorithm in ALGORITHMS.items() if algorithm == ALGORITHMS[name])


def join_bits(parts: Iterable[Part]) -> bytes:
    """Return the parts (present, value, width) one after the other, left aligned.

    Parts that are absent are left out.

    A part with width 0 is bytes already.
    """
    value = width = 0
    for present, part, bits in parts:
        if not present:
            continue

        number = part if isinstance(part, int) else int.from_bytes(part, "big")
        size = bits if isinstance(part, int) else 8 * len(part)
        value = value << size | number
        width = width + size

    padding = -width % 8
    return (value << padding).to_bytes((width + padding) // 8, "big")
