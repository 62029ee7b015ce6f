"""rho_max: the rate at which every flow can send when all are split evenly over their surviving paths (appendix A).

The load of every link is counted in flows; the most loaded link, with F of them, lets every flow send at B / F. Relative to
a host's line rate, shared by its own flows, that is (most flows on a host's link) / F.
"""

from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from fabric.flows import Flows
from fabric.topology import FatTree
from fabric.wecmp import LinkState, agg_weights

Int64 = NDArray[np.int64]


def rho_max(tree: FatTree, links: LinkState, flows: Flows) -> Fraction:
    """Return the rate of every host relative to line rate, at most 1, at which no link is overloaded.

    Flows under one edge load only host links. Every other flow needs a path (`failures.cut_off` names those without).
    """
    host_load = max(_most(flows.source, tree.hosts), _most(flows.destination, tree.hosts))
    return min(Fraction(1), Fraction(host_load) / max(_inter_switch_load(tree, links, flows), Fraction(1)))


def _most(ends: Int64, hosts: int) -> int:
    return int(np.bincount(ends, minlength=hosts).max(initial=1))


def _inter_switch_load(tree: FatTree, links: LinkState, flows: Flows) -> Fraction:
    """Return the load of the most loaded inter-switch link in flows, exactly: equal path counts are summed as integers."""
    source, destination = flows.source // tree.half, flows.destination // tree.half
    pairs, counts = np.unique((source * tree.edges + destination)[source != destination], return_counts=True)
    source, destination = np.divmod(pairs, tree.edges)
    through = _core_paths(tree, links, source, destination)
    paths = through.sum(axis=(1, 2))
    loads: dict[int, Int64] = {}
    for total in np.unique(paths).tolist():
        chosen = paths == total
        loads[total] = _loads(tree, source[chosen], destination[chosen], through[chosen] * counts[chosen, None, None])
    common = lcm(*loads) if loads else 1
    largest = sum((loads[total].astype(object) * (common // total) for total in loads), np.zeros(1, dtype=object))
    return Fraction(int(largest.max()), common)


def _core_paths(tree: FatTree, links: LinkState, source: Int64, destination: Int64) -> Int64:
    """Return for every pair of edges [pair, agg position, core index] whether that path survives.

    Inside a pod there is one path an agg: it is written at core index 0.
    """
    h = tree.half
    ends = links.edge_agg[source] & links.edge_agg[destination]
    cores = agg_weights(tree, links)[source // h, :, destination // h]
    inside = source // h == destination // h
    cores[inside] = np.arange(h) == 0
    return cores * ends[:, :, None]


def _loads(tree: FatTree, source: Int64, destination: Int64, through: Int64) -> Int64:
    """Return the summed path counts of all directed inter-switch links, in four blocks: up, up, down, down."""
    h, k = tree.half, tree.k
    aggs = through.sum(axis=2)
    inter = np.where((source // h == destination // h)[:, None, None], 0, through)
    up, down = np.zeros((2, tree.edges, h), dtype=np.int64)
    to_core, from_core = np.zeros((2, k, h, h), dtype=np.int64)
    np.add.at(up, source, aggs)
    np.add.at(down, destination, aggs)
    np.add.at(to_core, source // h, inter)
    np.add.at(from_core, destination // h, inter)
    return np.concatenate([block.ravel() for block in (up, to_core, from_core, down)])
