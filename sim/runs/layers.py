"""Values of switches' ports, by layer."""

import numpy as np
from numpy.typing import NDArray

from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]


def by_layer(tree: FatTree, values: Int64) -> tuple[Int64, ...]:
    """Split one value per switch port by SWITCH_LAYERS, each of shape (switches, ports)."""
    # Switches are numbered edges, aggs, cores, and their lower ports come first. Views, so that
    # nothing is copied.
    edges, aggs = tree.first_port(tree.first_agg), tree.first_port(tree.first_core)
    edge = values[:edges].reshape(tree.edges, -1)
    agg = values[edges:aggs].reshape(tree.aggs, -1)
    down = tree.downlinks(tree.first_agg)
    return (
        edge[:, tree.hosts_per_edge :],
        agg[:, down:],
        values[aggs:].reshape(tree.cores, tree.pods_per_plane * tree.agg_core_links),
        agg[:, :down],
        edge[:, : tree.hosts_per_edge],
    )
