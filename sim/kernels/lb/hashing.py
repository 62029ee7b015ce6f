"""ECMP: the hash of the five-tuple, times an odd number of the switch, picks the slot.

A salt inside the CRC would not do: CRCs are linear, so the choices of two switches would differ by
a constant, and most paths would never be used (design, decision 12).
"""

from sim.kernels.jit import at, inlined
from sim.kernels.lb.schedules import schedule


@inlined
def uplink(world, routes, switch, group, packet):
    """Return the uplink of the slot that a packet's hash falls on."""
    first, length = schedule(routes, switch, group)
    # The upper half of the product, scaled to the length: its lower bits depend on fewer of the
    # hash's bits, and P4 has no modulo at run time.
    scaled = product(int(packet.hash), world.switches[at(switch)].multiplier)
    return int(routes.slots[at(first + (((scaled >> 16) * length) >> 16))])


@inlined
def product(left, right):
    """Return the product of two 32-bit numbers modulo 2**32, without passing 2**63."""
    # In two halves: integers are signed and have 64 bits in kernels.
    return (left * (right & 0xFFFF) + ((left * (right >> 16) & 0xFFFF) << 16)) & 0xFFFFFFFF


@inlined
def label_hash(low, high, label):
    """Return the XOR of a label's CRC and that of label 0, in a five-tuple (CRCs are affine)."""
    # A table a byte: 512 entries, which stay in the cache, instead of 65,536.
    return low[at(label & 0xFF)] ^ high[at(label >> 8)]
