"""Packets of hosts: Scapy builds a flow's first frame, all later frames are patches of it.

ACKs likewise. Patches change label, packet number, mark, MSN and bitmap, the lengths and the
checksum that the bitmap changes, and the ICRC. `hostagent.transports.roce` has the bytes' meaning.
"""

import struct
from functools import cache
from typing import NamedTuple

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import NoPayload, Packet, Raw

from fattree.shape.addressing import colons, dotted
from hostagent.form_search import found, requests
from hostagent.forms import BITS, DATA, VARYING, Built, Forms, Request
from hostagent.transports import roce
from hostagent.transports.roce import (
    ACK_REQUEST,
    ACK_SYNDROME,
    ACKNOWLEDGE,
    BECN,
    CE,
    ECT,
    ETHERNET,
    ETHERTYPE_IPV4,
    ICRC,
    IPIP_PROTOCOL,
    IPV4,
    MAX_TOLD_BYTES,
    NAK_SYNDROME,
    PSN_MASK,
    ROCE_PORT,
    SEND_ONLY,
    UDP_PROTOCOL,
)

_IP_AT = ETHERNET
_LABEL_AT = _IP_AT + IPV4
_UDP_LENGTH_AT = _LABEL_AT + 4
_BTH_AT = _LABEL_AT + roce.UDP

# The BTH's second and third word: (FECN, BECN, reserved, destination QP), (ACK request, PSN).
_QUEUE_PAIR_AT = _BTH_AT + 4
_PSN_AT = _QUEUE_PAIR_AT + 4
_PARTITION_AT = _BTH_AT + 2
_AETH_AT = _BTH_AT + roce.BTH


class Ends(NamedTuple):
    """The addresses of a packet's source and destination.

    MAC and IPv4 addresses are integers (`shape.addressing`).
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
    # for the 16,256 flows of an all-to-all of k = 8 and their ACKs. Layers are filled before a run
    # begins, as on Mininet that would delay the first packets.

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
    """The data packets of one flow in one run: full ones carry `payload_bytes` zero bytes."""

    __slots__ = ("_frame",)

    def __init__(self, ends: Ends, flow: int, payload_bytes: int, run: int = 0) -> None:
        self._frame = _data_layers(payload_bytes).frame(ends, flow, run)

    def frame(self, label: int, psn: int, asks: bool = True, less: int = 0) -> bytes:
        """Return the frame of a packet number (taken modulo 2**24) that may ask for an ACK.

        Its payload is `less` bytes shorter than a full packet's.
        """
        frame = _with_length(self._frame, b"", less) if less else self._frame
        struct.pack_into(">H", frame, _LABEL_AT, label)
        struct.pack_into(">I", frame, _PSN_AT, (ACK_REQUEST if asks else 0) | psn & PSN_MASK)

        return _sealed(frame)


class AckFrames:
    """The ACKs of one flow in one run; in `ends` the receiver is the source."""

    __slots__ = ("_flow", "_frame")

    def __init__(self, ends: Ends, flow: int, run: int = 0) -> None:
        self._flow = flow
        self._frame = _ack_layers().frame(ends, flow, run)

    def frame(
        self, label: int, psn: int, marked: bool, msn: int, sacked: int = 0, trimmed: bool = False
    ) -> bytes:
        """Return the ACK of a data packet: echoes its label, number and mark.

        A `trimmed` packet has a NACK. See `roce.Packet` for `msn` and `sacked`.
        """
        frame = self._frame
        if sacked:
            frame = _with_length(frame, bitmap_bytes(sacked), 0)

        queue_pair = self._flow | (BECN if marked else 0)
        aeth = (NAK_SYNDROME if trimmed else ACK_SYNDROME) << 24 | msn & PSN_MASK
        struct.pack_into(">H", frame, _LABEL_AT, label)
        struct.pack_into(">III", frame, _QUEUE_PAIR_AT, queue_pair, psn & PSN_MASK, aeth)

        return _sealed(frame)


class Packets:
    """Writer and reader of RoCEv2 packets."""

    def __init__(self, payload_bytes: int) -> None:
        self._payload_bytes = payload_bytes

    @property
    def forms(self) -> Forms:
        """Return the forms of the frames."""
        return _forms(self._payload_bytes)

    def data(self, ends: Ends, flow: int, run: int = 0) -> DataFrames:
        """Return the writer of a flow's data packets."""
        return DataFrames(ends, flow, self._payload_bytes, run)

    def ack(self, ends: Ends, flow: int, run: int = 0) -> AckFrames:
        """Return the writer of a flow's ACKs."""
        return AckFrames(ends, flow, run)

    def wrap(self, frame: bytes, source_ip: int, destination_ip: int) -> bytes:
        """Return the frame inside IP-in-IP towards a waypoint."""
        return wrap(frame, source_ip, destination_ip)

    def parse(self, frame: bytes) -> roce.Packet | None:
        """Return the packet of a frame, None where it is no data packet or ACK of ours."""
        return roce.parse(frame)


@cache
def _forms(payload_bytes: int) -> Forms:
    """Return the forms of the frames that Scapy builds here."""

    def built(request: Request) -> Built:
        values = {**dict.fromkeys(BITS, 0), **request.values}
        ends = Ends(*(values[field] for field in Ends._fields))
        label, psn, msn, marked = (values[field] for field in VARYING)
        if request.kind == DATA:
            data = DataFrames(ends, values["number"], payload_bytes)
            frame = data.frame(label, psn, less=request.less)
        else:
            sacked = int.from_bytes(request.bitmap, "little")
            writer = AckFrames(ends, values["number"])
            frame = writer.frame(label, psn, bool(marked), msn, sacked)

        # Not every key belongs to a run.
        keyed = bytearray(frame)
        struct.pack_into(">H", keyed, _PARTITION_AT, values["partition_key"])
        return Built(bytes(keyed), _BTH_AT)

    return found([built(request) for request in requests()], "hostagent.packets")


def _sealed(frame: bytearray) -> bytes:
    """Write the ICRC at a frame's end; return a copy, as the next packet patches the same bytes."""
    end = len(frame) - ICRC
    frame[end:] = roce.icrc(frame, _IP_AT, end)

    return bytes(frame)


def _with_length(plain: bytearray, bitmap: bytes, less: int) -> bytearray:
    """Return a frame with a bitmap in front of its ICRC, or with `less` bytes less there."""
    frame = plain[: len(plain) - ICRC - less] + bitmap + bytes(ICRC)
    more_bytes = len(bitmap) - less
    (udp_bytes,) = struct.unpack_from(">H", frame, _UDP_LENGTH_AT)
    struct.pack_into(">H", frame, _UDP_LENGTH_AT, udp_bytes + more_bytes)
    _change_ipv4(frame, _IP_AT, more_bytes)

    return frame


def _change_ipv4(frame: bytearray, ip_at: int, more_bytes: int, ecn: int = 0) -> None:
    """Change an IPv4 packet's length, and give the packet an ECN codepoint if it had none.

    The checksum follows by RFC 1624: its complement is the header's ones' complement sum, which
    grows as much as the words do. The sum of a header that is not all 0 is from 1 to 2**16 - 1.
    """
    total, checksum = struct.unpack_from(">H6xH", frame, ip_at + 2)
    grown = ((checksum ^ 0xFFFF) + more_bytes + ecn - 1) % 0xFFFF + 1

    frame[ip_at + 1] |= ecn
    struct.pack_into(">H", frame, ip_at + 2, total + more_bytes)
    struct.pack_into(">H", frame, ip_at + 10, grown ^ 0xFFFF)


def bitmap_bytes(sacked: int) -> bytes:
    """Return a bitmap, least significant bit first, in as few 32-bit words as hold it.

    With the share in front of the bitmap, where receivers send shares.
    """
    word_count = -(-sacked.bit_length() // 32)
    if word_count * 4 > MAX_TOLD_BYTES:
        raise ValueError(
            f"an ACK tells at most {MAX_TOLD_BYTES * 8} bits, not {sacked.bit_length()}"
        )

    return sacked.to_bytes(word_count * 4, "little")


def wrap(frame: bytes, source_ip: int, destination_ip: int, ip_at: int = _IP_AT) -> bytes:
    """Return a frame, with IPv4 from `ip_at` on, inside IP-in-IP to a waypoint (RFC 2003).

    ECN is copied to the outer header (RFC 6040, normal mode).
    """
    outer = bytearray(_tunnel_header(source_ip, destination_ip))
    _change_ipv4(outer, 0, more_bytes=len(frame) - ip_at, ecn=frame[ip_at + 1] & CE)

    return frame[:ip_at] + outer + frame[ip_at:]


@cache
def _tunnel_header(source_ip: int, destination_ip: int) -> bytes:
    """Return the outer header of an empty tunnel; a host has some (k / 2)**2 waypoints."""
    header = _ipv4(IPIP_PROTOCOL)
    header.src = dotted(source_ip)
    header.dst = dotted(destination_ip)

    return _built(header)
