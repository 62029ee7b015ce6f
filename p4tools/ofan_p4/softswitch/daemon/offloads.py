"""Frames that a host has left to its interface: without their checksum, or longer than the MTU.

Linux lets interfaces compute checksums (CHECKSUM_PARTIAL) and cut long segments (GSO), and a veth
pair hands both on as they are: a program at the other end gets frames that no receiver would
accept. Beside each frame the kernel lists its missing parts (struct virtio_net_hdr), and this
module adds them, as the kernel does for an interface that cannot.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ofan_p4.softswitch.base.hashes import crc_table, fold, reflected_crc, words

# Of the kernel's virtio_net.h: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
MISSING = struct.Struct("=BBHHHH")
# In front of a frame that is sent: nothing is missing.
COMPLETE = bytes(MISSING.size)
NEEDS_CHECKSUM = 1
TCP_V4, TCP_V6, UDP = 1, 4, 5
# CWR is set in the first segment, which has nothing to do with how it is cut.
ECN = 0x80

ETHERNET = 14
TAGS = (0x8100, 0x88A8)
IPV6 = 40
# A checksum's offset in its header identifies the protocol; SCTP's is a CRC of all of the packet.
TCP_CHECKSUM, UDP_CHECKSUM, SCTP_CHECKSUM = 16, 6, 8
TCP_FLAGS, CWR, FIN_AND_PSH = 13, 0x80, 0x09
# No host sends smaller segments than this, of Linux' smallest MSS without its options.
LEAST_SEGMENT = 8


def finished(missing: bytes, frame: bytes) -> list[bytes]:
    """Return a frame as it belongs on a link: its checksum completed, cut where it is too long.

    `missing` is the virtio_net_hdr that came with it; it counts places without a VLAN tag that the
    kernel has taken out. None are returned of a frame that cannot be cut: segments in a tunnel, and
    a segment's rest for which the kernel had no room.
    """
    flags, kind, _, size, start, offset = MISSING.unpack(missing)
    if kind:
        return list(_segments(frame, kind & ~ECN, size, start, offset))

    if not flags & NEEDS_CHECKSUM:
        return [frame]

    # The kernel never sends a frame that ends before its checksum: this frame is dropped.
    if start + offset + 2 > len(frame):
        return []

    return [_with_checksum(bytearray(frame), start, offset)]


def _with_checksum(frame: bytearray, start: int, offset: int) -> bytes:
    """Complete the checksum of the header at `start`; its field has the pseudo-header's sum."""
    position = start + offset
    if offset == SCTP_CHECKSUM:
        struct.pack_into("<I", frame, position, 0)
        struct.pack_into("<I", frame, position, crc32c(frame[start:]))
        return bytes(frame)

    # 0 would say that a UDP datagram has no checksum; its other form is as good everywhere.
    checksum = fold(words(bytes(frame[start:]))) or 0xFFFF
    struct.pack_into(">H", frame, position, checksum)
    return bytes(frame)


def _segments(frame: bytes, kind: int, size: int, start: int, offset: int) -> Iterator[bytes]:
    """Cut a frame into segments of at most `size` bytes of data, each with all of the headers."""
    network = _network(frame)
    is_ours = {
        TCP_V4: offset == TCP_CHECKSUM and start == _end_of_ipv4(frame, network),
        # Extension headers may lie between; a tunnel's payload begins with another header.
        TCP_V6: offset == TCP_CHECKSUM and _end_of_ipv6(frame, network) == start,
        UDP: offset == UDP_CHECKSUM
        and start in (_end_of_ipv4(frame, network), _end_of_ipv6(frame, network)),
    }
    if not is_ours.get(kind) or size < LEAST_SEGMENT or len(frame) < start + 20:
        return

    is_tcp = kind != UDP
    data = start + ((frame[start + 12] >> 4) * 4 if is_tcp else 8)
    headers = frame[:data]
    for number, position in enumerate(range(data, len(frame), size)):
        segment = bytearray(headers + frame[position : position + size])
        _renumber(segment, network, number)
        # The field has the sum of the pseudo-header, which has the length of the whole.
        (pseudo,) = struct.unpack_from(">H", frame, start + offset)
        pseudo = (pseudo - (len(frame) - start) + len(segment) - start) % 0xFFFF
        struct.pack_into(">H", segment, start + offset, pseudo)
        if is_tcp:
            is_last = position + size >= len(frame)
            _continue_tcp(
                segment, start, sent=position - data, is_first=not number, is_last=is_last
            )
        else:
            struct.pack_into(">H", segment, start + 4, len(segment) - start)

        yield _with_checksum(segment, start, offset)


def _renumber(segment: bytearray, network: int, number: int) -> None:
    """Give a segment's IP header its own length, and IPv4's its own identification and checksum."""
    if segment[network] >> 4 == 6:
        struct.pack_into(">H", segment, network + 4, len(segment) - network - IPV6)
        return

    (identification,) = struct.unpack_from(">H", segment, network + 4)
    struct.pack_into(
        ">HH", segment, network + 2, len(segment) - network, (identification + number) & 0xFFFF
    )
    end = _end_of_ipv4(segment, network)
    struct.pack_into(">H", segment, network + 10, 0)
    checksum = fold(words(bytes(segment[network:end])))
    struct.pack_into(">H", segment, network + 10, checksum)


def _continue_tcp(
    segment: bytearray, start: int, *, sent: int, is_first: bool, is_last: bool
) -> None:
    """Give a TCP segment its own sequence number and flags, as tcp_gso_segment does."""
    (sequence,) = struct.unpack_from(">I", segment, start + 4)
    struct.pack_into(">I", segment, start + 4, (sequence + sent) & 0xFFFFFFFF)
    gone = (0 if is_first else CWR) | (0 if is_last else FIN_AND_PSH)
    segment[start + TCP_FLAGS] &= ~gone & 0xFF


def _network(frame: bytes) -> int:
    """Return where the header behind Ethernet, and VLAN tags that are in the frame, begins."""
    position = ETHERNET - 2
    while int.from_bytes(frame[position : position + 2], "big") in TAGS:
        position += 4

    return position + 2


def _end_of_ipv4(frame: bytes | bytearray, network: int) -> int | None:
    first = frame[network]
    return network + (first & 0xF) * 4 if first >> 4 == 4 else None


def _end_of_ipv6(frame: bytes, network: int) -> int | None:
    """Return where the header behind IPv6 and its extension headers begins."""
    if frame[network] >> 4 != 6:
        return None

    following, position = frame[network + 6], network + IPV6
    # Hop-by-hop, routing, destination options: each names the following header, and its length.
    while following in (0, 43, 60) and position + 2 <= len(frame):
        following, position = frame[position], position + 8 + 8 * frame[position + 1]

    return position


def crc32c(data: bytes | bytearray) -> int:
    """Return the CRC of SCTP (RFC 9260, appendix A): polynomial 0x1EDC6F41, reflected."""
    return reflected_crc(data, _CRC32C, 0xFFFFFFFF) ^ 0xFFFFFFFF


_CRC32C = crc_table(0x82F63B78)
