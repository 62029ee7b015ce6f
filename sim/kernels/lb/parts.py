"""PRIME: each tier takes the slot that its own part of the label names."""

import numpy as np

from fattree.shape.topology import Tier
from sim.kernels.jit import at, inlined
from sim.kernels.lb.schedules import schedule

EDGE = int(Tier.EDGE)


@inlined
def uplink(world, routes, switch, group, packet):
    """Return the uplink of the slot that this tier's byte of the label names."""
    first, length = schedule(routes, switch, group)
    # Signed: where a shift stays unsigned and a mask does not, numba takes a float for both.
    label = np.int64(packet.label)
    part = label & 0xFF if world.switches[at(switch)].tier == EDGE else label >> 8

    return int(routes.slots[at(first + part % length)])
