"""Host DR: the host names a core (or an aggregation switch of its pod) and the switches lead there."""

from fattree.topology import Tier
from sim.jit import inlined

EDGE = int(Tier.EDGE)


@inlined
def uplink(node, packet):
    """Return the uplink towards a packet's waypoint."""
    return int(packet.route_agg) if node.tier == EDGE else int(packet.route_core)
