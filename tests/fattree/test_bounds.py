"""The lower bounds of appendix B: the printed values, and properties of any setting."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand.bounds import (
    Timing,
    ack_times_ps,
    arrival_ps,
    data_only_packets,
    one_way_ps,
    plain_sum_ps,
    return_ps,
)
from fattree.demand.traffic import flows
from fattree.experiment.model import Collective, Fabric, Packets, Scenario, Transport
from fattree.routes.bounds import bound_ps

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
    assert times[-1] == 17_056_940
    # The bound that holds for all phases is an ACK's slot less.
    assert bound_of("permutation") == bound_of("permutation", k=4) == 17_056_940 - 840
    assert (steps[:178] == timing.data_slot_ps + timing.ack_slot_ps).all()
    assert steps[178] != steps[177]


def test_the_all_to_all_bounds() -> None:
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
    assert bound_of("permutation", size=4096) == DEFAULT.zero_load_rtt_ps
    short = DEFAULT.path_ps(6, 62 + 1) + DEFAULT.path_ps(6, 64)
    assert bound_of("permutation", size=1) == short


def test_a_short_last_packet_may_overtake_the_one_before() -> None:
    whole, short = (bound_of("pairs", size=size, pairs=((0, 127),)) for size in (8192, 4096 + 1))
    assert short == DEFAULT.zero_load_rtt_ps
    assert whole == DEFAULT.slot_ps + DEFAULT.zero_load_rtt_ps


def test_a_short_last_packet_holds_a_link_for_what_it_has() -> None:
    """Three senders of ten full packets and one of a byte: 62 bytes of headers, a gap of 20."""
    pairs = ((20, 0), (40, 0), (60, 0))
    held = 29 * DEFAULT.slot_ps + 3 * DEFAULT.tx_ps(62 + 1 + 20)
    bound = bound_of("pairs", size=10 * 4096 + 1, pairs=pairs)
    assert bound == held + DEFAULT.zero_load_rtt_ps - 1


def test_hosts_that_only_send_are_not_held_up_by_acks() -> None:
    single = bound_of("pairs", pairs=((0, 127),))
    both = bound_of("pairs", pairs=((0, 127), (127, 0)))
    assert single == 255 * DEFAULT.slot_ps + DEFAULT.zero_load_rtt_ps
    assert both == 17_056_940 - DEFAULT.ack_slot_ps > single


def test_hosts_that_send_to_two_are_held_to_their_sending() -> None:
    assert bound_of("pairs", pairs=((0, 127), (0, 126), (127, 0))) == one_way_ps(
        Timing.of(DEFAULT), 512
    )


def test_near_hosts_are_faster() -> None:
    far, pod, edge = (bound_of("pairs", pairs=((0, host), (host, 0))) for host in (127, 4, 1))
    assert far > pod > edge


def test_subflows_of_whole_packets_do_not_change_the_bound() -> None:
    case = Scenario(policy="subflow")
    assert bound_ps(case, flows(case)) == bound_of("permutation")


def test_steps_of_a_ring_add_up() -> None:
    single_step, three_steps = (bound_of("ring", steps=steps) for steps in (1, 3))
    assert three_steps == 3 * single_step


def test_a_step_that_waits_for_data_only_begins_when_they_arrive() -> None:
    """Host 0 sends to 127, which answers to another: no ACK is waited for."""
    case = Scenario(collective=Collective(matrix="pairs", pairs=((0, 127), (127, 64))))
    bound = flows(case)
    chained = replace(bound, after_offset=np.array([0, 0, 1]), after=np.array([0], dtype=np.int64))
    timing = Timing.of(case)
    arrival = 255 * case.slot_ps + timing.propagation_ps + timing.data_path_ps
    assert bound_ps(case, chained) == arrival + one_way_ps(timing, 256)


def test_a_busy_host_sends_without_a_break() -> None:
    """Three transfers that wait for nothing: each alone is done after a third of the time."""
    pairs = ((0, 100), (0, 101), (0, 102))
    case = Scenario(
        collective=Collective(matrix="pairs", pairs=pairs), transport=Transport(sharing="active")
    )
    assert bound_ps(case, flows(case)) == one_way_ps(Timing.of(case), 3 * 256)


def test_small_packets_raise_the_bound() -> None:
    case = Scenario(packets=Packets(payload_bytes=512))
    assert bound_ps(case, flows(case)) > 17_056_940


def test_the_link_to_a_host_of_several_senders_is_in_the_bound() -> None:
    senders = (20, 40, 60)
    case = Scenario(
        collective=Collective(matrix="pairs", pairs=tuple((sender, 0) for sender in senders))
    )
    timing = Timing.of(case)
    data = (3 * 256 - 1) * case.slot_ps
    assert bound_ps(case, flows(case)) == data + arrival_ps(timing) + return_ps(timing)


def test_two_sends_apart_have_the_bound_of_one() -> None:
    case = Scenario(collective=Collective(matrix="pairs", pairs=((0, 100), (0, 101))))
    bound = flows(case)
    apart = replace(bound, start_ps=np.array([0, 10**9]))
    gaps = np.full(2, case.slot_ps)
    assert bound_ps(case, apart, gaps) == one_way_ps(Timing.of(case), 256)
    assert bound_ps(case, bound, gaps) > bound_ps(case, apart, gaps)


def test_few_acks_and_slow_paces_are_not_held_up_by_acks() -> None:
    few = Scenario(transport=Transport(packets_per_ack=4))
    assert bound_ps(few, flows(few)) == one_way_ps(Timing.of(few), 256)
    gaps = np.full(128, 2 * DEFAULT.slot_ps)
    slow = 255 * 2 * DEFAULT.slot_ps + DEFAULT.zero_load_rtt_ps
    assert bound_ps(DEFAULT, flows(DEFAULT), gaps) == slow


def test_an_all_to_all_needs_what_a_hosts_link_needs_for_data_and_acks() -> None:
    case = Scenario(collective=Collective(matrix="all_to_all"))
    packets = 127 * 256
    work = packets * (case.slot_ps + case.ack_slot_ps)
    near = return_ps(Timing.of(case, 2))
    assert bound_ps(case, flows(case)) == work - case.ack_slot_ps + near


def test_what_waits_for_several_sends_of_a_host_waits_for_its_link() -> None:
    pairs = ((0, 100), (0, 101), (0, 102), (0, 103))
    case = Scenario(collective=Collective(matrix="pairs", pairs=pairs))
    bound = flows(case)
    waits = replace(
        bound, after_offset=np.array([0, 0, 0, 0, 3]), after=np.array([0, 1, 2], dtype=np.int64)
    )
    assert bound_ps(case, waits) >= (3 * 256 - 1) * case.slot_ps + one_way_ps(Timing.of(case), 256)
