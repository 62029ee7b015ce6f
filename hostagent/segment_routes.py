"""MRC over SRv6 at a host: the path that a packet's label names, in an IPv6 header in front.

Paths never change: a value with lost packets is retired (`hostagent.transports.mrc`).
"""

import struct
from ipaddress import IPv6Address

from fattree.routes.failures import Links
from fattree.routes.slow_links import NOT_SLOW, Slow
from fattree.shape.addressing import host_ip
from fattree.shape.segments import BLOCK, address, way
from fattree.shape.topology import FatTree
from hostagent.transports.roce import CE, ETHERNET, ETHERTYPE_IPV4, IPIP_PROTOCOL

ETHERTYPE_IPV6 = 0x86DD
IPV6_VERSION = 6
IPV6 = 40
HOP_LIMIT = 64


class SegmentRoutes:
    """The paths of one host."""

    def __init__(self, tree: FatTree, host: int) -> None:
        self._tree = tree
        self._host = host
        self._source = BLOCK << 96 | int(host_ip(tree, host))

    def converge(self, _failed: Links, _slow: Slow = NOT_SLOW) -> None:
        """Change nothing: paths are static."""

    def routed(self, frame: bytes, peer: int, label: int) -> bytes:
        """Return a frame towards a host inside IPv6, or as it is where both share an edge.

        ECN is copied to the outer header (RFC 6040). Its flow label is 0: nothing is hashed.
        """
        segments = way(self._tree, self._host, peer, label)
        if not segments:
            return frame

        ecn = frame[ETHERNET + 1] & CE
        outer = struct.pack(
            ">HIHBB16s16s",
            ETHERTYPE_IPV6,
            IPV6_VERSION << 28 | ecn << 20,
            len(frame) - ETHERNET,
            IPIP_PROTOCOL,
            HOP_LIMIT,
            self._source.to_bytes(16, "big"),
            address(segments).to_bytes(16, "big"),
        )
        return frame[: ETHERNET - 2] + outer + frame[ETHERNET:]


def is_marked(frame: bytes, ecn_at: int) -> bool:
    """Return whether the outermost IP header of a frame has ECN's mark, in its second byte."""
    # In IPv6 it stands half a byte further to the front.
    shift = 4 if frame[ecn_at - 1] >> 4 == IPV6_VERSION else 0
    return frame[ecn_at] >> shift & CE == CE


def unwrapped(frame: bytes) -> tuple[bytes, str]:
    """Return a frame without IPv6 in front, and the address with its way, "" without IPv6."""
    kind = ETHERTYPE_IPV6.to_bytes(2, "big")
    is_wrapped = frame[12:ETHERNET] == kind and frame[20:21] == bytes([IPIP_PROTOCOL])
    if not is_wrapped or len(frame) < ETHERNET + IPV6:
        return frame, ""

    inside = ETHERNET + IPV6
    plain = frame[:12] + ETHERTYPE_IPV4.to_bytes(2, "big") + frame[inside:]
    return plain, IPv6Address(frame[inside - 16 : inside]).compressed
