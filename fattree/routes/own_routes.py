"""Each switch's groups from its own routes alone, as a switch below BGP knows them.

A route has the weights of the switch's uplinks towards a destination edge. The routes' prefixes
give the edge and its pod: a switch needs nothing else to share a pod's schedule among its edges.
"""

import numpy as np

from fattree.experiment.model import Scenario
from fattree.routes.forwarding import (
    Drawn,
    Forwarding,
    agg_orders,
    assembled,
    builder,
    consolidation,
    edge_orders,
)
from fattree.routes.groups import OFAN, Below, Slots, SwitchGroups, consolidated, weights_of
from fattree.routes.wecmp import Bools, Ints, LinkState


class OwnRoutes:
    """The groups of all edges and aggs; `set` changes those of one switch.

    Parallel links would need the state of other switches' links, and are refused before.
    """

    def __init__(self, scenario: Scenario) -> None:
        tree = scenario.tree
        options = scenario.load_balancer.schedule_orders
        self._scenario = scenario
        self._whole = LinkState.without(tree)
        self._drawn = Drawn()
        self._levels = consolidation(scenario) if scenario.scheme.per_destination else OFAN
        self._build = builder(scenario.scheme, options)
        draws = scenario.scheme, scenario.seed
        edges = edge_orders(tree, *draws, options, self._drawn)
        self._orders = [orders for _, orders in edges]
        self._orders += [orders for _, orders in agg_orders(tree, *draws, self._drawn)]
        nothing = np.zeros((tree.edges, tree.edge_uplinks), dtype=np.int64)
        none_above = np.zeros((tree.edges, tree.agg_uplinks), dtype=np.int64)
        self._groups = [self._edge(edge, nothing) for edge in range(tree.edges)]
        self._groups += [self._agg(tree.first_agg + agg, none_above) for agg in range(tree.aggs)]

    def set(self, switch: int, weights: Ints) -> None:
        """Take the weights (edges, uplinks) of a switch's routes, 0 without a route."""
        is_edge = switch < self._scenario.tree.first_agg
        self._groups[switch] = (self._edge if is_edge else self._agg)(switch, weights)

    def forwarding(self) -> Forwarding:
        """Return the forwarding of all switches."""
        scenario = self._scenario
        return assembled(
            scenario.tree,
            self._whole,
            scenario.scheme,
            scenario.seed,
            states=self._groups,
            levels=self._levels,
            drawn=self._drawn,
        )

    def _edge(self, edge: int, weights: Ints) -> SwitchGroups:
        tree = self._scenario.tree
        to_pods = self._to_pods(weights)
        pods = np.arange(tree.edges) // tree.edges_per_pod
        reach: Bools = (weights > 0) | (to_pods == 0)[pods]
        # The edge's own hosts are below it: no route north leads to them.
        reach[edge] = True
        apart = np.flatnonzero((weights != to_pods[pods] * reach).any(axis=1))
        apart = apart[apart != edge]
        below = Below(reach, apart, self._used(weights[apart]))
        groups = self._build(self._used(to_pods), below, self._orders[edge], edge)
        return consolidated(tree, groups, "edge", self._levels.edge)

    def _agg(self, agg: int, weights: Ints) -> SwitchGroups:
        tree = self._scenario.tree
        pod, _ = tree.position(agg)
        to_pods = self._used(self._to_pods(weights))
        groups = self._build(to_pods, None, self._orders[agg], pod)
        return consolidated(tree, groups, "pod", self._levels.agg)

    def _to_pods(self, weights: Ints) -> Ints:
        """Return each pod's weights (pods, uplinks): of its edge with the most uplinks."""
        tree = self._scenario.tree
        by_pod = weights.reshape(tree.pods, tree.edges_per_pod, -1)
        fullest = (by_pod > 0).sum(axis=2).argmax(axis=1)
        to_pods: Ints = by_pod[np.arange(tree.pods), fullest]
        return to_pods

    def _used(self, weights: Ints) -> Slots:
        return weights_of(self._scenario.scheme, weights, self._whole)
