"""Answers of the process of a user's packet functions: frames, or a line on the error.

Imports nothing that takes memory, of which that process has little.
"""

import struct
from collections.abc import Iterator

GOOD, BAD = b"+", b"-"
# The head of a frame: its length, and the offset of Scapy's BTH in it, 0 without a BTH.
HEAD = struct.Struct(">II")


def packed(frame: bytes, bth_at: int) -> bytes:
    """Return a frame as it is sent."""
    return HEAD.pack(len(frame), bth_at) + frame


def unpacked(answer: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the frames of an answer; raises struct.error for a wrong answer."""
    offset = 0
    while offset < len(answer):
        length, bth_at = HEAD.unpack_from(answer, offset)
        offset += HEAD.size
        yield answer[offset : offset + length], bth_at
        offset += length
