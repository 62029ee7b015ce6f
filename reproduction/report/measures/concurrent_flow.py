"""rho_opt: the largest common rate of all flows with any split over their paths (appendix A).

A maximum concurrent flow over the surviving shortest paths. The largest load that any split leaves
on some link is a zero-sum game: flows choose paths, an opponent puts prices on links. Both sides'
averages under mirror-prox (Nemirovski 2004) bound the answer from both sides, so how near it is is
known without trust in the steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# The most links of a path between switches: edge, aggregation, core, aggregation, edge.
HOPS = 4
# Of the answer, between both bounds.
GAP = 0.005
MOST_STEPS = 20_000
CHECKED = 50
# By experiment: larger steps swing, smaller ones take longer.
STEP = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """All paths of all pairs of edges: `links[path]` in both directions, padded by a free link.

    The paths of pair i are first[i] to first[i + 1]; `demand[i]` is its flows in line rates.
    """

    links: Ints
    first: Ints
    demand: Floats
    free: int

    def loads(self, shares: Floats) -> Floats:
        """Return every link's load when paths carry these shares of their pairs' demands."""
        carried = np.repeat(shares * self._spread(self.demand), HOPS)
        link_loads: Floats = np.bincount(
            self.links.ravel(), weights=carried, minlength=self.free + 1
        ).astype(np.float64)
        link_loads[self.free] = 0
        return link_loads

    def costs(self, prices: Floats) -> Floats:
        """Return the price of every path."""
        path_costs: Floats = prices[self.links].sum(axis=1)
        return path_costs

    def cheapest(self, prices: Floats) -> float:
        """Return the least cost of all demands: below every split's largest load."""
        return float(self.demand @ np.minimum.reduceat(self.costs(prices), self.first[:-1]))

    def normal(self, weights: Floats) -> Floats:
        """Return weights of paths as shares of their pairs."""
        path_shares: Floats = weights / self._spread(np.add.reduceat(weights, self.first[:-1]))
        return path_shares

    def _spread(self, of_pairs: Floats) -> Floats:
        return np.repeat(of_pairs, np.diff(self.first))


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Bounds of the least largest load, and their proofs.

    `shares` leave no link with more than `most`; at `prices`, with the sum 1, all demands cost
    `least` at least, so that no split leaves all links with less.
    """

    least: float
    most: float
    shares: Floats
    prices: Floats

    def better(self, every_way: Ways, shares: Floats, prices: Floats) -> "Solution":
        """Return this solution with the better of two proofs of each bound."""
        least = every_way.cheapest(prices)
        largest = float(every_way.loads(shares).max())
        return Solution(
            max(least, self.least),
            min(largest, self.most),
            shares if largest < self.most else self.shares,
            prices if least > self.least else self.prices,
        )


def ways(tree: FatTree, links: LinkState, flows: Flows) -> Ways:
    """Return the surviving shortest paths of the flows between edges; those without any load none.

    Links are numbered as in `topology`, in both directions: up, then down.
    """
    ends = np.stack([flows.source, flows.destination]) // tree.hosts_per_edge
    pairs, counts = np.unique(ends[:, ends[0] != ends[1]], axis=1, return_counts=True)
    path_lists, demand = [], []
    for source, destination, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        if paths := list(_paths(tree, links, source, destination)):
            path_lists.append(paths)
            demand.append(float(count))

    first = np.cumsum([0, *map(len, path_lists)])
    flat = np.array([path for paths in path_lists for path in paths], dtype=np.int64)
    return Ways(flat.reshape(-1, HOPS), first, np.array(demand), free=2 * tree.links)


def _paths(tree: FatTree, links: LinkState, source: int, destination: int) -> Iterator[list[int]]:
    """Yield the links of each surviving shortest path between two edges."""
    down = tree.links
    source_pod, destination_pod = (edge // tree.edges_per_pod for edge in (source, destination))
    for uplink in range(tree.edge_uplinks):
        if not (links.edge_agg[source, uplink] and links.edge_agg[destination, uplink]):
            continue

        ends = [
            tree.first_link(source) + uplink,
            down + tree.first_link(destination) + uplink,
        ]
        if source_pod == destination_pod:
            yield [*ends, 2 * down, 2 * down]
            continue

        aggs = [pod * tree.aggs_per_pod + uplink for pod in (source_pod, destination_pod)]
        for core in range(tree.agg_uplinks):
            if links.agg_core[aggs[0], core] and links.agg_core[aggs[1], core]:
                middle = [tree.first_link(tree.first_agg + agg) + core for agg in aggs]
                yield [*ends, middle[0], down + middle[1]]


def rho_opt(tree: FatTree, links: LinkState, flows: Flows) -> tuple[float, float]:
    """Return bounds of the largest share of line rate at which some split overloads no link.

    They are at most GAP apart, relatively; both are 1 where nothing is short.
    """
    every_way = ways(tree, links, flows)
    if not len(every_way.demand):
        return 1.0, 1.0

    solution = largest_load(every_way)
    return 1 / max(solution.most, 1.0), 1 / max(solution.least, 1.0)


def largest_load(every_way: Ways) -> Solution:
    """Return bounds of the least largest load over all splits."""
    paths, links = len(every_way.links), every_way.free + 1
    shares = every_way.normal(np.ones(paths))
    prices = np.full(links, 1 / every_way.free)
    prices[every_way.free] = 0
    share_sum, price_sum = np.zeros(paths), np.zeros(links)
    best = Solution(0.0, float(every_way.loads(shares).max()), shares, prices)

    # Prices are shares of 1, so costs of paths are small, and steps for shares large.
    pace = STEP * len(every_way.demand)
    for step in range(1, MOST_STEPS + 1):
        ahead_shares = _moved(every_way, shares, prices, pace)
        ahead_prices = _priced(every_way, prices, shares)
        shares = _moved(every_way, shares, ahead_prices, pace)
        prices = _priced(every_way, prices, ahead_shares)
        share_sum += ahead_shares
        price_sum += ahead_prices
        if step % CHECKED == 0:
            best = best.better(every_way, share_sum / step, price_sum / step)
            # Below 1 nothing is short, however far the bounds are apart.
            if best.most <= max(best.least, 1.0) * (1 + GAP):
                break

    return best


def _moved(every_way: Ways, shares: Floats, prices: Floats, pace: float) -> Floats:
    costs = every_way.costs(prices)
    moved: Floats = shares * np.exp(-pace * (costs - costs.min()))
    return every_way.normal(moved)


def _priced(every_way: Ways, prices: Floats, shares: Floats) -> Floats:
    loads = every_way.loads(shares)
    new_prices: Floats = prices * np.exp(STEP * (loads - loads.max()))
    new_prices /= new_prices.sum()
    return new_prices
