"""What a run costs, roughly, before it has run: for what goes first, and how much is left."""

from fattree.demand.traffic import message_bytes, packet_count, whole_flows
from fattree.errors import FabricError
from fattree.experiment.model import Scenario

# Between pods, as most pairs of hosts are, a packet passes six links and so does its ACK.
HOPS = 12
# What a processor of today does at most: 10 to 40 million of the largest fabrics and the smallest.
MOST_HOPS_PER_SECOND = 40e6


def packet_hops(scenario: Scenario) -> int:
    """Return roughly how many packet-hops a run has; 0 for traffic that cannot be built."""
    try:
        return _packets(scenario) * HOPS
    # The run itself will say what is wrong with it.
    except FabricError:
        return 0


def least_seconds(hops: float) -> float:
    """Return how long one processor works on so many packet-hops at least."""
    return hops / MOST_HOPS_PER_SECOND


def _packets(scenario: Scenario) -> int:
    hosts = scenario.tree.hosts
    flows = {
        "permutation": hosts,
        "inter_pod_permutation": hosts,
        "all_to_all": hosts * (hosts - 1),
        "pairs": len(scenario.collective.pairs),
    }.get(scenario.collective.matrix)

    # Planes share a message, or carry it in turn.
    if flows is None or scenario.is_graph or scenario.fabric.planes:
        return int(whole_flows(scenario).packets.sum())

    return flows * packet_count(scenario, message_bytes(scenario))
