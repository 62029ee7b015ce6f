"""The packets that hosts send: Scapy builds a flow's first frame, all others are patches of it.

The same holds for its ACKs. What is patched: label, packet number, mark, MSN and bitmap, the
lengths and the checksum that the bitmap changes, and the ICRC. `hostagent.roce` says what the bytes
mean.
"""

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import NoPayload, Packet, Raw

from fattree.addressing import colons, dotted
from hostagent import roce
from hostagent.roce import (
    ACKNOWLEDGE,
    BECN,
    CE,
    ECT,
    ETHERNET,
    ETHERTYPE_IPV4,
    ICRC,
    IPIP_PROTOCOL,
    IPV4,
    MAX_SACK_BITS,
    PSN_MASK,
    ROCE_PORT,
    SEND_ONLY,
    UDP_PROTOCOL,
)

_ACK_REQUEST = 1 << 31
_IP_AT = ETHERNET
_LABEL_AT = _IP_AT + IPV4
_UDP_LENGTH_AT = _LABEL_AT + 4
_BTH_AT = _LABEL_AT + roce.UDP

# The BTH's second and third word: (FECN, BECN, reserved, destination QP), (ACK request, PSN).
_QUEUE_PAIR_AT = _BTH_AT + 4
_PSN_AT = _QUEUE_PAIR_AT + 4
_AETH_AT = _BTH_AT + roce.BTH


class Ends(NamedTuple):
    """Where a packet comes from and goes to.

    MAC and IPv4 addresses are integers (`fattree.addressing`).
    """

    source_mac: int
    destination_mac: int
    source_ip: int
    destination_ip: int


class _Layers:
    """Scapy's layers of one kind of packet; a flow fills in its addresses and number.

    Label, PSN and ICRC are 0.
    """

    # Made once and filled anew: 80 us a flow. New layers for each, joined by `/`, take 800 us: 26 s
    # for the 16,256 flows of an all-to-all of k = 8 and their ACKs. It happens before a run begins,
    # as on Mininet it would delay the first packets.

    def __init__(self, opcode: int, ecn: int, ack_request: int, body: Packet) -> None:
        self._ethernet = Ether(type=ETHERTYPE_IPV4)
        self._ip = _ipv4(UDP_PROTOCOL, ecn)
        self._bth = BTH(opcode=opcode, ackreq=ack_request, icrc=0)

        # UDP checksum 0, "none": RoCEv2 has the ICRC instead.
        udp = UDP(sport=0, dport=ROCE_PORT, chksum=0)
        for lower, upper in (
            (self._ethernet, self._ip),
            (self._ip, udp),
            (udp, self._bth),
            (self._bth, body),
        ):
            lower.add_payload(upper)

    def frame(self, ends: Ends, flow: int, run: int) -> bytearray:
        """Return the frame that a flow's packets start from."""
        self._ethernet.src = colons(ends.source_mac)
        self._ethernet.dst = colons(ends.destination_mac)
        self._ip.src = dotted(ends.source_ip)
        self._ip.dst = dotted(ends.destination_ip)
        self._bth.dqpn = flow
        self._bth.pkey = roce.partition_key(run)

        return bytearray(_built(self._ethernet))


@cache
def _data_layers(payload_bytes: int) -> _Layers:
    return _Layers(SEND_ONLY, ecn=ECT, ack_request=1, body=Raw(bytes(payload_bytes)))


@cache
def _ack_layers() -> _Layers:
    # Not ECN-capable: switches never mark ACKs (design, decision 1).
    return _Layers(ACKNOWLEDGE, ecn=0, ack_request=0, body=AETH())


def _ipv4(protocol: int, ecn: int = 0) -> Packet:
    """Return an IPv4 layer; Scapy adds length and checksum.

    The identification is 0, as RFC 6864 allows for packets that are never fragmented.
    """
    return IP(id=0, flags="DF", ttl=64, tos=ecn, proto=protocol)


def _built(packet: Packet) -> bytes:
    """Return a packet's bytes."""
    # After any assignment Scapy takes a layer for a set of packets (a field may be a range), and
    # copies the first of them, layer by layer. An `explicit` layer is a single packet.
    layer = packet
    while not isinstance(layer, NoPayload):
        layer.explicit = 1
        layer = layer.payload

    return bytes(packet)


class DataFrames:
    """The data packets of one flow in one run; each carries `payload_bytes` zero bytes."""

    __slots__ = ("_frame",)

    def __init__(self, ends: Ends, flow: int, payload_bytes: int, run: int = 0) -> None:
        self._frame = _data_layers(payload_bytes).frame(ends, flow, run)

    def frame(self, label: int, psn: int) -> bytes:
        """Return the frame of a packet number (taken modulo 2**24) that asks for an ACK."""
        frame = self._frame
        struct.pack_into(">H", frame, _LABEL_AT, label)
        struct.pack_into(">I", frame, _PSN_AT, _ACK_REQUEST | psn & PSN_MASK)

        return _sealed(frame)


class AckFrames:
    """The ACKs of one flow in one run; `ends` are the receiver's point of view."""

    __slots__ = ("_flow", "_frame")

    def __init__(self, ends: Ends, flow: int, run: int = 0) -> None:
        self._flow = flow
        self._frame = _ack_layers().frame(ends, flow, run)

    def frame(self, label: int, psn: int, marked: bool, msn: int, sacked: int = 0) -> bytes:
        """Return the ACK of a data packet: echoes its label, number and mark.

        See `roce.Packet` for `msn` and `sacked`.
        """
        frame = self._frame
        if sacked:
            frame = _lengthened(frame, bitmap_bytes(sacked))

        queue_pair = self._flow | (BECN if marked else 0)
        struct.pack_into(">H", frame, _LABEL_AT, label)
        struct.pack_into(">III", frame, _QUEUE_PAIR_AT, queue_pair, psn & PSN_MASK, msn & PSN_MASK)

        return _sealed(frame)


class Beginnings(NamedTuple):
    """The first bytes of many flows' frames, (flows, 2, bytes): data, ACK; and whole lengths.

    Label, PSN, MSN are 0; the ICRC is left out.
    """

    frames: NDArray[np.uint8]
    data_length: int
    ack_length: int


def beginnings(ends: Sequence[NDArray[np.int64]], payload_bytes: int, size: int) -> Beginnings:
    """Return the first `size` bytes of all flows' frames; `ends` are arrays in `Ends`' order.

    Flows are numbered from 0. Scapy builds one flow's frames, from which the others differ in
    their addresses, number and IPv4 checksum alone.
    """
    first = Ends(*(int(column[0]) for column in ends))
    back = (1, 0, 3, 2)
    plain = (
        (DataFrames(first, 0, payload_bytes).frame(0, 0), ends),
        (
            AckFrames(Ends(*(first[i] for i in back)), 0).frame(0, 0, False, 0),
            [ends[i] for i in back],
        ),
    )
    found = np.zeros((len(ends[0]), 2, size), dtype=np.uint8)
    for kind, (frame, columns) in enumerate(plain):
        known = np.frombuffer(frame[:-ICRC][:size], dtype=np.uint8)
        rows = found[:, kind]
        rows[:, : len(known)] = known
        source_mac, destination_mac, source_ip, destination_ip = columns
        _place(rows, 0, destination_mac, 6)
        _place(rows, 6, source_mac, 6)
        _place(rows, _IP_AT + 12, source_ip, 4)
        _place(rows, _IP_AT + 16, destination_ip, 4)
        _place(rows, _QUEUE_PAIR_AT + 1, np.arange(len(rows)), 3)

        # RFC 791: the complement of the ones' complement sum of all words but the checksum itself.
        words = rows[:, _IP_AT:_LABEL_AT].astype(np.int64).reshape(len(rows), -1, 2)
        total = (words[:, :, 0] << 8 | words[:, :, 1]).sum(axis=1)
        total -= words[:, 5, 0] << 8 | words[:, 5, 1]
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        _place(rows, _IP_AT + 10, total ^ 0xFFFF, 2)

    return Beginnings(found, len(plain[0][0]), len(plain[1][0]))


def _place(rows: NDArray[np.uint8], at: int, values: NDArray[np.int64], count: int) -> None:
    """Write numbers of `count` bytes, the most significant first, into all rows."""
    for byte in range(count):
        rows[:, at + byte] = values >> 8 * (count - 1 - byte) & 0xFF


def _sealed(frame: bytearray) -> bytes:
    """Write the ICRC at a frame's end; return a copy, as the next packet patches the same bytes."""
    end = len(frame) - ICRC
    frame[end:] = roce.icrc(frame, _IP_AT, end)

    return bytes(frame)


def _lengthened(ack: bytearray, bitmap: bytes) -> bytearray:
    """Return a flow's plain ACK with a bitmap between AETH and ICRC."""
    frame = ack[:-ICRC] + bitmap + bytes(ICRC)
    (udp_bytes,) = struct.unpack_from(">H", frame, _UDP_LENGTH_AT)
    struct.pack_into(">H", frame, _UDP_LENGTH_AT, udp_bytes + len(bitmap))
    _change_ipv4(frame, _IP_AT, more_bytes=len(bitmap))

    return frame


def _change_ipv4(frame: bytearray, at: int, more_bytes: int, ecn: int = 0) -> None:
    """Lengthen an IPv4 packet and give it an ECN codepoint, where it has had none.

    The checksum follows by RFC 1624: its complement is the header's ones' complement sum, which
    grows by what the words have grown by. No sum here passes 2**17 - 2, so one end-around carry is
    enough.
    """
    total, checksum = struct.unpack_from(">H6xH", frame, at + 2)
    grown = (checksum ^ 0xFFFF) + more_bytes + ecn
    grown = (grown & 0xFFFF) + (grown >> 16)

    frame[at + 1] |= ecn
    struct.pack_into(">H", frame, at + 2, total + more_bytes)
    struct.pack_into(">H", frame, at + 10, grown ^ 0xFFFF)


def bitmap_bytes(sacked: int) -> bytes:
    """Return a bitmap, least significant bit first, in as few 32-bit words as hold it."""
    words = -(-sacked.bit_length() // 32)
    if words * 32 > MAX_SACK_BITS:
        raise ValueError(
            f"a SACK bitmap has at most {MAX_SACK_BITS} bits, not {sacked.bit_length()}"
        )

    return sacked.to_bytes(words * 4, "little")


def wrap(frame: bytes, source_ip: int, destination_ip: int) -> bytes:
    """Return the frame inside IP-in-IP towards a waypoint (RFC 2003).

    ECN is copied to the outer header (RFC 6040, normal mode).
    """
    outer = bytearray(_tunnel_header(source_ip, destination_ip))
    _change_ipv4(outer, 0, more_bytes=len(frame) - ETHERNET, ecn=frame[_IP_AT + 1] & CE)

    return frame[:ETHERNET] + outer + frame[ETHERNET:]


@cache
def _tunnel_header(source_ip: int, destination_ip: int) -> bytes:
    """Return the outer header of an empty tunnel; a host has some (k / 2)**2 waypoints."""
    header = _ipv4(IPIP_PROTOCOL)
    header.src = dotted(source_ip)
    header.dst = dotted(destination_ip)

    return _built(header)
