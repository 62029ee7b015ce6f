"""RoCEv2 on the wire: the bytes' meaning, their ICRC, and a parser that never raises.

Ethernet / IPv4 (ECN) / UDP 4791 (source port = flow label) / BTH (destination QP = flow id, PSN) /
payload / ICRC

An ACK has the AETH in place of the payload and behind it, where receivers send it, the number of
flows that share their link (32 bits, least significant byte first), and with SACK a bitmap. A NACK
is an ACK with a NAK's syndrome; it answers a data packet that a switch has cut to its headers, with
the lengths in them unchanged.

The number of the run, by which a host knows packets of an earlier run, is in the BTH's partition
key, which costs no byte and which the ICRC covers. Lengths leave out the Ethernet
FCS. Imports no Scapy, which `sim` may not load: `hostagent.packets` builds the frames.
"""

import struct
from typing import NamedTuple
from zlib import crc32

# The opcodes are a reliable connection's in the InfiniBand Architecture Specification, volume 1:
# its annex A17 is RoCEv2. ECN's codepoints are RFC 3168's.
ROCE_PORT = 4791
SEND_ONLY = 0x04
ACKNOWLEDGE = 0x11
ECT = 0b10
CE = 0b11

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

# Switches know classes by IPv4's total length alone (design, decision 2): a shorter packet is of
# the ACKs' class, the last packet of a message, too.
ACK_BELOW = 256
# 128 bytes: an ACK with the largest bitmap stays under that.
MAX_SACK_BITS = 1024
# In front of the bitmap, where receivers send it: the number of flows that share their link. The
# simulator's records keep it beside numbers of 24 bits: a larger number is sent as the most.
SHARE_BITS = 32
MOST_SHARE = (1 << 14) - 1
# Both of these may follow an ACK's AETH.
MAX_TOLD_BYTES = (MAX_SACK_BITS + SHARE_BITS) // 8
PSN_BITS = 24
PSN_MASK = (1 << PSN_BITS) - 1
BECN = 1 << 30
# The BTH's last word: whether the sender asks for an ACK, above the packet number.
ACK_REQUEST = 1 << 31
# The AETH's syndrome: a plain ACK's, and a NAK's for a packet number that is missing (9.7.5.2.8).
ACK_SYNDROME = 0x00
NAK_SYNDROME = 0x60

# The top bit is "full member"; the default partition stands for run 0, lower keys for later runs.
# The invalid key, 0, is never reached (InfiniBand, volume 1, 10.9).
DEFAULT_PARTITION = 0xFFFF
RUNS = 0x7FFF

_IPV4_FORMAT = ">BBHHHBBHII"
_TRANSPORT_FORMAT = ">HHHHBBHII"
_IP_AT = ETHERNET

# The ICRC begins with a local route header, which RoCEv2 does not have: 64 ones stand for it (A17).
_CRC_OF_ONES = crc32(b"\xff" * 8)


class Packet(NamedTuple):
    """The fields that a host reads from a frame.

    `marked` is CE on a data packet and BECN on an ACK; `msn` (24 bits) counts the packets received
    (erasure) or is the lowest missing PSN (SACK); bit i of `sacked` is set if PSN msn + i has
    arrived (where receivers send shares, behind SHARE_BITS bits of these). `run` is the number of
    the run, modulo RUNS. `trimmed` is a packet that a switch has cut, or the NACK for it;
    `asks` a data packet that asks for an ACK.
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
    run: int = 0
    trimmed: bool = False
    asks: bool = True


def parse(frame: bytes) -> Packet | None:
    """Return the packet of a frame, None where it is no data packet or ACK of ours.

    Looks through IP-in-IP.
    """
    ip_at = _ip_offset(frame)
    if ip_at is None or len(frame) < ip_at + OVERHEAD - ETHERNET:
        return None

    first, tos, total, _, fragment, _, protocol, _, source, destination = struct.unpack_from(
        _IPV4_FORMAT, frame, ip_at
    )
    label, port, udp_bytes, _, opcode, _, partition, queue_pair, psn = struct.unpack_from(
        _TRANSPORT_FORMAT, frame, ip_at + IPV4
    )
    # 0x45: version 4, no options, so all that follows is at fixed offsets. 0x3FFF: "more fragments"
    # and the fragment's offset; the word's other flag, "do not fragment", may be set.
    is_roce = (
        first == 0x45 and protocol == UDP_PROTOCOL and port == ROCE_PORT and not fragment & 0x3FFF
    )

    # A frame may be longer than its packet (Ethernet pads to 60 bytes), never shorter.
    if (
        not is_roce
        or total != IPV4 + udp_bytes
        or not OVERHEAD - ETHERNET <= total <= len(frame) - ip_at
    ):
        return None

    run = DEFAULT_PARTITION - partition
    if run >= RUNS:
        return None

    flow = queue_pair & PSN_MASK
    asks = bool(psn & ACK_REQUEST)
    psn = psn & PSN_MASK
    if opcode == SEND_ONLY:
        return Packet(
            False,
            flow,
            psn,
            label=label,
            marked=tos & CE == CE,
            source_ip=source,
            destination_ip=destination,
            run=run,
            asks=asks,
        )

    body = frame[ip_at + IPV4 + UDP + BTH : ip_at + total - ICRC]
    if opcode != ACKNOWLEDGE or not AETH <= len(body) <= AETH + MAX_TOLD_BYTES:
        return None

    # The AETH is a syndrome byte and the MSN.
    return Packet(
        True,
        flow,
        psn,
        label=label,
        marked=bool(queue_pair & BECN),
        source_ip=source,
        destination_ip=destination,
        run=run,
        msn=int.from_bytes(body[:AETH], "big") & PSN_MASK,
        sacked=int.from_bytes(body[AETH:], "little"),
        trimmed=body[0] == NAK_SYNDROME,
    )


def parse_trimmed(frame: bytes) -> Packet | None:
    """Return the data packet that a switch has cut, None for any other frame."""
    ip_at = _ip_offset(frame)
    missing = (
        int.from_bytes(frame[ip_at + 2 : ip_at + 4], "big") - (len(frame) - ip_at) if ip_at else 0
    )
    if missing <= 0:
        return None

    # With zeros in place of the cut payload: only headers are read.
    packet = parse(frame + bytes(missing))
    return None if packet is None or packet.is_ack else packet._replace(trimmed=True)


def _ip_offset(frame: bytes) -> int | None:
    """Return where the innermost IPv4 header starts, None where the frame carries no IPv4."""
    if len(frame) < ETHERNET + IPV4 or frame[12:ETHERNET] != b"\x08\x00":
        return None

    # One level of tunnel is all that Host DR makes; in a deeper one `parse` finds no UDP.
    is_tunnel = frame[_IP_AT] == 0x45 and frame[_IP_AT + 9] == IPIP_PROTOCOL
    return _IP_AT + IPV4 if is_tunnel else _IP_AT


def is_intact(frame: bytes) -> bool:
    """Return whether the ICRC of a frame that `parse` accepts fits its bytes."""
    ip_at = _ip_offset(frame)
    if ip_at is None:
        return False

    end = ip_at + int.from_bytes(frame[ip_at + 2 : ip_at + 4], "big") - ICRC
    return icrc(frame, ip_at, end) == frame[end : end + ICRC]


def icrc(frame: bytes | bytearray, ip_at: int, end: int, bth_at: int | None = None) -> bytes:
    """Return the ICRC of the packet from `ip_at`, its IPv4 header, to `end`, its payload's end.

    The BTH follows UDP unless it begins at `bth_at`.
    """
    bth = IPV4 + UDP if bth_at is None else bth_at - ip_at
    body_at = ip_at + bth + BTH
    headers = bytearray(frame[ip_at:body_at])

    # Fields that routers may change are ones, so that the ICRC holds end to end: TOS (with it ECN),
    # TTL and the two checksums, and of the BTH the byte with FECN and BECN (annex A17).
    headers[1] = 0xFF
    headers[8] = 0xFF
    headers[10:12] = b"\xff\xff"
    headers[IPV4 + 6 : IPV4 + 8] = b"\xff\xff"
    headers[bth + 4] = 0xFF

    crc = crc32(memoryview(frame)[body_at:end], crc32(headers, _CRC_OF_ONES))
    return crc.to_bytes(ICRC, "little")


def partition_key(run: int) -> int:
    """Return the partition key of a run's packets; runs count from 0."""
    return DEFAULT_PARTITION - run % RUNS


def unwrapped_psn(psn: int, near: int) -> int:
    """Return the full packet number with low 24 bits `psn` that is closest to `near`.

    A flow has at most some thousand numbers in flight, far below half the circle of 2**24, so the
    closest number is the right number.
    """
    half = 1 << (PSN_BITS - 1)
    return max(near + ((psn - near + half) & PSN_MASK) - half, psn)
