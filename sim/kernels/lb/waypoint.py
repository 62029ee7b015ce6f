"""Host DR, MRC over SRv6: the host names a core (or an agg of its pod), switches lead there."""

from fattree.shape.topology import Tier
from sim.kernels.jit import inlined
from sim.kernels.state import NOWHERE

EDGE = int(Tier.EDGE)


@inlined
def uplink(node, packet):
    """Return the uplink towards a packet's waypoint, -1 where it has none."""
    if packet.route_agg == NOWHERE:
        return -1

    # Uplinks are numbered as the switches that they lead to: an edge's by the agg's position in the
    # pod, an agg's by the core's index among those of that position. Outside the edge tier only the
    # core is left to choose, so no group, schedule or pointer is read.
    return int(packet.route_agg) if node.tier == EDGE else int(packet.route_core)
