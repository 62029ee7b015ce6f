"""Where the page draws what: the fat-tree in four rows, pods side by side, hosts at the bottom."""

from typing import Any

from fattree.addressing import host_name, link_name, switch_name
from fattree.topology import FatTree, Tier

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
        "width": WIDTH,
        "height": HEIGHT,
        "rows": [
            {"name": name, "y": y}
            for name, y in zip(
                ("core", "agg", "edge", "hosts"), (*ROWS.values(), HOST_Y), strict=True
            )
        ],
        "switches": [
            {"name": switch_name(tree, number), "x": x, "y": y}
            for number, (x, y) in enumerate(switches)
        ],
        "hosts": [
            {"name": host_name(tree, host), "x": x, "y": y} for host, (x, y) in enumerate(hosts)
        ],
        "links": [_link(tree, link) for link in range(tree.links)],
        "half": tree.half,
    }


def _link(tree: FatTree, link: int) -> dict[str, Any]:
    lower, upper = tree.link_ends(link)
    return {"name": link_name(tree, link), "lower": lower.switch, "upper": upper.switch}


def host_x(tree: FatTree, host: int) -> float:
    """Return the horizontal place of a host."""
    columns = tree.hosts - 1 + POD_GAP * tree.half * (tree.k - 1)
    column = host + POD_GAP * tree.half * (host // (tree.half * tree.half))
    return round(LEFT + (WIDTH - LEFT - RIGHT) * column / max(columns, 1), 1)


def switch_at(tree: FatTree, switch: int) -> Point:
    """Return the place of a switch: edges above their hosts, aggs above edges, cores evenly."""
    tier = tree.tier(switch)
    if tier is Tier.CORE:
        core = switch - 2 * tree.edges
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (core + 0.5) / tree.cores, 1), CORE_Y

    edge = switch % tree.edges
    first = host_x(tree, edge * tree.half)
    last = host_x(tree, (edge + 1) * tree.half - 1)

    return round((first + last) / 2, 1), ROWS[tier]
