"""What the process of a user's packet functions answers with: frames, or a line of what is wrong.

Imports nothing that takes memory, of which that process has little.
"""

import struct
from collections.abc import Iterator

GOOD, BAD = b"+", b"-"
# How a frame begins: its length, and where Scapy's BTH begins in it, 0 for nowhere.
HEAD = struct.Struct(">II")


def packed(frame: bytes, bth_at: int) -> bytes:
    """Return a frame as it is sent."""
    return HEAD.pack(len(frame), bth_at) + frame


def unpacked(answer: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the frames of an answer; raises struct.error where it is none."""
    at = 0
    while at < len(answer):
        length, bth_at = HEAD.unpack_from(answer, at)
        at += HEAD.size
        yield answer[at : at + length], bth_at
        at += length
