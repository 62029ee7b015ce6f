"""W-ECMP weights and reachability against all surviving paths, walked one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.routes.wecmp import LinkState, agg_weights, pod_weights
from fattree.shape.topology import FatTree
from tests.fattree.brute_force import failing_trees, paths
from tests.fattree.lookups import edge_weights

large_trees = st.sampled_from([8, 12, 16, 24, 32, 48, 64]).map(FatTree)
Failing = tuple[FatTree, frozenset[int]]


@given(failing_trees(), st.data())
def test_weights_of_an_edge_count_surviving_paths(case: Failing, data: st.DataObject) -> None:
    tree, failed = case
    source, destination = (data.draw(st.integers(0, tree.edges - 1)) for _ in range(2))
    if source == destination:
        return
    ports = [path[0][1] for path in paths(tree, failed, source, destination)]
    weights = edge_weights(tree, LinkState.without(tree, failed), source, destination)
    assert weights.tolist() == [
        ports.count(tree.uplink_port(source, uplink)) for uplink in range(tree.edge_uplinks)
    ]


@given(failing_trees(), st.data())
def test_weights_of_an_agg_are_the_cores_that_reach_the_pod(
    case: Failing, data: st.DataObject
) -> None:
    tree, failed = case
    source, destination = (data.draw(st.integers(0, tree.edges - 1)) for _ in range(2))
    pods = source // tree.edges_per_pod, destination // tree.edges_per_pod
    weights = agg_weights(tree, LinkState.without(tree, failed))
    through = {path[1] for path in paths(tree, failed, source, destination)}
    for agg, port in through if pods[0] != pods[1] else ():
        assert (
            weights[pods[0], tree.position(agg)[1], pods[1], port - tree.uplink_port(agg, 0)] == 1
        )


@settings(max_examples=15)
@given(large_trees, st.integers(0, 2**32 - 1), st.data())
def test_weights_of_large_trees_count_surviving_paths(
    tree: FatTree, seed: int, data: st.DataObject
) -> None:
    failed = frozenset(
        np.flatnonzero(np.random.default_rng(seed).random(tree.links) < 0.1).tolist()
    )
    links = LinkState.without(tree, failed)
    source, destination = (data.draw(st.integers(0, tree.edges - 1)) for _ in range(2))
    pods, h = (source // tree.edges_per_pod, destination // tree.edges_per_pod), tree.aggs_per_pod
    if pods[0] == pods[1]:
        return
    expected = []
    for uplink in range(h):
        aggs = [tree.edge_links + (pod * h + uplink) * h for pod in pods]
        cores = [core for core in range(h) if not failed & {agg + core for agg in aggs}]
        expected.append(len(cores) * (not failed & {source * h + uplink, destination * h + uplink}))
    assert edge_weights(tree, links, source, destination).tolist() == expected


@given(failing_trees())
def test_weights_are_the_same_in_both_directions(case: Failing) -> None:
    tree, failed = case
    links = LinkState.without(tree, failed)
    for source in range(0, tree.edges, 3):
        for destination in range(tree.edges):
            forward, back = (
                edge_weights(tree, links, *ends)
                for ends in ((source, destination), (destination, source))
            )
            assert forward.tolist() == back.tolist()


def test_an_intact_tree_weighs_every_uplink_alike() -> None:
    tree = FatTree(8)
    weights = pod_weights(tree, LinkState.without(tree))
    own_pod = np.arange(tree.edges) // tree.edges_per_pod
    assert (weights[np.arange(tree.edges), own_pod] == 1).all()
    assert np.unique(weights[np.arange(tree.edges), (own_pod + 1) % tree.k]).tolist() == [4]
