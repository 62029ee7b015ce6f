"""Frames of priority flow control as bytes (IEEE 802.1Qbb; their format is IEEE 802.3, annex 31D).

    destination 01:80:C2:00:00:01, source, EtherType 0x8808, opcode 0x0101, a vector of 16 bits for
    the priorities that are meant, eight times in quanta, zeros

A quantum is the time of 512 bits. A time that is not 0 pauses a priority for so long from now on,
in place of earlier times; 0 lets it go on.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from ofan_p4.softswitch.base.units import PS_PER_SECOND

PRIORITIES = 8
MOST_QUANTA = 0xFFFF
QUANTUM_BITS = 512
# On the wire: the least that an Ethernet frame has, its checksum of 4 bytes included.
WIRE_BYTES = 64

# A group address that no bridge forwards (IEEE 802.1Q, table 8-1).
GROUP = bytes.fromhex("0180c2000001")
MAC_CONTROL = 0x8808
OPCODE = 0x0101
FORM = struct.Struct(f">6s6sHHH{PRIORITIES}H")
_MAC_CONTROL_BYTES = MAC_CONTROL.to_bytes(2, "big")


def pause_frame(source: bytes, quanta: Mapping[int, int]) -> bytes:
    """Return a frame that pauses priorities for so many quanta, without its checksum."""
    vector = sum(1 << priority for priority in quanta)
    times = [quanta.get(priority, 0) for priority in range(PRIORITIES)]
    frame = FORM.pack(GROUP, source, MAC_CONTROL, OPCODE, vector, *times)
    return frame.ljust(WIRE_BYTES - 4, b"\0")


def is_control(frame: bytes) -> bool:
    """Return whether a frame ends at its receiver, well-formed or not."""
    return frame[12:14] == _MAC_CONTROL_BYTES or frame[:6] == GROUP


def read_pause(frame: bytes) -> dict[int, int] | None:
    """Return the quanta of the priorities that a frame names, None where it is malformed.

    Bits that the standard reserves are ignored: the vector's upper half, and all behind the times.
    """
    if len(frame) < FORM.size:
        return None

    destination, _, ethertype, opcode, vector, *times = FORM.unpack_from(frame)
    if (destination, ethertype, opcode) != (GROUP, MAC_CONTROL, OPCODE):
        return None

    return {priority: time for priority, time in enumerate(times) if vector >> priority & 1}


def pause_ps(quanta: int, rate_bps: int) -> int:
    """Return how long so many quanta are on a link of a rate."""
    return quanta * QUANTUM_BITS * PS_PER_SECOND // rate_bps
