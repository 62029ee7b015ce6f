"""The worst overload of a link of each stage: its bytes over those of an even split (section 7)."""

import numpy as np
from numpy.typing import NDArray

from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from reproduction.report.figure import Measured
from sim.runs.engine import run
from sim.runs.layers import by_layer

# Inter-switch layers; an edge's link to a host carries all packets to the host, however they came.
STAGES = ("E>A", "A>C", "C>A", "A>E")


def worst_overload(scenario: Scenario) -> Measured:
    """Return `overload`: for each of STAGES the most above its share that a link has, in shares.

    `overload` is in bytes, `overload_packets` in packets, ACKs among them.

    The share is an even split of the load that its edge or pod really sent (uplinks) or received
    (downlinks): hosts behind long queues send more than the message before they know that it is
    complete, which is not a load balancer's doing.
    """
    result = run(scenario)

    return Measured.of(
        result.record,
        overload=_worst(scenario.tree, result.ports.bytes),
        overload_packets=_worst(scenario.tree, result.ports.packets),
    )


def _worst(tree: FatTree, loads: NDArray[np.int64]) -> list[float]:
    groups = by_owner(tree, loads)
    return [float((group.max(axis=1) / group.mean(axis=1)).max() - 1) for group in groups]


def by_owner(tree: FatTree, loads: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return each stage's loads by the edge or pod that they leave or enter, (owners, links)."""
    # The load that leaves and enters an edge or pod is the matrix's; load balancing divides it
    # among these links. Cores' ports are in the order of pods: columns are the load into a pod.
    up_edge, up_agg, down_core, down_agg, _ = by_layer(tree, loads)
    into_edge = down_agg.reshape(tree.pods, tree.aggs_per_pod, tree.edges_per_pod).swapaxes(1, 2)
    return (
        up_edge,
        up_agg.reshape(tree.pods, -1),
        down_core.T,
        into_edge.reshape(tree.edges, tree.aggs_per_pod),
    )
