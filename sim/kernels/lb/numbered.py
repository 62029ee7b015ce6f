"""Themis: a packet's number and its flow's hash pick the slot; switches remember nothing."""

from fattree.shape.topology import Tier
from sim.kernels.jit import at, inlined
from sim.kernels.lb.schedules import schedule

EDGE = int(Tier.EDGE)


@inlined
def uplink(world, routes, switch, group, packet):
    """Return the uplink of the slot that a packet's place in its flow falls on."""
    first, length = schedule(routes, switch, group)
    # 24 bits, as many as a packet number has on the wire.
    turn = ((int(packet.hash) >> 8) + int(packet.psn)) & 0xFFFFFF

    # A path is a number of two digits. The edge looks at the lower digit; an agg at the upper, as
    # all packets of a flow that it gets have the same lower digit.
    if world.switches[at(switch)].tier != EDGE:
        turn //= world.constants.edge_uplinks

    return int(routes.slots[at(first + turn % length)])
