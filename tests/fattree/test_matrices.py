"""The traffic matrices: permutations, all-to-all, rings, FSDP."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand.flows import Message, generations
from fattree.demand.matrices import (
    all_to_all,
    derangement,
    hierarchical_ring,
    inter_pod_permutation,
    pairs,
    ring,
    shard_bytes,
    shuffle,
)
from fattree.errors import TrafficError
from fattree.experiment.model import Collective
from fattree.shape.topology import FatTree
from tests.fattree.brute_force import even_ks, seeds

K4 = FatTree(4)
ONE, FOUR = Message(1, 4096), Message(4, 4096)


@given(seeds, st.integers(2, 300))
def test_a_derangement_is_a_permutation_without_fixed_points(seed: int, hosts: int) -> None:
    order = derangement(seed, hosts)
    assert sorted(order.tolist()) == list(range(hosts))
    assert (order != np.arange(hosts)).all()


def test_derangements_are_uniform() -> None:
    """Of 4 hosts there are 9 derangements.

    1,800 draws of each seed's: 8 degrees of freedom exceed 50 once in 10^7.
    """
    counts = Counter(tuple(derangement(seed, 4).tolist()) for seed in range(1_800))
    assert len(counts) == 9
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 50


@given(seeds, even_ks.filter(lambda k: k <= 24).map(FatTree))
def test_inter_pod_permutations_leave_every_pod(seed: int, tree: FatTree) -> None:
    order = inter_pod_permutation(tree, seed)
    pods = np.arange(tree.hosts) // tree.hosts_per_pod
    assert sorted(order.tolist()) == list(range(tree.hosts))
    assert (pods[order] != pods).all()


def test_inter_pod_permutations_spread_over_pods() -> None:
    """Over 600 seeds host 0 of k = 4 meets each of the 12 hosts elsewhere about 50 times (11
    degrees of freedom).
    """
    counts = np.bincount([inter_pod_permutation(K4, seed)[0] for seed in range(600)], minlength=16)[
        4:
    ]
    assert ((counts - 50) ** 2 / 50).sum() < 55


@given(st.integers(2, 40))
def test_all_to_all_is_every_ordered_pair_once(hosts: int) -> None:
    source, destination = all_to_all(hosts)
    pairs_of_flows = list(zip(source.tolist(), destination.tolist(), strict=True))
    assert sorted(pairs_of_flows) == [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
    assert (np.diff(source) >= 0).all()


def test_all_to_all_hosts_begin_with_different_destinations() -> None:
    _, destination = all_to_all(16)
    assert sorted(destination.reshape(16, 15)[:, 0].tolist()) == list(range(16))


def test_a_ring_passes_every_shard_to_every_host() -> None:
    """Follow shards: step by step a host forwards the shards of its predecessor.

    After n - 1 steps everyone has all.
    """
    pairs_of_flows = ring(16, None, FOUR)
    has: list[set[int]] = [{host} for host in range(16)]
    last = list(range(16))
    for step in range(15):
        rows = range(step * 16, (step + 1) * 16)
        arrived = {
            int(pairs_of_flows.destination[row]): last[int(pairs_of_flows.source[row])]
            for row in rows
        }
        last = [arrived[host] for host in range(16)]
        has = [shards | {last[host]} for host, shards in enumerate(has)]
    assert all(len(shards) == 16 for shards in has)


def test_a_step_waits_for_the_hosts_own_and_its_predecessors_step() -> None:
    pairs_of_flows = ring(16, 3, FOUR)
    assert generations(K4, pairs_of_flows).tolist() == np.repeat([0, 1, 2], 16).tolist()
    assert pairs_of_flows.waits_for(16 + 5).tolist() == [5, 4]
    assert pairs_of_flows.waits_for(5).tolist() == []


@given(even_ks.filter(lambda k: k <= 16).map(FatTree), seeds)
def test_hierarchical_rings_join_equal_ranks_of_successive_servers(
    tree: FatTree, seed: int
) -> None:
    servers = shuffle(seed, 7, tree.edges)
    pairs_of_flows = hierarchical_ring(tree, servers, None, 1, FOUR)
    assert (
        pairs_of_flows.source % tree.hosts_per_edge
        == pairs_of_flows.destination % tree.hosts_per_edge
    ).all()
    following = dict(zip(servers.tolist(), np.roll(servers, -1).tolist(), strict=True))
    assert [following[host // tree.hosts_per_edge] for host in pairs_of_flows.source.tolist()] == (
        pairs_of_flows.destination // tree.hosts_per_edge
    ).tolist()


def test_servers_per_ring_divide_the_servers() -> None:
    pairs_of_flows = hierarchical_ring(K4, np.arange(8), 4, None, ONE)
    assert pairs_of_flows.destination[:16:2].tolist() == [2, 4, 6, 0, 10, 12, 14, 8]
    assert len(pairs_of_flows) == 3 * 16
    with pytest.raises(TrafficError, match="servers_per_ring 3 does not divide the 8 servers"):
        hierarchical_ring(K4, np.arange(8), 3, None, ONE)


@pytest.mark.parametrize(
    ("model", "packets"), [("llama-7b", 104), ("llama-70b", 418), ("llama-405b", 1570)]
)
def test_presets_give_the_papers_packet_counts(model: str, packets: int) -> None:
    collective = Collective.model_validate({"matrix": "fsdp", "model": model})
    assert shard_bytes(collective, 1024) == packets * 4096
    assert shard_bytes(collective, 512) == 2 * packets * 4096


@pytest.mark.parametrize(
    ("parameters", "layers", "packets"), [(7, 32, 104), (70, 80, 417), (405, 126, 1532)]
)
def test_models_are_two_bytes_a_parameter(parameters: int, layers: int, packets: int) -> None:
    collective = Collective(matrix="fsdp", parameters=parameters * 10**9, layers=layers)
    assert shard_bytes(collective, 1024) // 4096 == packets


def test_a_hidden_size_alone_is_a_standard_layer() -> None:
    assert (
        shard_bytes(Collective(matrix="fsdp", hidden_size=4096), 1024) == 2 * 12 * 4096**2 // 1024
    )
    with pytest.raises(TrafficError, match="matrix fsdp needs"):
        shard_bytes(Collective(matrix="fsdp"), 1024)


@pytest.mark.parametrize(
    ("impossible", "message"),
    [
        ((), "needs collective.pairs"),
        (((0, 1), (0, 16)), r"pairs\[1\] is \[0, 16\]: k = 4 has hosts 0 to 15"),
        (((0, 1), (-1, 2)), r"pairs\[1\] is \[-1, 2\]"),
        (((3, 3),), "a host cannot send to itself"),
    ],
)
def test_impossible_pairs_are_named(impossible: tuple[tuple[int, int], ...], message: str) -> None:
    with pytest.raises(TrafficError, match=message):
        pairs(K4, impossible)


def test_too_many_flows_are_refused() -> None:
    with pytest.raises(TrafficError, match="4,294,901,760 flows"):
        all_to_all(65_536)
    with pytest.raises(TrafficError, match="flows, more than"):
        ring(65_536, None, ONE)
