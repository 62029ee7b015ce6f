"""Coordinates on the page: the fat-tree in four rows, pods side by side, hosts at the bottom."""

from typing import Any

from fattree.shape.addressing import host_name, link_name, switch_name
from fattree.shape.topology import FatTree, Tier

WIDTH = 1240.0
LEFT = 84.0
RIGHT = 40.0
CORE_Y = 24.0
AGG_Y = 184.0
EDGE_Y = 334.0
HOST_Y = 412.0
HEIGHT = 428.0
# Between pods, as a share of the width of an edge's hosts.
POD_GAP = 0.8
ROWS = {Tier.CORE: CORE_Y, Tier.AGG: AGG_Y, Tier.EDGE: EDGE_Y}
Point = tuple[float, float]


def picture(tree: FatTree) -> dict[str, Any]:
    """Return nodes, links (by their indices) and hosts with coordinates in a WIDTH x HEIGHT box."""
    switches = [switch_at(tree, switch) for switch in range(tree.switches)]
    hosts = [(host_x(tree, host), HOST_Y) for host in range(tree.hosts)]
    return {
        # The k of a fat-tree of the same size, for the sizes of nodes.
        "k": tree.k or max(2, round((0.8 * tree.switches) ** 0.5)),
        "width": WIDTH,
        "height": HEIGHT,
        "rows": [
            {"name": name, "y": y}
            for name, y in zip(
                ("core", "agg", "edge", "hosts"), (*ROWS.values(), HOST_Y), strict=True
            )
            if tree.cores or y != CORE_Y
        ],
        "switches": [
            {"name": switch_name(tree, number), "x": x, "y": y}
            for number, (x, y) in enumerate(switches)
        ],
        "hosts": [
            {"name": host_name(tree, host), "x": x, "y": y} for host, (x, y) in enumerate(hosts)
        ],
        "links": [_link(tree, link) for link in range(tree.links)],
        "hosts_per_edge": tree.hosts_per_edge,
        "edge_links": tree.edge_links,
    }


def _link(tree: FatTree, link: int) -> dict[str, Any]:
    lower, upper = tree.link_ends(link)
    parallel = tree.parallel_links(lower.switch)
    return {
        "name": link_name(tree, link),
        "lower": lower.switch,
        "upper": upper.switch,
        # The distance of a link from the middle of its bundle, in links.
        "aside": (link - tree.first_link(lower.switch)) % parallel - (parallel - 1) / 2,
        "is_parallel": parallel > 1,
    }


def host_x(tree: FatTree, host: int) -> float:
    """Return the horizontal place of a host."""
    gap = POD_GAP * tree.hosts_per_edge
    columns = tree.hosts - 1 + gap * (tree.pods - 1)
    column = host + gap * tree.pod_of_host(host)
    return round(LEFT + (WIDTH - LEFT - RIGHT) * column / max(columns, 1), 1)


def switch_at(tree: FatTree, switch: int) -> Point:
    """Return the place of a switch: edges above their hosts, aggs above edges, cores evenly."""
    tier = tree.tier(switch)
    if tier is Tier.CORE:
        core = switch - tree.first_core
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (core + 0.5) / tree.cores, 1), CORE_Y

    # As many parts of the pod's hosts as the pod has switches of the tier.
    pod, position = tree.position(switch)
    in_pod = tree.edges_per_pod if tier is Tier.EDGE else tree.aggs_per_pod
    first_x = host_x(tree, pod * tree.hosts_per_pod)
    last_x = host_x(tree, (pod + 1) * tree.hosts_per_pod - 1)
    step = (last_x - first_x) / (tree.hosts_per_pod - 1 or 1)
    width = tree.hosts_per_pod / in_pod

    return round(first_x + step * (position * width + (width - 1) / 2), 1), ROWS[tier]
