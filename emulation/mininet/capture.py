"""Captures of any port of the emulated network: pcap files with the kernel's nanoseconds."""

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from emulation.taps import Tap
from hostagent.agents.nic import BUFFER_BYTES, ETH_P_ALL, SO_RCVBUFFORCE
from hostagent.agents.process import inside

# The pcap file format: the magic of files with nanoseconds, version 2.4, LINKTYPE_ETHERNET.
NANOSECOND_MAGIC = 0xA1B23C4D
ETHERNET_LINK = 1
# Of <asm-generic/socket.h>; Python has no name for it.
SO_TIMESTAMPNS = 35
# More than any frame has.
SNAP_BYTES = 65_535


class Capture:
    """A packet socket on one interface, both directions, and the file that it fills.

    The file is not buffered: it is whole up to the last packet, however the run ends.
    """

    __slots__ = ("_file", "packets", "socket")

    def __init__(self, link: socket.socket, file: FileIO) -> None:
        self.socket = link
        self.packets = 0
        self._file = file
        file.write(struct.pack("IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, SNAP_BYTES, ETHERNET_LINK))

    def drain(self) -> None:
        """Write the frames that wait in the socket."""
        for frame, seconds, nanoseconds in self._waiting():
            self._file.write(
                struct.pack("IIII", seconds, nanoseconds, len(frame), len(frame)) + frame
            )
            self.packets += 1

    def _waiting(self) -> Iterator[tuple[bytes, int, int]]:
        while True:
            try:
                frame, ancillary, _, _ = self.socket.recvmsg(SNAP_BYTES, 256)
            except OSError:
                return

            # The kernel's time of the frame, a timespec, without this process's wait for a
            # processor.
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2]) if ancillary else (0, 0)
            yield frame, seconds, nanoseconds


@contextmanager
def captures(
    taps: Sequence[Tap], processes: Sequence[int], folder: Path, prefix: str = ""
) -> Iterator[list[Capture]]:
    """Capture ports into `folder`, one file each.

    `processes` live in the hosts' namespaces, the caller in the switches'.
    """
    with ExitStack() as stack:
        opened = []
        for tap in taps:
            process = os.getpid() if tap.host is None else processes[tap.host]
            link = stack.enter_context(_tap_socket(process, tap.interface))
            file = stack.enter_context(tap.path(folder, prefix, ".pcap").open("wb", buffering=0))
            opened.append(Capture(link, file))

        try:
            yield opened
        finally:
            # The last packets may have come after the loop's last look.
            for capture in opened:
                capture.drain()


def _tap_socket(process: int, interface: str) -> socket.socket:
    with inside(process):
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        link.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)

        # Opened for no protocol and bound for all: before it is bound a packet socket would take
        # frames of every interface.
        link.bind((interface, ETH_P_ALL))

    link.setblocking(False)
    return link
