"""Load balancers in switches: one module per family, with the stems and the words of the P4 programs.

    kernel        chooser                              P4 program
    hashing       HASH                                 ecmp.p4
    round_robin   ROUND_ROBIN, RESHUFFLED              round_robin.p4
    adaptive      BINNED, SHORTEST, RANDOM             adaptive.p4
    rotation      ROTATION, ROTATION_SHORTEST_START    ofan.p4, ofan_jsq_start.p4
    waypoint      WAYPOINT                             host_dr.p4

`uplink` is the only place that dispatches. A group owns a schedule (a sequence of slots, each an uplink); what differs is
how a slot is chosen.
"""

from fabric.policies import Chooser
from sim.jit import inlined
from sim.lb import adaptive, hashing, rotation, round_robin, waypoint

__all__ = ["adaptive", "hashing", "rotation", "round_robin", "uplink", "waypoint"]

HASH, ROUND_ROBIN, RESHUFFLED = int(Chooser.HASH), int(Chooser.ROUND_ROBIN), int(Chooser.RESHUFFLED)
BINNED, SHORTEST, RANDOM = int(Chooser.BINNED), int(Chooser.SHORTEST), int(Chooser.RANDOM)
ROTATION = int(Chooser.ROTATION)


@inlined
def uplink(world, routes, switch, group, packet, kind, now_ps):  # type: ignore[no-untyped-def]
    """Return the uplink that the switch's load balancer chooses for a packet of class `kind` in a local group."""
    chooser = world.constants.chooser
    if chooser == ROTATION:
        return rotation.uplink(world, routes, switch, group, kind)
    if chooser == RANDOM:
        return adaptive.random_uplink(world, routes, switch, group)
    if chooser == HASH:
        return hashing.uplink(world, routes, switch, group, packet)
    if chooser == ROUND_ROBIN:
        return round_robin.uplink(world, routes, switch, group, kind)
    if chooser == RESHUFFLED:
        return round_robin.reshuffled_uplink(world, routes, switch, group)
    if chooser == SHORTEST:
        return adaptive.shortest_uplink(world, routes, switch, group, now_ps)
    if chooser == BINNED:
        return adaptive.binned_uplink(world, routes, switch, group, now_ps)
    return rotation.uplink_from_shortest(world, routes, switch, group, kind, now_ps)
