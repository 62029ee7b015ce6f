"""Collectives as graphs: the ranks that each rank hears of, bytes sent, refused settings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand.workloads.collectives import ALGORITHMS, collective_graph, parents, two_trees
from fattree.demand.workloads.graph import Graph, pipelined
from fattree.errors import TrafficError

SIZE = 1 << 20
EVERY = [(matrix, algorithm) for matrix in ALGORITHMS for algorithm in ALGORITHMS[matrix]]
# Bytes that all ranks send together, in messages of n ranks in s servers of g.
SENT = {
    ("all_reduce", "ring"): lambda n, s, g: 2 * (n - 1) * SIZE,
    ("all_reduce", "double_tree"): lambda n, s, g: 2 * (n - 1) * SIZE,
    ("all_reduce", "recursive"): lambda n, s, g: 2 * (n - 1) * SIZE,
    ("all_reduce", "hierarchical"): lambda n, s, g: 2 * (s * (g - 1) + s - 1) * SIZE,
    ("all_reduce", "direct"): lambda n, s, g: 2 * (n - 1) * SIZE,
    ("reduce_scatter", "direct"): lambda n, s, g: (n - 1) * SIZE,
    ("all_gather", "direct"): lambda n, s, g: (n - 1) * SIZE,
    ("reduce_scatter", "ring"): lambda n, s, g: (n - 1) * SIZE,
    ("reduce_scatter", "recursive"): lambda n, s, g: (n - 1) * SIZE,
    ("reduce_scatter", "hierarchical"): lambda n, s, g: (s * (g - 1) + s - 1) * SIZE,
    ("all_gather", "ring"): lambda n, s, g: (n - 1) * SIZE,
    ("all_gather", "recursive"): lambda n, s, g: (n - 1) * SIZE,
    ("all_gather", "hierarchical"): lambda n, s, g: (s * (g - 1) + s - 1) * SIZE,
    ("broadcast", "ring"): lambda n, s, g: (n - 1) * SIZE,
    ("broadcast", "double_tree"): lambda n, s, g: (n - 1) * SIZE,
    # Scatter: half of it log2 n times; then an all-gather.
    ("broadcast", "recursive"): lambda n, s, g: (n.bit_length() - 1) * SIZE // 2 + (n - 1) * SIZE,
    ("broadcast", "hierarchical"): lambda n, s, g: (n - 1) * SIZE,
    ("incast", "direct"): lambda n, s, g: (n - 1) * SIZE,
    ("all_to_all", "direct"): lambda n, s, g: n * (n - 1) * SIZE,
    ("all_to_all", "ring"): lambda n, s, g: n * (n - 1) * SIZE,
    ("all_to_all", "recursive"): lambda n, s, g: (n.bit_length() - 1) * n // 2 * n * SIZE,
    ("all_to_all", "hierarchical"): lambda n, s, g: n * ((g - 1) * s + (s - 1) * g) * SIZE,
}


def rows(servers: int, gpus: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.arange(servers * gpus).reshape(servers, gpus)


def heard(graph: Graph) -> list[set[int]]:
    """Return the ranks whose data reach each rank, by the sends that each send waits for."""
    offset, awaited = graph.after()
    carried: dict[int, set[int]] = {}
    heard_ranks = [{rank} for rank in range(graph.ranks)]
    for node in np.argsort(graph.depth(), kind="stable").tolist():
        before = awaited[offset[node] : offset[node + 1]].tolist()
        carried[node] = {int(graph.source[node])}.union(
            *(carried[awaited_node] for awaited_node in before)
        )
        heard_ranks[graph.destination[node]] |= carried[node]
    return heard_ranks


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize(("matrix", "algorithm"), EVERY)
def test_everybody_hears_of_everybody_and_no_byte_is_sent_twice(
    matrix: str, algorithm: str, chunks: int
) -> None:
    graph = pipelined(collective_graph(matrix, algorithm, rows(4, 4), SIZE * 3), chunks)
    heard_ranks = heard(graph)
    listeners = heard_ranks[:1] if matrix == "incast" else heard_ranks
    assert all(0 in ranks if matrix == "broadcast" else len(ranks) == 16 for ranks in listeners)
    assert graph.size.sum() == 3 * SENT[matrix, algorithm](16, 4, 4)


@given(st.integers(2, 40), st.integers(1, 3))
def test_trees_and_rings_are_for_any_number_of_ranks(count: int, chunks: int) -> None:
    for algorithm in ("ring", "double_tree"):
        graph = collective_graph("all_reduce", algorithm, rows(1, count), SIZE * count)
        assert all(len(ranks) == count for ranks in heard(pipelined(graph, chunks)))
        assert graph.size.sum() == 2 * (count - 1) * SIZE * count


@given(st.integers(2, 200))
def test_no_rank_but_the_first_has_children_in_both_trees(count: int) -> None:
    _, trees = two_trees(np.arange(count))
    both = set(trees[0].tolist()) & set(trees[1].tolist()) - {-1, 0}
    assert not both
    for tree in trees:
        # A tree: whoever goes up arrives at its one root.
        assert (tree == -1).sum() == 1
        ancestor = np.arange(count)
        for _ in range(2 * count.bit_length()):
            ancestor = np.where(tree[ancestor] < 0, ancestor, tree[ancestor])
        assert len(set(ancestor.tolist())) == 1
        assert np.bincount(tree[tree >= 0]).max() <= 2


def test_the_second_tree_is_the_first_from_behind_or_a_rank_further() -> None:
    first, second = two_trees(np.arange(8))[1].tolist()
    assert second == [-1 if up < 0 else 7 - up for up in reversed(first)]
    first, second = two_trees(np.arange(7))[1].tolist()
    assert second == [-1 if up < 0 else (up + 1) % 7 for up in [first[6], *first[:6]]]


def test_a_tree_is_no_higher_than_the_logarithm() -> None:
    assert parents(8).tolist() == [-1, 2, 4, 2, 0, 6, 4, 6]


def test_a_rank_sends_a_step_when_its_own_last_one_and_the_arriving_one_are_complete() -> None:
    offset, awaited = collective_graph("all_gather", "ring", rows(1, 4), SIZE).after()
    assert set(awaited[offset[5] : offset[6]].tolist()) == {0, 1}


def test_chunks_to_one_rank_go_one_after_the_other() -> None:
    graph = pipelined(collective_graph("broadcast", "ring", rows(1, 3), SIZE), 2)
    edges = set(zip(graph.waiting.tolist(), graph.awaited.tolist(), strict=True))
    # Nodes: 0 -> 1 in chunks 0, 1; then 1 -> 2.
    assert edges == {(1, 0), (2, 0), (3, 1), (3, 2)}
    assert graph.size.tolist() == [SIZE // 2] * 4


@pytest.mark.parametrize("message", [1, 2, 3, 10])
def test_chunks_carry_all_of_a_message_that_they_do_not_divide(message: int) -> None:
    graph = pipelined(collective_graph("broadcast", "ring", rows(1, 2), message), 3)
    # All chunks are equal, and rounded up: together they have room for every byte.
    assert graph.size.tolist() == [-(-message // 3)] * 3
    assert message <= graph.size.sum() < message + 3


@pytest.mark.parametrize(
    ("matrix", "algorithm", "servers", "message"),
    [
        ("all_gather", "double_tree", rows(2, 2), "choose from ring, recursive, hierarchical"),
        ("all_reduce", "recursive", rows(3, 2), "needs a power of two of hosts, not 6"),
        ("broadcast", "ring", rows(1, 1), "broadcast needs at least 2 hosts"),
        ("all_to_all", "direct", rows(1, 10_000), "99,990,000 transfers"),
    ],
)
def test_what_does_not_exist_is_refused(
    matrix: str,
    algorithm: str,
    servers: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    message: str,
) -> None:
    with pytest.raises(TrafficError, match=message):
        collective_graph(matrix, algorithm, servers, SIZE)
