"""Fat-trees: sizes, and ports, links and coordinates as inverses of each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.shape.topology import FatTree, Tier
from tests.fattree.brute_force import even_ks

trees = even_ks.map(FatTree)


@pytest.mark.parametrize("k", [-2, 0, 1, 3, 7, 130])
def test_k_must_be_even_and_in_range(k: int) -> None:
    with pytest.raises(ValueError, match=f"not {k}"):
        FatTree(k)


def test_sizes_of_the_paper() -> None:
    assert (FatTree(8).hosts, FatTree(16).hosts, FatTree(64).hosts) == (128, 1024, 65_536)
    assert (FatTree(4).edges, FatTree(4).cores, FatTree(4).switches, FatTree(4).links) == (
        8,
        4,
        20,
        32,
    )


@given(trees)
def test_every_tier_has_as_many_links_as_hosts(tree: FatTree) -> None:
    assert tree.hosts == tree.k**3 // 4 == tree.edges * tree.hosts_per_edge == tree.links // 2
    assert tree.switches == 5 * tree.k**2 // 4


@given(trees, st.data())
def test_position_inverts_edge_agg_and_core(tree: FatTree, data: st.DataObject) -> None:
    switch = data.draw(st.integers(0, tree.switches - 1))
    major, minor = tree.position(switch)
    inverse = {Tier.EDGE: tree.edge, Tier.AGG: tree.agg, Tier.CORE: tree.core}[tree.tier(switch)]
    assert inverse(major, minor) == switch
    assert 0 <= minor < tree.edges_per_pod


@given(trees, st.data())
def test_neighbours_point_back(tree: FatTree, data: st.DataObject) -> None:
    switch = data.draw(st.integers(0, tree.switches - 1))
    port = data.draw(st.sampled_from(tree.ports(switch)))
    end = tree.neighbour(switch, port)
    if end is None:
        assert tree.tier(switch) is Tier.EDGE and port <= tree.hosts_per_edge
    else:
        assert tree.neighbour(*end) == (switch, port)
        assert abs(tree.tier(switch) - tree.tier(end.switch)) == 1


@given(trees, st.data())
def test_links_join_neighbours(tree: FatTree, data: st.DataObject) -> None:
    lower, upper = tree.link_ends(data.draw(st.integers(0, tree.links - 1)))
    assert tree.neighbour(*lower) == upper
    assert tree.tier(upper.switch) == tree.tier(lower.switch) + 1


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_links_use_every_switch_port_once(k: int) -> None:
    tree = FatTree(k)
    ends = [end for link in range(tree.links) for end in tree.link_ends(link)]
    wired = {
        (s, p)
        for s in range(tree.switches)
        for p in tree.ports(s)
        if tree.neighbour(s, p) is not None
    }
    assert len(ends) == len(set(ends)) == len(wired)
    assert set(ends) == wired


@given(trees, st.data())
def test_hops_grow_with_distance(tree: FatTree, data: st.DataObject) -> None:
    source, destination = (data.draw(st.integers(0, tree.hosts - 1)) for _ in range(2))
    same_edge = tree.edge_of_host(source) == tree.edge_of_host(destination)
    same_pod = tree.pod_of_host(source) == tree.pod_of_host(destination)
    assert (
        tree.hops(source, destination)
        == tree.hops(destination, source)
        == (2 if same_edge else 4 if same_pod else 6)
    )
