"""Frames of priority flow control against Scapy, which has the standard's layers of its own."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Dot1Q, Ether

from hostagent.pause_frames import quanta_of
from ofan_p4.softswitch.ports.pause_frames import (
    is_control,
    pause_frame,
    pause_ps,
    read_pause,
)

SOURCE = bytes.fromhex("02000a000003")
GROUP = "01:80:c2:00:00:01"
QUANTA = st.dictionaries(st.integers(0, 7), st.integers(0, 0xFFFF))


def by_scapy(quanta: dict[int, int]) -> bytes:
    named = {f"c{priority}_enabled": 1 for priority in quanta}
    times = {f"c{priority}_pause_time": time for priority, time in quanta.items()}
    pause = MACControlClassBasedFlowControl(**named, **times)
    return bytes(Ether(dst=GROUP, src=SOURCE.hex(":")) / pause)


@given(QUANTA)
def test_frames_are_those_of_scapy_byte_for_byte(quanta: dict[int, int]) -> None:
    frame = pause_frame(SOURCE, quanta)

    assert frame == by_scapy(quanta)
    assert len(frame) == 60, "with the checksum that the wire adds, the least of Ethernet"
    assert is_control(frame) and read_pause(frame) == quanta
    assert quanta_of(frame) == quanta.get(0)


def test_a_frame_by_hand() -> None:
    # Priorities 0 and 3, for the longest time and for none.
    head = "0180c2000001 02000a000003 8808 0101 0009 ffff 0000 0000 0000"
    assert pause_frame(SOURCE, {0: 0xFFFF, 3: 0}) == bytes.fromhex(head) + bytes(34)


def test_a_quantum_is_512_bit_times() -> None:
    assert pause_ps(1, rate_bps=10**12) == 512
    assert pause_ps(0xFFFF, rate_bps=10**6) == 65_535 * 512 * 10**6, "33.6 s"


@pytest.mark.parametrize(
    ("frame", "defect"),
    [
        (by_scapy({0: 9})[:33], "a byte less than its times"),
        (bytes(Ether(dst=GROUP, src=SOURCE.hex(":")) / MACControlPause(pause_time=9)), "all"),
        (by_scapy({0: 9}).replace(bytes.fromhex(GROUP.replace(":", "")), SOURCE), "no group"),
        (by_scapy({0: 9})[:12] + b"\x08\x00" + by_scapy({0: 9})[14:], "another EtherType"),
        (bytes(Ether(dst=GROUP) / Dot1Q() / MACControlClassBasedFlowControl()), "a tag"),
        (bytes.fromhex("0180c2000001"), "an address alone"),
    ],
)
def test_malformed_frames_say_nothing_and_are_for_nobody_else(frame: bytes, defect: str) -> None:
    assert is_control(frame) and read_pause(frame) is None, defect
    assert quanta_of(frame) is None, defect


def test_what_is_reserved_is_not_looked_at() -> None:
    frame = bytearray(by_scapy({0: 7}))
    frame[16] = 0xFF
    frame[34:] = bytes([0xAA]) * (len(frame) - 34)

    assert read_pause(bytes(frame)) == {0: 7} == read_pause(bytes(frame[:34]))
    assert quanta_of(bytes(frame)) == 7


@given(QUANTA, st.lists(st.tuples(st.integers(0, 59), st.integers(0, 255))), st.integers(0, 60))
@example({0: 5}, [(15, 2)], 60)
@example({0: 5}, [], 35)
def test_any_damage_is_read_as_scapy_reads_it_or_not_at_all(
    quanta: dict[int, int], changes: list[tuple[int, int]], length: int
) -> None:
    frame = bytearray(pause_frame(SOURCE, quanta))
    for index, value in changes:
        frame[index] = value

    damaged = bytes(frame[:length])
    told = read_pause(damaged)
    if told is None:
        assert quanta_of(damaged) is None
        assert length < 34 or damaged[:6] + damaged[12:16] != bytes.fromhex("0180c200000188080101")
    else:
        pause = Ether(damaged[:34])[MACControlClassBasedFlowControl]
        assert told == {
            priority: getattr(pause, f"c{priority}_pause_time")
            for priority in range(8)
            if getattr(pause, f"c{priority}_enabled")
        }
        assert quanta_of(damaged) == told.get(0)


@given(st.binary(max_size=200))
def test_any_bytes_are_read(frame: bytes) -> None:
    assert read_pause(frame) is None or is_control(frame)
    quanta_of(frame)
