"""Frames in memory that is shared with the kernel (PACKET_MMAP, version 2 of its rings).

A ring saves a system call and a copy per frame. The kernel owns a frame until it changes the
frame's status, and gets it back by the same word.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import socket
import struct
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ofan_p4.softswitch.daemon.offloads import COMPLETE, finished
from ofan_p4.softswitch.daemon.sockets import MAX_FRAME, SOL_PACKET, put_tag_back
from ofan_p4.softswitch.native import burst_code

# Of the kernel's headers.
PACKET_RX_RING = 5
PACKET_COPY_THRESH = 7
PACKET_VERSION = 10
PACKET_TX_RING = 13
PACKET_LOSS = 14
TPACKET_V2 = 1
SIOCGIFMTU = 0x8921
# There is no room at this moment, or a frame was dropped on its way.
LATER = (errno.EAGAIN, errno.EINTR, errno.ENOBUFS)
REQUEST = struct.Struct("IIII")
# struct tpacket2_hdr up to tp_vlan_tpid.
HEADER = struct.Struct("=IIIHHIIHH")

# Received frames wait here while the switch is busy elsewhere; sent frames leave at once.
RX_BYTES = 8 << 20
TX_BYTES = 2 << 20
# The kernel's own header and its alignment, and a tag that a program may add.
OVERHEAD = 128
ETHERNET_AND_TAG = 18
# As much as may wait behind an interface that is shaped; beyond that packets wait in our queue,
# where programs see them.
SEND_BUFFER = 1 << 18


class Ring:
    """The two rings of a socket that is bound to an interface; `words` describe them to bursts.

    Raises OSError where the kernel refuses them.
    """

    def __init__(self, sock: socket.socket, name: str, number: int, words: NDArray[np.uint64]):
        self._socket = sock
        self.words = words
        mtu = _mtu(sock, name)
        size = 1 << (mtu + ETHERNET_AND_TAG + OVERHEAD - 1).bit_length()
        block = max(size, mmap.PAGESIZE)
        blocks = [max(2, RX_BYTES // block), max(2, TX_BYTES // block)]
        frames = [count * block // size for count in blocks]

        sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        # A frame that is longer than its place in the ring is handed over whole, beside it.
        sock.setsockopt(SOL_PACKET, PACKET_COPY_THRESH, 1)
        # A frame that cannot be sent is skipped, not an end to all sending.
        sock.setsockopt(SOL_PACKET, PACKET_LOSS, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        for option, count, number_of_frames in zip(
            (PACKET_RX_RING, PACKET_TX_RING), blocks, frames, strict=True
        ):
            request = REQUEST.pack(block, count, size, number_of_frames)
            sock.setsockopt(SOL_PACKET, option, request)

        self._memory = mmap.mmap(sock.fileno(), sum(blocks) * block, mmap.MAP_SHARED)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        words[:] = 0
        words[burst_code.NUMBER] = number
        words[burst_code.RX_BASE : burst_code.RX_NEXT] = (start, frames[0], size)
        words[burst_code.TX_BASE : burst_code.TX_NEXT] = (
            start + blocks[0] * block,
            frames[1],
            size,
        )
        words[burst_code.TX_MOST] = mtu + ETHERNET_AND_TAG

    def take(self) -> list[bytes]:
        """Return the next frame, finished (`offloads`), with its VLAN tag put back.

        Several if it has to be cut, none if it cannot be. Raises BlockingIOError if nothing has
        arrived.
        """
        address = self._place(burst_code.RX_BASE, burst_code.RX_NEXT, burst_code.RX_SIZE)
        status, whole, size, mac, _, _, _, tci, tpid = HEADER.unpack(
            ctypes.string_at(address, HEADER.size)
        )
        if not status & burst_code.TP_STATUS_USER:
            raise BlockingIOError

        # The work that its host has left to the interface is listed right in front of a frame.
        before = len(COMPLETE)
        if status & burst_code.TP_STATUS_COPY:
            received = self._socket.recv(MAX_FRAME)
        else:
            # If the kernel had no room for the whole, the kept part is no frame.
            size = size if size == whole else 0
            received = ctypes.string_at(address + mac - before, before + size)

        self.release()
        if len(received) == before:
            return []

        frames = finished(received[:before], received[before:])
        return [put_tag_back(frame, status, tci, tpid) for frame in frames]

    def release(self) -> None:
        """Give the next frame back to the kernel."""
        self._set_status(self._place(burst_code.RX_BASE, burst_code.RX_NEXT, burst_code.RX_SIZE), 0)
        self._advance(burst_code.RX_NEXT, burst_code.RX_FRAMES)

    @property
    def has_room(self) -> bool:
        """Whether one more frame can be sent."""
        return (
            self._status(self._place(burst_code.TX_BASE, burst_code.TX_NEXT, burst_code.TX_SIZE))
            == 0
        )

    def put(self, frame: bytes) -> None:
        """Put a frame where the next `flush` sends it.

        Raises BlockingIOError without room and ValueError for a frame that is too long.
        """
        if not self.has_room:
            raise BlockingIOError
        if len(frame) > self.words[burst_code.TX_MOST]:
            raise ValueError(f"{len(frame)} bytes")

        address = self._place(burst_code.TX_BASE, burst_code.TX_NEXT, burst_code.TX_SIZE)
        ctypes.memmove(address + burst_code.TX_HEADER, frame, len(frame))
        ctypes.c_uint32.from_address(address + burst_code.LEN).value = len(COMPLETE) + len(frame)
        self._set_status(address, burst_code.TP_STATUS_SEND_REQUEST)
        self._advance(burst_code.TX_NEXT, burst_code.TX_FRAMES)
        for number, change in (
            (burst_code.TX_PACKETS, 1),
            (burst_code.TX_BYTES, len(frame)),
            (burst_code.TX_PENDING, 1),
        ):
            self.words[number] += np.uint64(change)

    def flush(self) -> bool:
        """Tell the kernel to send the ring's frames; return whether it has taken all of them.

        Raises OSError if the interface sends nothing at all; the ring's frames are lost then, and
        counted in the words.
        """
        try:
            self._socket.send(b"", socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno not in LATER:
                self._discard()
                raise

        # Frames that it has left are sent again with the next frames, or at the next call.
        self.words[burst_code.TX_PENDING] = 0
        return self._status(self._last()) != burst_code.TP_STATUS_SEND_REQUEST

    def _last(self) -> int:
        """Return where the frame is that was put last."""
        before = (int(self.words[burst_code.TX_NEXT]) - 1) % int(self.words[burst_code.TX_FRAMES])
        return int(self.words[burst_code.TX_BASE]) + before * int(self.words[burst_code.TX_SIZE])

    def _discard(self) -> None:
        """Take back frames that the kernel has not sent, and go on at its next frame."""
        ring_words = self.words
        while self._status(address := self._last()) == burst_code.TP_STATUS_SEND_REQUEST:
            self._set_status(address, 0)
            ring_words[burst_code.TX_NEXT] = (int(ring_words[burst_code.TX_NEXT]) - 1) % int(
                ring_words[burst_code.TX_FRAMES]
            )
            for number, change in (
                (burst_code.TX_PACKETS, -1),
                (
                    burst_code.TX_BYTES,
                    len(COMPLETE) - ctypes.c_uint32.from_address(address + burst_code.LEN).value,
                ),
                (burst_code.TX_FAILED, 1),
            ):
                ring_words[number] = int(ring_words[number]) + change

        ring_words[burst_code.TX_PENDING] = 0

    def close(self) -> None:
        """Unmap the memory; the socket belongs to the caller, who closes it."""
        with suppress(BufferError):
            self._memory.close()

    def _place(self, base: int, following: int, size: int) -> int:
        ring_words = self.words
        return int(ring_words[base]) + int(ring_words[following]) * int(ring_words[size])

    @staticmethod
    def _status(address: int) -> int:
        return ctypes.c_uint32.from_address(address).value

    @staticmethod
    def _set_status(address: int, status: int) -> None:
        ctypes.c_uint32.from_address(address).value = status

    def _advance(self, index: int, frames: int) -> None:
        self.words[index] = (int(self.words[index]) + 1) % int(self.words[frames])


def _mtu(sock: socket.socket, name: str) -> int:
    answer = fcntl.ioctl(sock.fileno(), SIOCGIFMTU, struct.pack("16sI12x", name.encode(), 0))
    return int(struct.unpack("16sI12x", answer)[1])
