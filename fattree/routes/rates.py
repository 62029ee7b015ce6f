"""rho_max: the rate of all flows when split evenly over their surviving paths (appendix A).

The load of every link is counted in the flows that cross it, each at its share of its host's line
rate; the most loaded link, with load F, lets every host send at 1 / F of its rate. Loads are
compared in floating point, and that of the winner is exact.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows, generations
from fattree.demand.traffic import shares
from fattree.routes.wecmp import LinkState, agg_weights, pod_weights, reach
from fattree.shape.topology import EQUAL, FatTree, Speeds

Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]


def rho_max(tree: FatTree, links: LinkState, flows: Flows, speeds: Speeds = EQUAL) -> Fraction:
    """Return the share of line rate, at most 1, at which no inter-switch link is overloaded.

    Without failures it is 1 where the fabric is not oversubscribed, whatever the traffic (the
    paper's "Decoupling Components"). Flows of different generations do not meet. Those that have no
    path for the time being load none.
    """
    if links.edge_agg.all() and links.agg_core.all() and not is_oversubscribed(tree, speeds):
        return Fraction(1)

    largest = max(
        (_largest_load(tree, links, demand, speeds) for demand in _demands(tree, flows)),
        default=Fraction(1),
    )

    return 1 / max(largest, Fraction(1))


def is_oversubscribed(tree: FatTree, speeds: Speeds) -> bool:
    """Return whether some switch has more capacity below it than above it."""
    edges = tree.most_hops > 2 and tree.hosts_per_edge > tree.edge_uplinks * speeds.edge_agg
    cores = tree.aggs_per_pod * tree.agg_uplinks * speeds.agg_core
    return edges or (tree.pods_per_plane > 1 and tree.hosts_per_pod > cores)


@dataclass(frozen=True, slots=True, eq=False)
class _Demand:
    """Flows between pairs of edges that are active together, each at 1 / `share` of line rate."""

    source: Int64
    destination: Int64
    share: Int64
    flows: Int64


def _demands(tree: FatTree, flows: Flows) -> list[_Demand]:
    """Return one demand per generation, equal demands once; without flows under one edge."""
    ends = [flows.source // tree.hosts_per_edge, flows.destination // tree.hosts_per_edge]
    table = np.stack([generations(tree, flows), *ends, shares(tree, flows)], axis=1)[
        ends[0] != ends[1]
    ]
    rows, counts = np.unique(table, axis=0, return_counts=True)
    columns = np.column_stack([rows[:, 1:], counts])
    parts = np.split(columns, np.flatnonzero(np.diff(rows[:, 0])) + 1)
    distinct = {part.tobytes(): part for part in parts if len(part)}

    return [_Demand(*part.T) for part in distinct.values()]


def _largest_load(tree: FatTree, links: LinkState, demand: _Demand, speeds: Speeds) -> Fraction:
    """Return the load of the most loaded directed inter-switch link."""
    # A path is a choice on the way up: an edge's uplink and, between pods, an agg's. `paths[pair,
    # uplink]` counts those that survive through an uplink.
    pods = demand.source // tree.edges_per_pod, demand.destination // tree.edges_per_pod
    paths = (
        pod_weights(tree, links)[demand.source, pods[1]] * reach(tree, links)[demand.destination]
    )
    weights = agg_weights(tree, links)
    ups, downs = _alive(tree, links)

    # Floating point finds the link, integers its load: of links that rounding cannot tell apart any
    # is good enough.
    up, down, to_core, from_core = _loads(tree, demand, paths, weights)
    scaled = (
        up / float(speeds.edge_agg),
        down / (np.maximum(ups, 1) * float(speeds.edge_agg)),
        to_core / float(speeds.agg_core),
        from_core / (np.maximum(downs, 1) * float(speeds.agg_core)),
    )
    largest = [float(loads.max(initial=0)) for loads in scaled]
    kind = largest.index(max(largest))
    position = tuple(map(int, np.unravel_index(int(scaled[kind].argmax()), scaled[kind].shape)))
    parallel = tree.edge_agg_links if kind < 2 else tree.agg_core_links

    if kind == 0:
        crossing = np.where(demand.source == position[0], paths[:, position[1]], 0)
        return _exact(demand, paths, crossing) / speeds.edge_agg

    if kind == 1:
        of_agg = paths[:, position[1] * parallel : (position[1] + 1) * parallel].sum(axis=1)
        crossing = np.where(demand.destination == position[0], of_agg, 0)
        return _exact(demand, paths, crossing) / (int(ups[position]) * speeds.edge_agg)

    pod, agg, index = position
    near, far = pods if kind == 2 else pods[::-1]
    first = agg * tree.edge_agg_links
    ways = (paths[:, first : first + tree.edge_agg_links] > 0).sum(axis=1)
    if kind == 2:
        through = weights[pod, agg, far, index]
        capacity = speeds.agg_core
    else:
        uplinks = slice(index * parallel, (index + 1) * parallel)
        through = weights[far, agg, pod, uplinks].sum(axis=1)
        capacity = int(downs[position]) * speeds.agg_core

    crossing = np.where((near == pod) & (far != pod), ways * through, 0)
    return _exact(demand, paths, crossing) / capacity


def _alive(tree: FatTree, links: LinkState) -> tuple[Int64, Int64]:
    """Return how many links of each bundle are up: (edges, aggs), (pods, aggs, cores)."""
    # The members of a bundle share southbound traffic alike (`routes.southbound`).
    edges = links.edge_agg.reshape(tree.edges, tree.aggs_per_pod, tree.edge_agg_links)
    aggs = links.agg_core.reshape(
        tree.pods, tree.aggs_per_pod, tree.cores_per_agg, tree.agg_core_links
    )
    return edges.sum(axis=2), aggs.sum(axis=3)


def _loads(
    tree: FatTree, demand: _Demand, paths: Int64, weights: Int64
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the loads of all uplinks, and of all bundles that lead down, about.

    They are edge -> agg (edges, uplinks), agg -> edge (edges, aggs), agg -> core (pods, aggs,
    uplinks) and core -> agg (pods, aggs, cores).
    """
    pods = np.arange(tree.pods)
    # Who has no path for the time being loads none.
    of_path = demand.flows / (demand.share * np.maximum(paths.sum(axis=1), 1))
    of_uplink = (paths * of_path[:, None]).reshape(-1, tree.aggs_per_pod, tree.edge_agg_links)
    up = np.zeros((tree.edges, tree.edge_uplinks))
    down = np.zeros((tree.edges, tree.aggs_per_pod))
    np.add.at(up, demand.source, of_uplink.reshape(-1, tree.edge_uplinks))
    np.add.at(down, demand.destination, of_uplink.sum(axis=2))

    ways = (paths > 0).reshape(-1, tree.aggs_per_pod, tree.edge_agg_links).sum(axis=2)
    between = np.zeros((tree.pods, tree.pods, tree.aggs_per_pod))
    np.add.at(
        between,
        (demand.source // tree.edges_per_pod, demand.destination // tree.edges_per_pod),
        ways * of_path[:, None],
    )

    between[pods, pods] = 0
    from_uplinks = np.einsum("pqi,piqc->qic", between, weights)
    shape = (tree.pods, tree.aggs_per_pod, tree.cores_per_agg, tree.agg_core_links)
    return (
        up,
        down,
        np.einsum("pqi,piqc->pic", between, weights),
        from_uplinks.reshape(shape).sum(axis=3),
    )


def _exact(demand: _Demand, paths: Int64, crossing: Int64) -> Fraction:
    """Return the sum of flows x crossing paths / (share x all paths) over the pairs of edges."""
    # Terms of one denominator are summed as integers first: Fractions are slow, and few differ.
    used = np.flatnonzero(crossing)
    denominators, term_of = np.unique(
        demand.share[used] * paths[used].sum(axis=1), return_inverse=True
    )
    numerators = np.zeros(len(denominators), dtype=np.int64)
    np.add.at(numerators, term_of.ravel(), demand.flows[used] * crossing[used])

    return sum(
        (Fraction(n, d) for n, d in zip(numerators.tolist(), denominators.tolist(), strict=True)),
        Fraction(0),
    )
