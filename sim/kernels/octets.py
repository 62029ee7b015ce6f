"""Headers as bytes: 16 bits at a time, IPv4's checksum, and ECN's mark."""

import numpy as np

from sim.kernels.jit import at, inlined

# Constants of IPv4: other headers are known by their forms alone.
IPV4 = 20
CHECKSUM_AT = 10
CE = 3
# Of the first byte, where IPv6 has 6 and IPv4 has 0x45.
IPV6_BIT = 0x20


@inlined
def write_16(octets, where, number):
    """Write 16 bits, the most significant first."""
    octets[at(where)] = (number >> 8) & 0xFF
    octets[at(where + 1)] = number & 0xFF


@inlined
def read_16(octets, where):
    """Read 16 bits, the most significant first."""
    return (np.int64(octets[at(where)]) << 8) | np.int64(octets[at(where + 1)])


@inlined
def write_checksum(octets, ip):
    """Write an IPv4 header's checksum (RFC 791)."""
    total = np.int64(0)
    for word in range(0, IPV4, 2):
        total += 0 if word == CHECKSUM_AT else read_16(octets, ip + word)

    write_16(octets, ip + CHECKSUM_AT, 0xFFFF ^ carried(total))


@inlined
def carried(total):
    """Return a ones' complement sum in 16 bits."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)

    return total


@inlined
def is_marked_at(octets, ip):
    """Return whether an IPv4 or IPv6 header has ECN's mark."""
    # In IPv6 it stands half a byte further to the front.
    shift = (octets[at(ip)] & IPV6_BIT) >> 3
    return (octets[at(ip + 1)] >> shift) & CE == CE
