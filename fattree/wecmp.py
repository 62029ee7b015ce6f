"""W-ECMP: how many surviving paths lead through each uplink, for every (switch, destination).

The weight of an edge's uplink towards a destination edge is the number of paths that survive
through that agg; an agg weighs each core that still reaches the destination pod equally (appendix
F, simulator model).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fattree.topology import FatTree

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LinkState:
    """Which inter-switch links are up: `edge_agg[edge, uplink]`, `agg_core[agg, uplink]`."""

    edge_agg: Bools
    agg_core: Bools

    @classmethod
    def without(cls, tree: FatTree, failed: frozenset[int] = frozenset()) -> "LinkState":
        """Return the state in which exactly the links of `failed` (indices) are down."""
        # Links are numbered by lower end and uplink, edges' first (`topology`).
        up = np.ones(tree.links, dtype=np.bool_)
        up[sorted(failed)] = False
        edge_agg, agg_core = up[: tree.edge_links], up[tree.edge_links :]
        return cls(
            edge_agg.reshape(tree.edges, tree.edge_uplinks),
            agg_core.reshape(tree.aggs, tree.agg_uplinks),
        )


def agg_weights(tree: FatTree, links: LinkState) -> Ints:
    """Return weights[pod, agg position, destination pod, core]: 1 where it joins both pods."""
    # A core joins the aggs of one position: both of them must have their link to it.
    up = links.agg_core.reshape(tree.pods, tree.aggs_per_pod, tree.agg_uplinks)
    joined: Ints = (up[:, :, None, :] & up.transpose(1, 0, 2)[None, :, :, :]).astype(np.int64)
    return joined


def pod_weights(tree: FatTree, links: LinkState) -> Ints:
    """Return weights[edge, destination pod, uplink]: paths to that pod's agg of the position.

    Inside the edge's own pod the agg itself is the destination: 1 where the uplink is up.
    """
    cores = agg_weights(tree, links).sum(axis=3)
    own = np.arange(tree.pods)
    cores[own, :, own] = 1
    weights: Ints = (
        np.repeat(cores.transpose(0, 2, 1), tree.edges_per_pod, axis=0) * links.edge_agg[:, None, :]
    )

    return weights
