"""Captures of ports in virtual time: pcapng files with nanoseconds.

https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/ has the format. A packet is captured when
its last bit has left or arrived. Pauses are not captured.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emulation.taps import Tap
from emulation.virtual.event_log import LOW_32, WRITTEN, Frames
from fattree.experiment.model import Scenario
from fattree.routes.demand import Demand
from fattree.shape.topology import Level
from fattree.units import PS_PER_NS
from sim.kernels.desk import (
    ARRIVE_KIND,
    KIND_SHIFT,
    LEAVE_KIND,
    LOG_FRAME,
    LOG_PLACE,
    NODE_SHIFT,
)
from sim.programs.programmed import Programmed

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
BYTE_ORDER = 0x1A2B3C4D
UNKNOWN_LENGTH = -1
ETHERNET_LINK = 1
# Options of an interface (its name, its unit of time: 10 to the minus 9 s) and of a packet.
END, NAME, TIME_UNIT, FLAGS = 0, 2, 9, 2
NANOSECONDS = 9
INBOUND, OUTBOUND = 1, 2


class Way(NamedTuple):
    """Events that a tap records: of a port's packets, so long before them, in a direction."""

    file: BinaryIO
    earlier_ps: int
    direction: int


class Captures:
    """The files of a run's taps, filled with its events."""

    def __init__(self, demand: Demand, files: Mapping[Tap, BinaryIO]) -> None:
        self._frames = Frames(demand)
        self._ways = {
            event: way
            for tap, file in files.items()
            for event, way in _ways(demand.scenario, tap, file)
        }
        self._places = np.array(sorted(self._ways), dtype=np.int64)

    def note(self, run: Programmed, rows: NDArray[np.int64]) -> None:
        """Take in events (rows of `sim.kernels.desk`)."""
        for row in rows[np.isin(rows[:, LOG_PLACE], self._places)]:
            time_ps, event, packet, acknowledged, size = row[:LOG_FRAME].tolist()
            way = self._ways[event]
            key = (packet, acknowledged, size & WRITTEN)
            frame = self._frames.whole(run, row[LOG_FRAME:].tobytes(), key, size >> 32)
            way.file.write(_packet(frame, (time_ps - way.earlier_ps) // PS_PER_NS, way.direction))


@contextmanager
def capture_files(taps: Sequence[Tap], folder: Path, prefix: str) -> Iterator[dict[Tap, BinaryIO]]:
    """Open a file for each tap, `ofan-1-edge0_1-3.pcapng`, and begin it."""
    with ExitStack() as stack:
        files: dict[Tap, BinaryIO] = {}
        for tap in taps:
            file = stack.enter_context(tap.path(folder, prefix, ".pcapng").open("wb"))
            file.write(_beginning(tap.name))
            files[tap] = file

        yield files


def _ways(scenario: Scenario, tap: Tap, file: BinaryIO) -> Iterator[tuple[int, Way]]:
    """Yield the places of events (columns LOG_PLACE) of both directions of a port."""
    tree = scenario.tree
    if tap.host is None:
        yield _place(ARRIVE_KIND, tap.switch, tap.port), Way(file, 0, INBOUND)
        yield _place(LEAVE_KIND, tap.switch, tap.port), Way(file, 0, OUTBOUND)
    else:
        # A host's link has no event at its beginning: packets that it loses are not captured.
        latency_ps = scenario.latencies_ps[Level.HOST]
        yield _place(ARRIVE_KIND, tree.switches + tap.host, 0), Way(file, 0, INBOUND)
        yield _place(ARRIVE_KIND, *tree.access(tap.host)), Way(file, latency_ps, OUTBOUND)


def _place(kind: int, node: int, port: int) -> int:
    return kind << KIND_SHIFT | node << NODE_SHIFT | port


def _block(kind: int, body: bytes) -> bytes:
    """Return a block of the format, with its length at both ends."""
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)


def _beginning(name: str) -> bytes:
    """Return a section with one interface."""
    options = _option(NAME, name.encode()) + _option(TIME_UNIT, bytes([NANOSECONDS]))
    section = struct.pack("<IHHq", BYTE_ORDER, 1, 0, UNKNOWN_LENGTH)
    interface = struct.pack("<HHI", ETHERNET_LINK, 0, 0) + options + _option(END, b"")
    return _block(SECTION, section) + _block(INTERFACE, interface)


def _packet(frame: bytes, time_ns: int, direction: int) -> bytes:
    head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & LOW_32, len(frame), len(frame))
    flags = _option(FLAGS, struct.pack("<I", direction)) + _option(END, b"")
    return _block(PACKET, head + _padded(frame) + flags)
