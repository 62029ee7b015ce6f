"""The lower bounds of appendix B: the printed values, and what must hold for any setting."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.bounds import (
    Timing,
    ack_times_ps,
    bound_ps,
    data_only_packets,
    leaves_out_receivers,
    one_way_ps,
    plain_sum_ps,
)
from fattree.experiment import Collective, Fabric, Packets, Scenario
from fattree.flows import generations
from fattree.traffic import flows
from fattree.workloads.collectives import ALGORITHMS

DEFAULT = Scenario()
settings_of_fabrics = st.builds(
    lambda k, latency, rate: Scenario(fabric=Fabric(k=k, latency_ns=latency, rate_gbps=rate)),
    st.sampled_from([4, 8]),
    st.integers(1, 5_000),
    st.sampled_from([10, 100, 400, 800]),
)


def bound_of(matrix: str, k: int = 8, size: int = 1 << 20, **collective: object) -> int:
    case = Scenario(
        fabric=Fabric(k=k),
        collective=Collective.model_validate(
            {"matrix": matrix, "message_bytes": size, **collective}
        ),
    )
    return bound_ps(case, flows(case))


def test_the_permutations_printed_values() -> None:
    """Appendix B: i_1 = 78, mode 3 from ACK 179 on, 17.05694 us for 256 packets."""
    timing = Timing.of(DEFAULT)
    times = ack_times_ps(timing, 256)
    steps = np.diff(times)
    assert data_only_packets(timing) == 78
    assert times[-1] == 17_056_940 == bound_of("permutation") == bound_of("permutation", k=4)
    assert (steps[:178] == timing.data_slot_ps + timing.ack_slot_ps).all()
    assert steps[178] != steps[177]


def test_the_all_to_all_bounds() -> None:
    assert bound_of("all_to_all") == 1_391_807_660
    assert round(plain_sum_ps(Timing.of(DEFAULT), 127 * 256) / 10**5) == 13_646


@given(settings_of_fabrics, st.sampled_from([2, 4, 6]), st.integers(1, 600))
def test_acks_arrive_in_order_and_never_before_an_empty_round_trip(
    case: Scenario, hops: int, packets: int
) -> None:
    timing = Timing.of(case, hops)
    times = ack_times_ps(timing, packets)
    assert len(times) == packets
    assert (np.diff(times) > 0).all()
    assert times[0] >= 2 * timing.propagation_ps + hops * (timing.data_ps + timing.ack_ps)
    assert times[-1] >= one_way_ps(timing, packets) - timing.data_slot_ps * (packets > 1)


@given(settings_of_fabrics, st.sampled_from([2, 4, 6]), st.integers(1, 300))
def test_a_larger_message_takes_longer(case: Scenario, hops: int, packets: int) -> None:
    timing = Timing.of(case, hops)
    assert ack_times_ps(timing, packets + 1)[-1] > ack_times_ps(timing, packets)[-1]


def test_one_packet_takes_a_zero_load_round_trip() -> None:
    assert bound_of("permutation", size=1) == DEFAULT.zero_load_rtt_ps


def test_hosts_that_only_send_are_not_held_up_by_acks() -> None:
    one = bound_of("pairs", pairs=((0, 127),))
    both = bound_of("pairs", pairs=((0, 127), (127, 0)))
    assert one == 255 * DEFAULT.slot_ps + DEFAULT.zero_load_rtt_ps
    assert both == 17_056_940 > one


def test_hosts_that_receive_less_than_they_send_are_held_to_their_sending() -> None:
    assert bound_of("pairs", pairs=((0, 127), (0, 126), (127, 0))) == one_way_ps(
        Timing.of(DEFAULT), 512
    )


def test_near_hosts_are_faster() -> None:
    far, pod, edge = (bound_of("pairs", pairs=((0, other), (other, 0))) for other in (127, 4, 1))
    assert far > pod > edge


def test_subflows_of_whole_packets_do_not_change_the_bound() -> None:
    case = Scenario(policy="subflow")
    assert bound_ps(case, flows(case)) == bound_of("permutation")


def test_steps_of_a_ring_add_up() -> None:
    one, three = (bound_of("ring", steps=steps) for steps in (1, 3))
    assert three == 3 * one


def test_a_step_that_waits_for_data_only_begins_when_they_arrive() -> None:
    """Host 0 sends to 127, which answers to another: no ACK is waited for."""
    case = Scenario(collective=Collective(matrix="pairs", pairs=((0, 127), (127, 64))))
    found = flows(case)
    chained = replace(found, after_offset=np.array([0, 0, 1]), after=np.array([0], dtype=np.int64))
    timing = Timing.of(case)
    arrival = 255 * case.slot_ps + timing.propagation_ps + timing.data_path_ps
    assert bound_ps(case, chained) == arrival + one_way_ps(timing, 256)


def test_a_graphs_busiest_host_sends_without_a_break() -> None:
    """Three transfers that wait for nothing: each alone is done after a third of the time."""
    pairs = ((0, 100), (0, 101), (0, 102))
    case = Scenario(collective=Collective(matrix="pairs", pairs=pairs))
    found = flows(case)
    graph = replace(found, share=np.ones(len(found), dtype=np.int64))
    slots = np.full(len(found), case.slot_ps)
    assert bound_ps(case, graph, slots) == (3 * 256 - 1) * case.slot_ps


@pytest.mark.parametrize("factor", [1, 2])
def test_paced_gaps_replace_the_slot(factor: int) -> None:
    found = flows(DEFAULT)
    gaps = np.full(len(found), factor * DEFAULT.slot_ps, dtype=np.int64)
    timing = Timing.of(DEFAULT, data_slot_ps=factor * DEFAULT.slot_ps)
    assert bound_ps(DEFAULT, found, gaps) == ack_times_ps(timing, 256)[-1]


def test_small_packets_raise_the_bound() -> None:
    case = Scenario(packets=Packets(payload_bytes=512))
    assert bound_ps(case, flows(case)) > 17_056_940


BY_ALGORITHM = [(matrix, name) for matrix, known in ALGORITHMS.items() for name in known]


@pytest.mark.parametrize(
    "collective",
    [
        *(Collective(matrix=matrix) for matrix in ("permutation", "all_to_all", "ring")),
        Collective(matrix="hierarchical_ring", servers_per_ring=2),
        Collective(matrix="pairs", pairs=((0, 5), (0, 5), (1, 6))),
        *(Collective.model_validate({"matrix": m, "algorithm": a}) for m, a in BY_ALGORITHM),
    ],
    ids=lambda one: f"{one.matrix}-{one.algorithm}",
)
def test_of_no_other_collective_hosts_share_the_link_of_one(collective: Collective) -> None:
    scenario = Scenario(fabric=Fabric(k=4), collective=collective)
    found = flows(scenario)
    # In one round after another.
    first = generations(scenario.tree, found) * scenario.tree.hosts
    source, destination = (first + found.source).tolist(), (first + found.destination).tolist()
    slots = max(source + destination) + 1
    sends, gets = (np.bincount(ends, found.packets, slots) for ends in (source, destination))
    ways = {*zip(source, destination, strict=True)}
    senders = np.bincount([to for _, to in ways], minlength=slots)
    assert leaves_out_receivers(scenario) or ((gets <= sends) | (senders <= 1)).all()


def test_of_an_incast_they_do() -> None:
    pairs = Collective(matrix="pairs", pairs=((1, 0), (2, 0)))
    incast = Scenario(collective=pairs)
    assert leaves_out_receivers(incast)
    alone = incast.model_copy(update={"collective": Collective(matrix="pairs", pairs=((1, 0),))})
    assert bound_ps(incast, flows(incast)) == bound_ps(alone, flows(alone))
    tree = Collective(matrix="all_reduce", algorithm="double_tree")
    assert leaves_out_receivers(Scenario(collective=tree))
