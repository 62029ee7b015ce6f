"""rho_max: the rate of all flows when split evenly over their surviving paths (appendix A).

The load of every link is counted in the flows that cross it, each at its share of its host's line
rate; the most loaded link, with load F, lets every host send at 1 / F of its rate. Loads are
compared in floating point, and that of the winner is exact.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fattree.flows import Flows, generations
from fattree.topology import FatTree
from fattree.traffic import shares
from fattree.wecmp import LinkState, agg_weights, pod_weights

Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]


def rho_max(tree: FatTree, links: LinkState, flows: Flows) -> Fraction:
    """Return the share of line rate, at most 1, at which no inter-switch link is overloaded.

    Without failures it is 1, whatever the traffic (the paper's "Decoupling Components"). Flows of
    different generations do not meet. Those that have no path for the time being load none.
    """
    if links.edge_agg.all() and links.agg_core.all():
        return Fraction(1)

    largest = max(
        (_largest_load(tree, links, demand) for demand in _demands(tree, flows)),
        default=Fraction(1),
    )

    return 1 / max(largest, Fraction(1))


@dataclass(frozen=True, slots=True, eq=False)
class _Demand:
    """Flows between pairs of edges that are active together, each at 1 / `share` of line rate."""

    source: Int64
    destination: Int64
    share: Int64
    flows: Int64


def _demands(tree: FatTree, flows: Flows) -> list[_Demand]:
    """Return one demand per generation, equal ones once; without what stays under one edge."""
    ends = [flows.source // tree.hosts_per_edge, flows.destination // tree.hosts_per_edge]
    table = np.stack([generations(tree, flows), *ends, shares(tree, flows)], axis=1)[
        ends[0] != ends[1]
    ]
    rows, counts = np.unique(table, axis=0, return_counts=True)
    columns = np.column_stack([rows[:, 1:], counts])
    parts = np.split(columns, np.flatnonzero(np.diff(rows[:, 0])) + 1)
    distinct = {part.tobytes(): part for part in parts if len(part)}

    return [_Demand(*part.T) for part in distinct.values()]


def _largest_load(tree: FatTree, links: LinkState, demand: _Demand) -> Fraction:
    """Return the load of the most loaded directed inter-switch link."""
    # A path is an agg and, between pods, a core: `paths[pair, agg position]` counts those that
    # survive through an agg position.
    pods = demand.source // tree.edges_per_pod, demand.destination // tree.edges_per_pod
    paths = pod_weights(tree, links)[demand.source, pods[1]] * links.edge_agg[demand.destination]
    cores = agg_weights(tree, links)

    # Floating point finds the link, integers its load: of links that rounding cannot tell apart any
    # is good enough.
    up, down, to_core, from_core = _loads(tree, demand, paths, cores)
    best = max((up, down, to_core, from_core), key=lambda loads: float(loads.max()))
    place = tuple(int(index) for index in np.unravel_index(int(best.argmax()), best.shape))

    if best is up or best is down:
        end = demand.source if best is up else demand.destination
        return _exact(demand, paths, np.where(end == place[0], paths[:, place[1]], 0))

    pod, agg, core = place
    near, far = pods if best is to_core else pods[::-1]
    crossing = (near == pod) & (far != pod) & (paths[:, agg] > 0) & (cores[pod, agg, far, core] > 0)

    return _exact(demand, paths, crossing.astype(np.int64))


def _loads(
    tree: FatTree, demand: _Demand, paths: Int64, cores: Int64
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the loads of all links, about.

    They are edge -> agg and agg -> edge (edges, uplinks), agg -> core and core -> agg (pods, aggs,
    uplinks).
    """
    pods = np.arange(tree.pods)
    # Who has no path for the time being loads none.
    of_path = demand.flows / (demand.share * np.maximum(paths.sum(axis=1), 1))
    of_agg = paths * of_path[:, None]
    up, down = np.zeros((2, tree.edges, tree.edge_uplinks))
    np.add.at(up, demand.source, of_agg)
    np.add.at(down, demand.destination, of_agg)
    between = np.zeros((tree.pods, tree.pods, tree.aggs_per_pod))
    np.add.at(
        between,
        (demand.source // tree.edges_per_pod, demand.destination // tree.edges_per_pod),
        np.where(paths > 0, of_path[:, None], 0),
    )

    between[pods, pods] = 0
    return (
        up,
        down,
        np.einsum("pqi,piqc->pic", between, cores),
        np.einsum("pqi,piqc->qic", between, cores),
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
