"""NSCC's four quadrants, its fast increase, QuickAdapt and losses, in numbers worked out by hand.

The network has the rule's reference product, 100 Gb/s times 12 us, so a packet per gap of 330 ns
makes a window of 1.5 * 12,000 / 330 packets, and the constants are those of the table.
"""

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import LoadBalancer, Scenario, Transport
from fattree.units import PS_PER_NS, PS_PER_US
from hostagent.rules import rules
from hostagent.transports import congestion, nscc
from hostagent.transports.state import PSN_WINDOW, Congestion
from tests.hostagent.conftest import Sender

ONE = nscc.ONE
BASE_PS = 12 * PS_PER_US
GAP_PS = 330 * PS_PER_NS
TARGET_PS = 12 * PS_PER_US
# Long after the last cut, payment and QuickAdapt, in which nothing has begun.
NOW_PS = 1_000 * PS_PER_US


@pytest.fixture
def sender() -> Sender:
    """Return a flow with 40 packets as its window, 20 outstanding and a settled mean delay."""
    flow = Sender(
        Scenario(transport=Transport(recovery="sack", congestion="nscc")),
        packets=400,
        gap_ps=GAP_PS,
    )
    flow.rules = flow.rules._replace(
        target_ps=TARGET_PS, zero_load_rtt_ps=BASE_PS, bdp_scale=ONE, congestion=Congestion.NSCC
    )
    flow.state.base_ps = BASE_PS
    congestion.start(flow.state, flow.rules, hops=6)
    flow.state.window = 40 * ONE
    flow.state.sent = 20
    flow.state.first_ps = 0
    flow.state.adjusted_ps = NOW_PS
    flow.state.quick_ps = 2 * NOW_PS
    return flow


def ack(flow: Sender, delay_ps: int, marked: bool, packets: int = 1, now_ps: int = NOW_PS) -> float:
    """Let `packets` more be acknowledged; return the window in packets."""
    flow.state.acked += packets
    nscc.on_ack(flow.state, flow.rules, marked, BASE_PS + delay_ps, now_ps)
    return float(flow.state.window / ONE)


def test_the_window_opens_at_one_and_a_half_times_the_product(sender: Sender) -> None:
    congestion.start(sender.state, sender.rules, hops=6)
    assert sender.state.window / ONE == pytest.approx(18_000 / 330, abs=1e-4)
    sender.state.sent = 54
    assert not congestion.allows(sender.state, sender.rules)
    sender.state.sent = 53
    assert congestion.allows(sender.state, sender.rules)


def test_unmarked_below_the_target_grows_in_proportion_to_what_is_left(sender: Sender) -> None:
    # Nine packets at a quarter of the target: 4 * 9 us / 12 us = 3 packets a window, so 27 / 40.
    assert ack(sender, 3 * PS_PER_US, False, packets=9) == pytest.approx(40 + 27 / 40, abs=1e-4)
    # At half of it: 2 packets a window.
    window = ack(sender, 6 * PS_PER_US, False, packets=9)
    assert window == pytest.approx(40.675 + 18 / 40.675, abs=1e-4)


@pytest.mark.parametrize("delay_ps", [TARGET_PS, 3 * TARGET_PS])
def test_unmarked_from_the_target_on_grows_by_five_packets_a_window(
    sender: Sender, delay_ps: int
) -> None:
    assert ack(sender, delay_ps, False, packets=9) == pytest.approx(40 + 45 / 40, abs=1e-4)


def test_increases_are_paid_after_more_than_eight_packets(sender: Sender) -> None:
    assert ack(sender, TARGET_PS, False, packets=8) == 40
    assert ack(sender, TARGET_PS, False) == pytest.approx(40 + 45 / 40, abs=1e-4)


def test_or_after_a_round_trip_and_then_with_a_little_more(sender: Sender) -> None:
    now_ps = NOW_PS + BASE_PS
    assert ack(sender, TARGET_PS, False, now_ps=now_ps - 1) == 40
    window = ack(sender, TARGET_PS, False, now_ps=now_ps)
    assert window == pytest.approx(40 + 10 / 40 + 0.15, abs=1e-4)
    assert ack(sender, TARGET_PS, False, now_ps=now_ps + 1) == window


def test_marked_from_the_target_on_cuts_by_the_means_share_above_it(sender: Sender) -> None:
    sender.state.mean_delay_ps = 2 * TARGET_PS
    # The mean stays at 24 us: 0.8 * (24 - 12) / 24 = 0.4 of 40 packets.
    assert ack(sender, 2 * TARGET_PS, True) == pytest.approx(24, abs=1e-3)


def test_it_cuts_once_a_zero_load_round_trip(sender: Sender) -> None:
    sender.state.mean_delay_ps = 2 * TARGET_PS
    sender.state.adjusted_ps = sender.state.quick_ps
    ack(sender, 2 * TARGET_PS, True)
    assert ack(sender, 2 * TARGET_PS, True, now_ps=NOW_PS + BASE_PS) == pytest.approx(24, abs=1e-3)
    window = ack(sender, 2 * TARGET_PS, True, now_ps=NOW_PS + BASE_PS + 1)
    assert window == pytest.approx(14.4, abs=1e-3)


def test_it_cuts_by_half_at_most_and_never_below_a_packet(sender: Sender) -> None:
    sender.state.mean_delay_ps = 100 * TARGET_PS
    assert ack(sender, 100 * TARGET_PS, True) == 20
    sender.state.window = ONE
    sender.state.decreased_ps = 0
    assert ack(sender, 100 * TARGET_PS, True) == 1


def test_the_mean_decides_whether_a_late_mark_cuts(sender: Sender) -> None:
    sender.state.mean_delay_ps = TARGET_PS // 2
    assert ack(sender, 2 * TARGET_PS, True) == 40


def test_marked_below_the_target_leaves_the_window_alone(sender: Sender) -> None:
    sender.state.mean_delay_ps = 3 * TARGET_PS
    assert ack(sender, TARGET_PS - 1, True, packets=20) == 40
    assert sender.state.owed == 0


def test_the_mean_moves_by_an_eightieth(sender: Sender) -> None:
    ack(sender, 8 * PS_PER_US, True)
    assert sender.state.mean_delay_ps == PS_PER_US // 10
    # Late but unmarked counts as a quarter of the base RTT: (3 - 0.1) / 80 us more.
    ack(sender, 2 * TARGET_PS, False)
    assert sender.state.mean_delay_ps == PS_PER_US // 10 + 36_250


def test_a_window_without_delay_makes_it_grow_at_once(sender: Sender) -> None:
    clear_ps = PS_PER_US - 1
    ack(sender, clear_ps, False, packets=20)
    before = ack(sender, clear_ps, False, packets=20)
    assert not sender.state.is_clear
    # From here on a quarter of a packet for every one: 4 packets, one more.
    assert ack(sender, clear_ps, False, packets=4) == pytest.approx(before + 1, abs=1e-4)
    ack(sender, PS_PER_US, False)
    assert not sender.state.is_clear and sender.state.clear == 0


def test_no_window_is_larger_than_the_first(sender: Sender) -> None:
    for _ in range(100):
        window = ack(sender, 0, False, packets=9)
    assert window == pytest.approx(18_000 / 330, abs=1e-4)


def test_quick_adapt_takes_what_has_arrived_as_the_window(sender: Sender) -> None:
    sender.state.quick_ps = NOW_PS - 1
    # 6 packets are less than an eighth of 54.5.
    assert ack(sender, 4 * TARGET_PS + 1, True, packets=6) == 6
    assert sender.state.quick_ps == NOW_PS + BASE_PS + TARGET_PS
    # Marks of the 14 that were under way then are ignored, however late.
    sender.state.mean_delay_ps = 10 * TARGET_PS
    assert ack(sender, 10 * TARGET_PS, True, packets=13) == 6
    assert ack(sender, 10 * TARGET_PS, True) == 3


@pytest.mark.parametrize(("delay_ps", "packets"), [(4 * TARGET_PS, 6), (4 * TARGET_PS + 1, 7)])
def test_quick_adapt_needs_four_targets_and_little_that_arrives(
    sender: Sender, delay_ps: int, packets: int
) -> None:
    sender.state.quick_ps = NOW_PS - 1
    assert ack(sender, delay_ps, True, packets=packets) == 40


@pytest.mark.parametrize(
    ("acked", "late_ps", "window"), [(5, 0, 40), (5, 1, 5), (6, 1, 40), (0, 1, 1), (1, 1, 1)]
)
def test_quick_adapt_comes_after_its_period_with_less_than_an_eighth(
    sender: Sender, acked: int, late_ps: int, window: int
) -> None:
    # The largest window is 1.5 * 12 us / 375 ns = 48 packets, an eighth of it 6.
    sender.state.gap_ps = 375 * PS_PER_NS
    sender.state.quick_ps = NOW_PS
    now_ps = NOW_PS + late_ps
    assert ack(sender, 5 * TARGET_PS, True, packets=acked, now_ps=now_ps) == window


@pytest.mark.parametrize(
    ("delay_ps", "marked", "sample_ps"),
    [
        (TARGET_PS - 1, False, TARGET_PS - 1),
        (TARGET_PS, False, TARGET_PS),
        # A quarter of the base RTT: that queue is draining.
        (TARGET_PS + 1, False, BASE_PS // 4),
        (TARGET_PS + 1, True, TARGET_PS + 1),
    ],
)
def test_the_mean_takes_unmarked_delays_up_to_the_target(
    sender: Sender, delay_ps: int, marked: bool, sample_ps: int
) -> None:
    ack(sender, delay_ps, marked)
    assert sender.state.mean_delay_ps == sample_ps // 80


def test_the_first_period_of_quick_adapt_only_begins(sender: Sender) -> None:
    sender.state.quick_ps = 0
    assert ack(sender, 5 * TARGET_PS, True) == 40
    assert sender.state.quick_ps == NOW_PS + BASE_PS + TARGET_PS
    assert ack(sender, 5 * TARGET_PS, True, now_ps=sender.state.quick_ps + 1) == 1


@pytest.mark.parametrize(("late_ps", "window"), [(1, 40), (0, 40.15)])
def test_the_first_round_trip_of_increases_begins_with_the_first_packet(
    sender: Sender, late_ps: int, window: float
) -> None:
    sender.state.adjusted_ps = 0
    sender.state.first_ps = NOW_PS - BASE_PS + late_ps
    nscc.adjust(sender.state, sender.rules, NOW_PS)
    assert sender.state.window / ONE == pytest.approx(window, abs=1e-4)


@pytest.mark.parametrize(("packets", "is_clear"), [(40, False), (41, True)])
def test_more_than_a_window_must_have_met_no_queue(
    sender: Sender, packets: int, is_clear: bool
) -> None:
    ack(sender, PS_PER_US - 1, False, packets=packets)
    assert bool(sender.state.is_clear) == is_clear


@pytest.mark.parametrize(("excess_ps", "is_cut"), [(-1, False), (0, False), (1, True)])
def test_a_mean_at_the_target_is_no_cut_and_lets_the_next_one_cut(
    sender: Sender, excess_ps: int, is_cut: bool
) -> None:
    # The sample is as the mean is, which so stays.
    sender.state.mean_delay_ps = TARGET_PS + excess_ps
    nscc.shrink(sender.state, sender.rules, NOW_PS)
    assert (sender.state.decreased_ps == NOW_PS) == is_cut


def test_a_packet_that_has_timed_out_costs_one_of_the_window() -> None:
    flow = Sender(Scenario(transport=Transport(recovery="sack", congestion="nscc")), packets=60)
    for _ in range(60):
        flow.send()
    before = flow.state.window
    for _ in range(3):
        flow.send(flow.ready_ps())
    assert flow.state.window == before - 3 * ONE
    flow.state.window = ONE
    nscc.give_up_a_packet(flow.state)
    assert flow.state.window == ONE


def test_a_late_hole_that_is_sent_again_costs_nothing() -> None:
    """Under spraying it may be reordering: the public simulator's SLEEK leaves the window, too."""
    quick = Transport(recovery="sack", congestion="nscc", sack_threshold=3)
    flow = Sender(Scenario(transport=quick), packets=60)
    for _ in range(8):
        flow.send()
    for psn in range(1, 8):
        flow.ack(psn, flow.rules.zero_load_rtt_ps + psn, held=(psn,))
    before = flow.state.window
    assert flow.send()[0] == 0, "resent, as more than three above it have arrived"
    assert flow.state.window == before
    # Nothing comes of it, so that it times out.
    while flow.send(flow.ready_ps())[0] != 0:
        pass
    assert flow.state.backoff == 1 and flow.state.window == before - ONE


def test_an_ack_without_a_round_trip_time_counts_with_the_mean(sender: Sender) -> None:
    sender.state.mean_delay_ps = 6 * PS_PER_US
    sender.state.acked += 9
    nscc.on_ack(sender.state, sender.rules, False, -1, NOW_PS)
    assert sender.state.window / ONE == pytest.approx(40 + 18 / 40, abs=1e-4)
    assert sender.state.mean_delay_ps == 6 * PS_PER_US


def test_the_scale_is_the_networks_product_over_the_references() -> None:
    scenario = Scenario(transport=Transport(recovery="sack", congestion="nscc"))
    chosen = rules(scenario)
    # 800 Gb/s times 6.253 us over 100 Gb/s times 12 us.
    assert chosen.bdp_scale / ONE == pytest.approx(8 * 6.253 / 12, abs=1e-3)
    assert chosen.target_ps == scenario.zero_load_rtt_ps
    slow = scenario.model_copy(
        update={"fabric": scenario.fabric.model_copy(update={"latency_ns": 10**9})}
    )
    assert rules(slow).bdp_scale == PSN_WINDOW * ONE


def test_nscc_has_marks_where_the_load_balancer_has_none() -> None:
    nscc_flows = Transport(recovery="sack", congestion="nscc")
    assert Scenario(policy="ofan").ecn_percent is None
    assert Scenario(policy="ofan", transport=nscc_flows).ecn_percent == 20
    assert Scenario(policy="host_pkt_ar", transport=nscc_flows).ecn_percent == 10
    by_user = LoadBalancer(ecn_percent=3)
    assert Scenario(policy="ofan", transport=nscc_flows, load_balancer=by_user).ecn_percent == 3


def test_nscc_needs_sack() -> None:
    with pytest.raises(ExperimentError, match='"nscc" needs transport'):
        rules(Scenario(transport=Transport(congestion="nscc")))
