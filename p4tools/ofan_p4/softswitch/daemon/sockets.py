"""Network interfaces as raw sockets (Linux AF_PACKET)."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct

from ofan_p4.softswitch.base.errors import SoftswitchError
from ofan_p4.softswitch.daemon.offloads import COMPLETE, finished

# Of the kernel's headers: Python's socket module has few of them.
ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_AUXDATA = 8
PACKET_VNET_HDR = 15
PACKET_IGNORE_OUTGOING = 23
STATUS_VLAN_VALID = 1 << 4
STATUS_VLAN_TPID_VALID = 1 << 6
AUXDATA = struct.Struct("IIIHHHH")
SIOCGIFFLAGS = 0x8913
IFF_UP = 0x1
IFF_RUNNING = 0x40
RECEIVE_BUFFER = 4 << 20
# The longest segment that a host leaves to its interface, with its headers.
MAX_FRAME = (1 << 16) + 256
RTMGRP_LINK = 1


class InterfaceError(SoftswitchError):
    """An interface that cannot be used as a port."""


def open_interface(name: str) -> socket.socket:
    """Return a non-blocking socket for the frames that arrive at an interface."""
    try:
        # Protocol 0: nothing is received before `bind`, when all options are set.
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError:
        raise InterfaceError(
            f"no permission to open {name}: raw sockets need root or CAP_NET_RAW"
        ) from None

    try:
        # Otherwise the switch would receive the frames that it sends.
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        # The kernel takes VLAN tags out of frames and hands them over beside them.
        sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        # In front of every frame then is the work that its host has left to the interface
        # (`offloads`).
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        _grow(sock, socket.SO_RCVBUF, _SO_RCVBUFFORCE)
        sock.bind((name, ETH_P_ALL))
    except OSError as error:
        sock.close()
        if error.errno == errno.ENODEV:
            raise InterfaceError(f"no such interface: {name}") from None

        raise InterfaceError(f"cannot open {name}: {error.strerror}") from None

    sock.setblocking(False)
    return sock


_SO_RCVBUFFORCE = 33


def _grow(sock: socket.socket, plain: int, forced: int) -> None:
    try:
        # Above the system's limit, which takes privileges; within it otherwise.
        sock.setsockopt(socket.SOL_SOCKET, forced, RECEIVE_BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, plain, RECEIVE_BUFFER)


def receive(sock: socket.socket) -> list[bytes]:
    """Return the next frame, finished, with the VLAN tag that the kernel has taken out put back.

    Several if it has to be cut, none if it cannot be. BlockingIOError if nothing has arrived.
    """
    received, auxiliary, _, _ = sock.recvmsg(MAX_FRAME, 64)
    frames = finished(received[: len(COMPLETE)], received[len(COMPLETE) :])
    if auxiliary:
        status, _, _, _, _, tci, tpid = AUXDATA.unpack(auxiliary[0][2])
        return [put_tag_back(frame, status, tci, tpid) for frame in frames]

    return frames


def send(sock: socket.socket, frame: bytes) -> None:
    """Send a frame as it is."""
    sock.send(COMPLETE + frame)


def put_tag_back(frame: bytes, status: int, tci: int, tpid: int) -> bytes:
    """Return a frame with the VLAN tag that the kernel has handed over beside it, if any."""
    if not status & STATUS_VLAN_VALID:
        return frame

    kind = tpid if status & STATUS_VLAN_TPID_VALID else 0x8100
    return frame[:12] + struct.pack(">HH", kind, tci) + frame[12:]


def kernel_drops(sock: socket.socket) -> int:
    """Return how many frames the kernel has dropped before this socket since the last call."""
    _, drops = struct.unpack("II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    return int(drops)


def interface_index(name: str) -> int:
    """Return the kernel's number of the interface that has this name now, 0 where none has."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


def hardware_address(sock: socket.socket) -> bytes:
    """Return the six bytes that name a socket's interface on its link."""
    # Interface, protocol, kind of packet, kind of hardware, address (packet(7)).
    return bytes(sock.getsockname()[4])


def is_running(sock: socket.socket, name: str) -> bool:
    """Return whether an interface is up and has its carrier."""
    request = struct.pack("16sH14x", name.encode(), 0)
    try:
        answer = fcntl.ioctl(sock.fileno(), SIOCGIFFLAGS, request)
    except OSError:
        return False

    flags = struct.unpack("16sH14x", answer)[1]
    return bool(flags & IFF_UP and flags & IFF_RUNNING)


def open_link_events() -> socket.socket:
    """Return a non-blocking netlink socket that becomes readable when an interface changes."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    sock.bind((0, RTMGRP_LINK))
    sock.setblocking(False)

    return sock


def drain(sock: socket.socket) -> None:
    """Throw away the bytes that wait in a non-blocking socket."""
    try:
        while sock.recv(MAX_FRAME):
            pass
    except OSError:
        pass
