"""RoCEv2 packets as bytes: one template per flow, patched per packet, and a parser that never
raises.

Ethernet / IPv4 (ECN) / UDP 4791 (source port = flow label) / BTH (destination QP = flow id, PSN) /
payload / ICRC

An ACK has the AETH in place of the payload and, with SACK, a bitmap behind it. Scapy builds the
very same bytes (`hostagent.roce`) a hundred times slower; a test holds the two together. Lengths
leave out the Ethernet FCS.
"""

import struct
from typing import NamedTuple
from zlib import crc32

ROCE_PORT = 4791
SEND_ONLY = 0x04
ACKNOWLEDGE = 0x11
ETHERTYPE_IPV4 = 0x0800
UDP_PROTOCOL = 17
IPIP_PROTOCOL = 4
ETHERNET = 14
IPV4 = 20
UDP = 8
BTH = 12
AETH = 4
ICRC = 4
OVERHEAD = ETHERNET + IPV4 + UDP + BTH + ICRC
ACK_BELOW = 256
MAX_SACK_BITS = 1024
ECT = 0b10
CE = 0b11
PSN_BITS = 24
_PSN_MASK = (1 << PSN_BITS) - 1
_BECN = 1 << 30
_ACK_REQUEST = 1 << 31
_IPV4_FORMAT = ">BBHHHBBHII"
_TRANSPORT_FORMAT = ">HHHHBBHII"
_DONT_FRAGMENT = 0x4000
_TTL = 64
_IP_AT = ETHERNET
_UDP_AT = ETHERNET + IPV4


class Ends(NamedTuple):
    """Where a packet comes from and goes to.

    MAC and IPv4 addresses are integers (`fattree.addressing`).
    """

    source_mac: int
    destination_mac: int
    source_ip: int
    destination_ip: int


class Packet(NamedTuple):
    """What a host reads from a frame.

    `marked` is CE on a data packet and BECN on an ACK; `msn` (24 bits) counts the packets received
    (erasure) or is the lowest missing PSN (SACK); bit i of `sacked` says that PSN msn + i has
    arrived.
    """

    is_ack: bool
    flow: int
    psn: int
    label: int
    marked: bool
    source_ip: int
    destination_ip: int
    msn: int = 0
    sacked: int = 0


class DataFrames:
    """The data packets of one flow; each carries `payload_bytes` zero bytes."""

    __slots__ = ("_flow", "_frame")

    def __init__(self, ends: Ends, flow: int, payload_bytes: int) -> None:
        self._flow = flow
        self._frame = _Template(ends, SEND_ONLY, ECT, bytes(payload_bytes))

    def frame(self, label: int, psn: int) -> bytes:
        """Return the frame of a packet number (taken modulo 2**24) that asks for an ACK."""
        return self._frame.patched(label, self._flow, _ACK_REQUEST | psn & _PSN_MASK)


class AckFrames:
    """The ACKs of one flow; `ends` are the receiver's point of view."""

    __slots__ = ("_ends", "_flow")

    def __init__(self, ends: Ends, flow: int) -> None:
        self._ends = ends
        self._flow = flow

    def frame(self, label: int, psn: int, marked: bool, msn: int, sacked: int = 0) -> bytes:
        """Return the ACK of a data packet: echoes its label, number and mark.

        See `Packet` for `msn` and `sacked`.
        """
        body = (msn & _PSN_MASK).to_bytes(AETH, "big") + bitmap_bytes(sacked)
        template = _Template(self._ends, ACKNOWLEDGE, 0, body)
        return template.patched(label, self._flow | (_BECN if marked else 0), psn & _PSN_MASK)


class _Template:
    """All bytes that the packets of a flow share: headers up to UDP, payload, and the ICRC up to
    UDP.
    """

    __slots__ = ("_crc", "_front", "_opcode", "_payload", "_udp_bytes")

    def __init__(self, ends: Ends, opcode: int, ecn: int, payload: bytes) -> None:
        self._udp_bytes = UDP + BTH + len(payload) + ICRC
        ip = ipv4_header(
            ends.source_ip,
            destination=ends.destination_ip,
            protocol=UDP_PROTOCOL,
            payload_bytes=self._udp_bytes,
            ecn=ecn,
        )

        self._front = ethernet_header(ends) + ip
        self._crc = crc32(_invariant_ip(ip))
        self._opcode = opcode
        self._payload = payload

    def patched(self, label: int, queue_pair: int, psn: int) -> bytes:
        """Return the frame with a label and the two BTH words (BECN and queue pair, ACK request and
        PSN).
        """
        ports = (label, ROCE_PORT, self._udp_bytes)
        masked = struct.pack(
            _TRANSPORT_FORMAT, *ports, 0xFFFF, self._opcode, 0, 0xFFFF, queue_pair | 0xFF000000, psn
        )
        icrc = crc32(self._payload, crc32(masked, self._crc))
        transport = struct.pack(
            _TRANSPORT_FORMAT, *ports, 0, self._opcode, 0, 0xFFFF, queue_pair, psn
        )

        return self._front + transport + self._payload + icrc.to_bytes(ICRC, "little")


def ethernet_header(ends: Ends) -> bytes:
    """Return an Ethernet header that announces IPv4."""
    macs = ends.destination_mac.to_bytes(6, "big") + ends.source_mac.to_bytes(6, "big")
    return macs + ETHERTYPE_IPV4.to_bytes(2, "big")


def ipv4_header(
    source: int, destination: int, protocol: int, payload_bytes: int, ecn: int
) -> bytes:
    """Return an IPv4 header without options, checksum included."""
    fields = (0x45, ecn, IPV4 + payload_bytes, 0, _DONT_FRAGMENT, _TTL, protocol)
    blank = struct.pack(_IPV4_FORMAT, *fields, 0, source, destination)
    return struct.pack(_IPV4_FORMAT, *fields, internet_checksum(blank), source, destination)


def internet_checksum(header: bytes) -> int:
    """Return the ones' complement of the ones' complement sum of 16-bit words (RFC 1071)."""
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)

    return total ^ 0xFFFF


def wrap(frame: bytes, source_ip: int, destination_ip: int) -> bytes:
    """Return the frame inside IP-in-IP towards a waypoint.

    ECN is copied to the outer header (RFC 6040).
    """
    inner = frame[ETHERNET:]
    return (
        frame[:ETHERNET]
        + ipv4_header(
            source_ip,
            destination=destination_ip,
            protocol=IPIP_PROTOCOL,
            payload_bytes=len(inner),
            ecn=inner[1] & CE,
        )
        + inner
    )


def bitmap_bytes(sacked: int) -> bytes:
    """Return a bitmap, least significant bit first, in the fewest 32-bit words that hold it (1,024
    bits at most).
    """
    words = -(-sacked.bit_length() // 32)
    if words * 32 > MAX_SACK_BITS:
        raise ValueError(
            f"a SACK bitmap has at most {MAX_SACK_BITS} bits, not {sacked.bit_length()}"
        )

    return sacked.to_bytes(words * 4, "little")


def parse(frame: bytes) -> Packet | None:
    """Return what a frame says, or None where it is no data packet or ACK of ours.

    Looks through IP-in-IP.
    """
    at = _ip_offset(frame)
    if at is None or len(frame) < at + OVERHEAD - ETHERNET:
        return None

    first, tos, total, _, fragment, _, protocol, _, source, destination = struct.unpack_from(
        _IPV4_FORMAT, frame, at
    )
    label, port, udp_bytes, _, opcode, _, _, queue_pair, psn = struct.unpack_from(
        _TRANSPORT_FORMAT, frame, at + IPV4
    )
    is_roce = (
        first == 0x45 and protocol == UDP_PROTOCOL and port == ROCE_PORT and not fragment & 0x3FFF
    )

    if (
        not is_roce
        or total != IPV4 + udp_bytes
        or not OVERHEAD - ETHERNET <= total <= len(frame) - at
    ):
        return None

    flow = queue_pair & _PSN_MASK
    psn = psn & _PSN_MASK
    if opcode == SEND_ONLY:
        return Packet(
            False,
            flow,
            psn,
            label=label,
            marked=tos & CE == CE,
            source_ip=source,
            destination_ip=destination,
        )

    body = frame[at + IPV4 + UDP + BTH : at + total - ICRC]
    if opcode != ACKNOWLEDGE or not AETH <= len(body) <= AETH + MAX_SACK_BITS // 8:
        return None

    sacked = int.from_bytes(body[AETH:], "little")
    return Packet(
        True,
        flow,
        psn,
        label=label,
        marked=bool(queue_pair & _BECN),
        source_ip=source,
        destination_ip=destination,
        msn=_msn(body),
        sacked=sacked,
    )


def _msn(body: bytes) -> int:
    return int.from_bytes(body[:AETH], "big") & _PSN_MASK


def _ip_offset(frame: bytes) -> int | None:
    """Return where the innermost IPv4 header starts, None where the frame carries no IPv4."""
    if len(frame) < ETHERNET + IPV4 or frame[12:ETHERNET] != b"\x08\x00":
        return None

    return _UDP_AT if frame[_IP_AT] == 0x45 and frame[_IP_AT + 9] == IPIP_PROTOCOL else _IP_AT


def is_intact(frame: bytes) -> bool:
    """Return whether the ICRC of a frame that `parse` accepts fits its bytes."""
    at = _ip_offset(frame)
    if at is None:
        return False

    end = at + int.from_bytes(frame[at + 2 : at + 4], "big") - ICRC
    transport = bytearray(frame[at + IPV4 : at + IPV4 + UDP + BTH])
    transport[6:8] = b"\xff\xff"
    transport[UDP + 4] = 0xFF
    crc = crc32(transport, crc32(_invariant_ip(frame[at : at + IPV4])))

    return (
        crc32(frame[at + IPV4 + UDP + BTH : end], crc).to_bytes(ICRC, "little")
        == frame[end : end + ICRC]
    )


def _invariant_ip(header: bytes) -> bytes:
    """Return what the ICRC sees of an IPv4 header: what routers change (TOS, TTL, checksum) reads
    as ones.
    """
    return (
        b"\xff" * 8
        + header[:1]
        + b"\xff"
        + header[2:8]
        + b"\xff"
        + header[9:10]
        + b"\xff\xff"
        + header[12:]
    )


def unwrapped_psn(psn: int, near: int) -> int:
    """Return the full packet number whose low 24 bits are `psn` and that is closest to `near`."""
    half = 1 << (PSN_BITS - 1)
    return max(near + ((psn - near + half) & _PSN_MASK) - half, psn)
