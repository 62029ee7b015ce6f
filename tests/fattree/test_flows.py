"""Flows that wait for flows: generations, circles, remote waits, subflows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand.flows import (
    Flows,
    cut,
    entries,
    generations,
    independent,
    offsets,
    parted,
    path_links,
    split,
)
from fattree.errors import TrafficError
from fattree.shape.topology import FatTree

K4 = FatTree(4)


def flows(
    pairs: list[tuple[int, int]], waits: list[list[int]], packets: int = 8, last_bytes: int = 4096
) -> Flows:
    """Return flows between pairs, each after those listed."""
    source, destination = np.array(pairs, dtype=np.int64).T
    return Flows(
        source=source,
        destination=destination,
        packets=np.full(len(pairs), packets, dtype=np.int64),
        last_bytes=np.full(len(pairs), last_bytes, dtype=np.int64),
        start_ps=np.zeros(len(pairs), dtype=np.int64),
        after_offset=offsets(np.array([len(row) for row in waits], dtype=np.int64)),
        after=np.array([flow for row in waits for flow in row], dtype=np.int64),
        compute_ps=np.zeros(len(pairs), dtype=np.int64),
        share=np.zeros(len(pairs), dtype=np.int64),
        in_turn=np.zeros(len(pairs), dtype=np.int64),
    )


@st.composite
def chains(draw: st.DrawFn) -> list[list[int]]:
    """Draw for each of some flows which earlier flows it waits for."""
    return [
        draw(st.lists(st.integers(0, index - 1), max_size=3)) if index else []
        for index in range(draw(st.integers(1, 12)))
    ]


def test_paths_have_two_links_below_an_edge_four_in_a_pod_and_six_through_a_core() -> None:
    pairs = [(2, 3), (3, 2), (1, 2), (2, 1), (3, 4), (4, 3), (0, 15)]
    assert path_links(K4, flows(pairs, [[]] * len(pairs))).tolist() == [2, 2, 4, 4, 6, 6, 6]


@given(chains())
def test_a_generation_is_one_more_than_the_latest_awaited(waits: list[list[int]]) -> None:
    numbers = generations(K4, flows([(3, 9)] * len(waits), waits)).tolist()
    assert numbers == [1 + max(numbers[flow] for flow in row) if row else 0 for row in waits]


@given(chains(), st.data())
def test_circles_are_refused(waits: list[list[int]], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(waits) - 1))
    circle = [*waits, [first]]
    circle[first] = [*circle[first], len(waits)]
    with pytest.raises(TrafficError, match="wait in a circle"):
        generations(K4, flows([(3, 9)] * len(circle), circle))


@pytest.mark.parametrize("awaited", [(0, 5), (5, 0), (0, 1)])
def test_a_host_may_wait_for_what_begins_or_ends_at_it(awaited: tuple[int, int]) -> None:
    assert generations(K4, flows([awaited, (0, 9)], [[], [0]])).tolist() == [0, 1]


def test_a_host_cannot_wait_for_other_hosts() -> None:
    message = (
        "flow 1 starts at h0_0_0, which cannot know when flow 0 from h0_0_1 to h2_0_1 is complete"
    )
    with pytest.raises(TrafficError, match=message):
        generations(K4, flows([(1, 9), (0, 9)], [[], [0]]))


@given(chains(), st.integers(1, 5), st.integers(1, 100), st.integers(5, 4096))
def test_subflows_are_consecutive_and_wait_for_all_parts(
    waits: list[list[int]], parts: int, packets: int, last_bytes: int
) -> None:
    whole = flows([(3, 9 + index % 3) for index in range(len(waits))], waits, packets, last_bytes)
    numbers = split(whole, parts, 4096)
    sizes = numbers.message_bytes(4096).reshape(-1, parts)
    assert (sizes.sum(axis=1) == whole.message_bytes(4096)).all()
    assert (sizes.max(axis=1) - sizes.min(axis=1) <= 1).all()
    for flow, row in enumerate(waits):
        for subflow in range(flow * parts, (flow + 1) * parts):
            assert numbers.destination[subflow] == whole.destination[flow]
            carried = int(numbers.last_bytes[subflow]) + 4096 * (int(numbers.packets[subflow]) - 1)
            assert 1 <= numbers.last_bytes[subflow] <= 4096
            assert carried == sizes.flat[subflow]
            assert numbers.waits_for(subflow).tolist() == [
                message * parts + part for message in row for part in range(parts)
            ]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
def test_entries_list_rows_in_order(lengths: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1)))
    offset = offsets(np.array(lengths, dtype=np.int64))
    expected = [
        index for row in rows for index in range(sum(lengths[:row]), sum(lengths[: row + 1]))
    ]
    assert entries(offset, np.array(rows, dtype=np.int64)).tolist() == expected


@pytest.mark.parametrize(
    ("size", "packets", "last"),
    [(0, 0, 0), (1, 1, 1), (4095, 1, 4095), (4096, 1, 4096), (4097, 2, 1), (8192, 2, 4096)],
)
def test_the_last_packet_has_what_is_left(size: int, packets: int, last: int) -> None:
    assert cut(size, 4096) == (packets, last)
    assert [column.tolist() for column in cut(np.array([size]), 4096)] == [[packets], [last]]


def test_each_part_of_a_message_has_a_byte() -> None:
    packets, last = parted(np.array([0, 1, 3]), 2, 4096)
    assert packets.tolist() == [0, 0, 1, 1, 1, 1]
    assert last.tolist() == [0, 0, 1, 1, 2, 1]


def test_independent_flows_wait_for_nothing() -> None:
    ones = np.ones(3, dtype=np.int64)
    numbers = independent(ones * 2, ones, ones, ones, ones)
    assert len(numbers) == 3
    assert numbers.waits_for(2).tolist() == []
