"""Host DR's sequences of waypoints and their starts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fattree.routes.waypoints import starts, waypoints
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree

TREE = FatTree(8)


def rows(links: LinkState, *pairs: tuple[int, int]) -> list[list[list[int]]]:
    ends = np.array(pairs)
    addresses = waypoints(TREE, links, ends[:, 0], ends[:, 1])
    return [addresses.sequence(row).tolist() for row in range(len(pairs))]


def test_consecutive_steps_part_at_the_first_hop() -> None:
    between, inside, under = rows(LinkState.without(TREE), (0, 4), (0, 1), (3, 3))
    assert between[:6] == [[0, 0], [1, 0], [2, 0], [3, 0], [0, 1], [1, 1]]
    assert len({tuple(step) for step in between}) == 16
    assert inside == [[0, 0], [1, 0], [2, 0], [3, 0]]
    assert under == []


@given(failed=st.frozensets(st.integers(0, TREE.links - 1), max_size=40))
def test_steps_are_those_whose_links_are_up_at_both_ends(failed: frozenset[int]) -> None:
    links = LinkState.without(TREE, failed)
    (addresses,) = rows(links, (0, 5))
    h = TREE.aggs_per_pod
    for agg in range(h):
        for core in range(h):
            path = (
                0 * h + agg,
                5 * h + agg,
                (TREE.edges + agg) * h + core,
                (TREE.edges + h + agg) * h + core,
            )
            assert ([agg, core] in addresses) == (not failed.intersection(path))


def test_both_ways_walk_the_same_sequence_from_different_starts() -> None:
    links = LinkState.without(TREE, frozenset([1]))
    forward, back = rows(links, (0, 4), (4, 0))
    assert forward == back
    data, ack = starts(1, np.arange(100), np.arange(100) + 20, np.full(100, len(forward)))
    assert len(set(data.tolist())) == len(forward)
    assert ((ack - data) % len(forward) == len(forward) // 2).all()
