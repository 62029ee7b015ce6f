"""Measure the worst overload of a link of each stage: its bytes, data and ACKs, over those of an
even split.
"""

import numpy as np
from numpy.typing import NDArray

from fattree.experiment import Scenario
from fattree.topology import FatTree
from sim.engine import run
from sim.report.figure import Measured
from sim.results import by_layer

STAGES = ("E>A", "A>C", "C>A", "A>E")


def worst_overload(scenario: Scenario) -> Measured:
    """Run a scenario.

    `overload` is, for each of STAGES, the most that any link carries above its share, as a part of
    the share.

    The share is an even split of what its edge or pod really sent (uplinks) or received
    (downlinks): hosts behind long queues send more than the message before they know that it is
    complete, which is not a load balancer's doing.
    """
    result = run(scenario)
    groups = by_owner(scenario.tree, result.ports.load_bytes)
    overload = tuple(float((loads.max(axis=1) / loads.mean(axis=1)).max() - 1) for loads in groups)

    return Measured(**result.record.model_dump(), values={"overload": overload})


def by_owner(tree: FatTree, loads: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return the loads of each stage's links by the edge or pod that they leave or enter, shape
    (owners, links).
    """
    up_edge, up_agg, down_core, down_agg, _ = by_layer(tree, loads)
    into_edge = down_agg.reshape(tree.k, tree.half, tree.half).swapaxes(1, 2)
    return (
        up_edge,
        up_agg.reshape(tree.k, -1),
        down_core.T,
        into_edge.reshape(tree.edges, tree.half),
    )
