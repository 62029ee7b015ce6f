"""Fat-trees walked switch by switch: slow and obvious answers to compare `fattree` with."""

from fractions import Fraction
from functools import cache

from hypothesis import strategies as st

from fattree.shape.topology import FatTree

Hop = tuple[int, int]

even_ks = st.integers(1, 32).map(lambda half: 2 * half)
small_trees = st.sampled_from([2, 4, 6]).map(FatTree)
seeds = st.integers(0, 2**63 - 1)


@st.composite
def failing_trees(
    draw: st.DrawFn, trees: st.SearchStrategy[FatTree] = small_trees
) -> tuple[FatTree, frozenset[int]]:
    """Draw a tree and some of its links."""
    tree = draw(trees)
    return tree, draw(st.frozensets(st.integers(0, tree.links - 1), max_size=tree.links // 2))


@cache
def link_at(tree: FatTree) -> dict[Hop, int]:
    """Return the link behind every (switch, port) that has one."""
    return {
        (end.switch, end.port): link for link in range(tree.links) for end in tree.link_ends(link)
    }


def hops_from(tree: FatTree, failed: frozenset[int], switch: int) -> list[tuple[Hop, int]]:
    """Return ((switch, port), next switch) over every surviving link."""
    links = link_at(tree)
    hops = []
    for port in tree.ports(switch):
        link, end = links.get((switch, port)), tree.neighbour(switch, port)
        if link is not None and end is not None and link not in failed:
            hops.append(((switch, port), end.switch))
    return hops


def paths(tree: FatTree, failed: frozenset[int], source: int, destination: int) -> list[list[Hop]]:
    """Return all shortest paths (of the intact tree's length) between two edges, each a list of
    (switch, port).
    """
    length = 2 if source // tree.edges_per_pod == destination // tree.edges_per_pod else 4
    walks: list[tuple[list[Hop], int]] = [([], source)]
    for _ in range(length):
        walks = [
            ([*walk, hop], after)
            for walk, switch in walks
            for hop, after in hops_from(tree, failed, switch)
        ]
    return [walk for walk, end in walks if end == destination]


def loads(
    tree: FatTree, failed: frozenset[int], flows: list[tuple[int, int, Fraction]]
) -> dict[Hop, Fraction]:
    """Return the load of every (switch, port) when each (source edge, destination edge, rate)
    splits evenly over its paths.
    """
    hops: dict[Hop, Fraction] = {}
    for source, destination, rate in flows:
        ways = paths(tree, failed, source, destination) if source != destination else []
        for hop in (hop for way in ways for hop in way):
            hops[hop] = hops.get(hop, Fraction(0)) + rate / len(ways)
    return hops
