"""Frames as pcap files with nanosecond times."""

from __future__ import annotations

import struct
import time
from pathlib import Path

# Readers tell the byte order and the unit of time by this number.
MAGIC_NANOSECONDS = 0xA1B23C4D
SNAPSHOT = 1 << 16
ETHERNET = 1


class PcapFile:
    """One growing pcap file; `flush` makes written packets visible to readers."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(struct.pack("=IHHiIII", MAGIC_NANOSECONDS, 2, 4, 0, 0, SNAPSHOT, ETHERNET))

    def write(self, frame: bytes) -> None:
        """Append a frame that is seen now."""
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        self._file.write(struct.pack("=IIII", seconds, nanoseconds, len(frame), len(frame)) + frame)

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
