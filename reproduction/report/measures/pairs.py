"""Synchronised pairs of flows on aggregation-edge links, seen at edges' uplinks (appendix C)."""

import numpy as np
from numpy.typing import NDArray

from fattree.experiment.model import Scenario
from reproduction.report.figure import Measured
from sim.arrays.network import build
from sim.kernels.lists import following
from sim.kernels.state import ACK, World
from sim.runs.engine import advanced, run

Int64 = NDArray[np.int64]

# Both in mode 1, when hosts send data only (appendix B): an uplink's wire then holds a dozen
# packets, three rounds at k = 8.
LOOKS_PS = (1_150_000, 2_150_000)
NOT_STUCK = -1


def count_pairs(scenario: Scenario) -> Measured:
    """Return `pairs`, the number of synchronised pairs, and `red`, the flows of red edges."""
    # Stuck is who has all packets on one uplink, and on the same one 24 packets later.
    looks = [stuck_uplinks(scenario, time_ps) for time_ps in LOOKS_PS]
    stuck = np.where(looks[0] == looks[1], looks[0], NOT_STUCK)
    flows = build(scenario).flows
    source = flows.source // scenario.tree.hosts_per_edge
    destination = flows.destination // scenario.tree.hosts_per_edge
    pairs = synchronised_pairs(stuck, destination)
    red = red_flows(source, destination).sum()

    return Measured.of(run(scenario).record, pairs=(pairs,), red=(red,))


def stuck_uplinks(scenario: Scenario, time_ps: int) -> Int64:
    """Return the uplink that holds all of a flow's packets on the way to an agg, or NOT_STUCK."""
    network = build(scenario)
    world = advanced(network, time_ps)
    tree = scenario.tree
    stuck = np.full(len(network.flows), NOT_STUCK)
    seen = np.zeros(len(network.flows), dtype=bool)

    for edge in range(tree.edges):
        first = tree.first_port(edge) + tree.hosts_per_edge
        for uplink in range(tree.edge_uplinks):
            present = data_on_link(world, first + uplink)
            # Seen on an uplink before: the flow uses two, and is stuck to none.
            stuck[present] = np.where(seen[present], NOT_STUCK, uplink)
            seen[present] = True

    return stuck


def data_on_link(world: World, number: int) -> Int64:
    """Return the flows, each once, that have data packets at a port or on its wire."""
    # A link's list holds the packets that wait at the port and are on the wire, in order; ACKs go
    # by their own rule, as a second class, and say nothing about a flow's data.
    link = world.links[number]
    packets = world.pool.packets
    flows = []
    slot = int(link.taken)

    while slot != link.tail:
        if not packets[slot].status & ACK:
            flows.append(int(packets[slot].flow))

        slot = int(following(world.pool, slot))

    return np.unique(np.array(flows, dtype=np.int64))


def synchronised_pairs(stuck: Int64, destination_edge: Int64) -> int:
    """Return how many pairs of flows are stuck to aggs of one position and go to one edge."""
    # A packet that went up through the i-th agg comes down through the i-th of the other pod
    # (appendix C, property 3): two such flows share the link from there to their edge.
    flows = np.flatnonzero(stuck != NOT_STUCK)
    _, sizes = np.unique(
        np.stack([stuck[flows], destination_edge[flows]]), axis=1, return_counts=True
    )
    return int((sizes * (sizes - 1) // 2).sum())


def red_flows(source_edge: Int64, destination_edge: Int64) -> NDArray[np.bool_]:
    """Return which flows begin at a red edge: all its flows leave it, not all to one other edge."""
    red = [
        (destination_edge[source_edge == edge] != edge).all()
        and len(set(destination_edge[source_edge == edge].tolist())) > 1
        for edge in source_edge.tolist()
    ]

    return np.array(red, dtype=bool)
