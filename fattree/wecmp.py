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
    """Return weights[pod, agg position, destination pod, uplink]: 1 where it leads to that pod."""
    # A core joins the aggs of one position: both of them must have a link to it. What comes down
    # has no choice but between parallel links, so paths are counted on the way up.
    up = links.agg_core.reshape(tree.pods, tree.aggs_per_pod, tree.agg_uplinks)
    down = reached(up, tree.agg_core_links)
    joined: Ints = (up[:, :, None, :] & down.transpose(1, 0, 2)[None, :, :, :]).astype(np.int64)
    return joined


def reach(tree: FatTree, links: LinkState) -> Bools:
    """Return reach[edge, uplink]: whether an edge is below the agg of that uplink of any edge."""
    return reached(links.edge_agg, tree.edge_agg_links)


def reached(up: Bools, parallel: int) -> Bools:
    """Return for every link, on the last axis, whether any of its bundle is up."""
    if parallel == 1:
        return up

    bundles = up.reshape(*up.shape[:-1], -1, parallel).any(axis=-1)
    found: Bools = np.repeat(bundles, parallel, axis=-1)
    return found


def pod_weights(tree: FatTree, links: LinkState) -> Ints:
    """Return weights[edge, destination pod, uplink]: paths to that pod's agg of the position.

    Inside the edge's own pod the agg itself is the destination: 1 where the uplink is up.
    """
    cores = agg_weights(tree, links).sum(axis=3)
    own = np.arange(tree.pods)
    cores[own, :, own] = 1
    of_pods = np.repeat(cores.transpose(0, 2, 1), tree.edge_agg_links, axis=2)
    weights: Ints = np.repeat(of_pods, tree.edges_per_pod, axis=0) * links.edge_agg[:, None, :]

    return weights
