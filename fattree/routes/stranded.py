"""Flows that failures strand: no path between their ends is left, or no port of a host."""

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows
from fattree.errors import FailureError
from fattree.experiment.model import Scenario
from fattree.routes.wecmp import LinkState, agg_weights, reach
from fattree.shape.addressing import host_name
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_NS

# So many pairs of hosts are named in an error.
NAMED = 3


def cut_off(tree: FatTree, links: LinkState, flows: Flows) -> NDArray[np.int64]:
    """Return the flows that have no surviving path."""
    source = flows.source // tree.hosts_per_edge
    destination = flows.destination // tree.hosts_per_edge
    joined: NDArray[np.bool_] = agg_weights(tree, links).sum(axis=3) > 0

    # Inside a pod no core is needed: the agg itself joins the two edges.
    joined[np.arange(tree.pods), :, np.arange(tree.pods)] = True
    pods = source // tree.edges_per_pod, destination // tree.edges_per_pod
    through = np.repeat(joined[pods[0], :, pods[1]], tree.edge_agg_links, axis=1)
    paths = links.edge_agg[source] & reach(tree, links)[destination] & through

    return np.flatnonzero((source != destination) & ~paths.any(axis=1))


def staying(scenario: Scenario, lost: set[int], flows: Flows) -> NDArray[np.bool_]:
    """Return which flows need a path in their plane, while the ports of `lost` hosts are down.

    A flow that draws planes leaves that of a lost port for good.
    """
    is_lost = _marked(scenario.tree, lost if scenario.fabric.is_drawn else set())
    return ~(is_lost[flows.source] | is_lost[flows.destination])


def no_path(
    tree: FatTree, flows: Flows, stranded: NDArray[np.int64], since_ps: int
) -> FailureError:
    """Return the error of flows that have no path from some time on."""
    first = stranded[:NAMED]
    pairs = zip(flows.source[first].tolist(), flows.destination[first].tolist(), strict=True)
    named = [f"{host_name(tree, source)} to {host_name(tree, end)}" for source, end in pairs]
    more = f" and {len(stranded) - NAMED} more" if len(stranded) > NAMED else ""
    return FailureError(
        f"failures: the links that are down from {since_ps / PS_PER_NS:g} ns on leave"
        f" {len(stranded)} flow(s) without a path: {', '.join(named)}{more}"
    )


def refuse_lost_hosts(scenario: Scenario, lost: set[int], flows: Flows) -> None:
    """Raise FailureError where flows need the ports of `lost` hosts, which stay down."""
    tree = scenario.tree
    needed = lost & {*flows.source.tolist(), *flows.destination.tolist()}
    if not needed:
        return

    portless = _without_plane(tree, lost, flows)
    if not scenario.fabric.is_drawn:
        # Workloads' files need Polars, which starts threads: the parent of switches may not.
        from fattree.demand.workloads.jobs import is_in_one_plane  # noqa: PLC0415

        is_fixed = any(map(is_in_one_plane, scenario.collectives))
        has_others = tree.planes > 1 and not is_fixed and not len(portless)
        hint = ' (fabric.plane_use = "draw" has)' if has_others else ""
        raise FailureError(
            "failures.events: the link of "
            f"{host_name(tree, min(needed))} never comes up again, and its flows have no other"
            f"{hint}: say when (up_ns)"
        )

    if len(portless):
        ends = (int(end[portless[0]]) for end in (flows.source, flows.destination))
        names = " and ".join(host_name(tree, end % tree.machines) for end in ends)
        raise FailureError(
            f"failures.events: {names} have no plane in which the links of both come up again: say"
            " when (up_ns)"
        )


def _without_plane(tree: FatTree, lost: set[int], flows: Flows) -> NDArray[np.int64]:
    """Return the flows between machines that have no plane in which neither end is lost."""
    of_planes = _marked(tree, lost).reshape(tree.planes, tree.machines)
    ends = (flows.source % tree.machines, flows.destination % tree.machines)
    return np.flatnonzero((of_planes[:, ends[0]] | of_planes[:, ends[1]]).all(axis=0))


def _marked(tree: FatTree, hosts: set[int]) -> NDArray[np.bool_]:
    is_marked = np.zeros(tree.hosts, dtype=bool)
    is_marked[list(hosts)] = True
    return is_marked
