"""Load balancers in switches: one module per family, with the words of the P4 programs.

    kernel        chooser                              P4 program
    hashing       HASH                                 ecmp.p4
    round_robin   ROUND_ROBIN, RESHUFFLED              round_robin.p4
    adaptive      BINNED, SHORTEST, RANDOM             adaptive.p4
    rotation      ROTATION, ROTATION_SHORTEST_START    ofan.p4, ofan_jsq_start.p4
    waypoint      WAYPOINT, SEGMENTS                   host_dr.p4, mrc_srv6.p4
    numbered      NUMBERED                             themis.p4

`uplink` is the only place that dispatches. A group owns a schedule (a sequence of slots, each an
uplink); load balancers differ in how they choose a slot.
"""

from fattree.policies import Chooser
from sim.kernels.jit import inlined
from sim.kernels.lb import adaptive, hashing, numbered, rotation, round_robin, waypoint

__all__ = [
    "adaptive",
    "hashing",
    "numbered",
    "rotation",
    "round_robin",
    "uplink",
    "waypoint",
]

HASH = int(Chooser.HASH)
ROUND_ROBIN = int(Chooser.ROUND_ROBIN)
RESHUFFLED = int(Chooser.RESHUFFLED)
ROTATION = int(Chooser.ROTATION)
ROTATION_SHORTEST_START = int(Chooser.ROTATION_SHORTEST_START)
NUMBERED = int(Chooser.NUMBERED)


@inlined
def uplink(world, routes, switch, group, packet, kind, now_ps):
    """Return the uplink that a switch chooses for a packet of class `kind` in a local group."""
    # Not a table of functions: those could not be merged into the kernel, while these branches are
    # predicted, as a run has one chooser.
    chooser = world.constants.chooser
    if chooser == ROTATION:
        return rotation.uplink(world, routes, switch, group=group, kind=kind)
    if chooser == HASH:
        return hashing.uplink(world, routes, switch, group=group, packet=packet)
    if chooser == NUMBERED:
        return numbered.uplink(world, routes, switch, group=group, packet=packet)
    if chooser == ROUND_ROBIN:
        return round_robin.uplink(world, routes, switch, group=group, kind=kind)
    if chooser == RESHUFFLED:
        return round_robin.reshuffled_uplink(world, routes, switch, group)
    if chooser == ROTATION_SHORTEST_START:
        return rotation.uplink_from_shortest(
            world, routes, switch, group=group, kind=kind, now_ps=now_ps
        )

    return adaptive.uplink(world, routes, switch, group=group, now_ps=now_ps)
