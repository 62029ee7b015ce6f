"""DCQCN's cuts and stages in numbers worked out by hand, from Zhu et al. (SIGCOMM 2015)."""

import pytest

from fattree.experiment.model import Scenario, Transport
from fattree.units import PS_PER_US
from hostagent.transports import dcqcn
from tests.hostagent.conftest import GAP_PS, Sender

ONE = dcqcn.ONE
NOW_PS = 1_000 * PS_PER_US


@pytest.fixture
def flow() -> Sender:
    """Return a flow that has sent a packet and been told of no mark yet."""
    sender = Sender(Scenario(transport=Transport(congestion="dcqcn")), packets=4_000)
    sender.send(0)
    return sender


def mark(flow: Sender, now_ps: int) -> float:
    """Let a CNP arrive; return the rate as a share of the full one."""
    dcqcn.on_mark(flow.state, flow.rules, now_ps)
    return float(flow.state.rate / ONE)


def after(flow: Sender, us: float) -> float:
    """Return the rate so long after the CNP at NOW_PS."""
    dcqcn.elapse(flow.state, flow.rules, NOW_PS + round(us * PS_PER_US))
    return float(flow.state.rate / ONE)


def test_the_first_cnp_halves_the_rate_and_so_doubles_the_gap(flow: Sender) -> None:
    assert mark(flow, NOW_PS) == 0.5
    flow.send(NOW_PS)
    assert flow.ready_ps() == NOW_PS + 2 * GAP_PS


def test_of_cnps_within_50_us_one_counts(flow: Sender) -> None:
    assert mark(flow, NOW_PS) == 0.5
    assert mark(flow, NOW_PS + 50 * PS_PER_US - 1) == 0.5
    # Alpha is still 1: the second cut halves, too.
    assert mark(flow, NOW_PS + 50 * PS_PER_US) == 0.25


def test_alpha_decays_by_a_256th_every_55_us_and_grows_back_with_a_cnp(flow: Sender) -> None:
    mark(flow, NOW_PS)
    after(flow, 54.9)
    assert flow.state.alpha == ONE
    after(flow, 110)
    assert flow.state.alpha / ONE == pytest.approx((255 / 256) ** 2, abs=1e-4)
    mark(flow, NOW_PS + 110 * PS_PER_US)
    expected = (255 / 256) ** 3 + 1 / 256
    assert flow.state.alpha / ONE == pytest.approx(expected, abs=1e-4)


def test_fast_recovery_halves_what_is_missing_to_the_rate_of_before(flow: Sender) -> None:
    mark(flow, NOW_PS)
    for stage in range(1, 5):
        assert after(flow, 55 * stage) == pytest.approx(1 - 2 ** -(stage + 1), abs=1e-4)


def test_additive_increase_lets_the_target_grow_by_a_thousandth(flow: Sender) -> None:
    mark(flow, NOW_PS)
    mark(flow, NOW_PS + 50 * PS_PER_US)
    assert flow.state.target_rate == ONE // 2
    after(flow, 50 + 4 * 55)
    assert flow.state.target_rate == ONE // 2
    after(flow, 50 + 7 * 55)
    assert flow.state.target_rate == ONE // 2 + 3 * (ONE // 1000)


def test_ten_megabytes_sent_are_a_stage_as_55_us_are(flow: Sender) -> None:
    packets = 10_000_000 // (4096 + 62)
    mark(flow, NOW_PS)
    for _ in range(packets - 1):
        flow.state.transmissions += 1
        dcqcn.on_sent(flow.state, flow.rules, NOW_PS)
    assert flow.state.rate == ONE // 2
    flow.state.transmissions += 1
    dcqcn.on_sent(flow.state, flow.rules, NOW_PS)
    assert flow.state.rate == 3 * ONE // 4


def test_with_timer_and_counter_far_enough_the_target_grows_ten_times_as_much(
    flow: Sender,
) -> None:
    mark(flow, NOW_PS)
    mark(flow, NOW_PS + 50 * PS_PER_US)
    flow.state.ticks = 6
    flow.state.transmissions += 6 * flow.rules.counter_packets
    dcqcn.recover(flow.state, flow.rules)
    assert flow.state.target_rate == ONE // 2 + ONE // 100


@pytest.mark.parametrize(
    ("ticks", "counts", "step"),
    [
        (4, 4, 0),
        (5, 0, ONE // 1000),
        (0, 5, ONE // 1000),
        # Hyper increase needs more than five of both.
        (5, 6, ONE // 1000),
        (6, 5, ONE // 1000),
        (6, 6, ONE // 100),
    ],
)
def test_targets_grow_from_the_fifth_stage_on(
    flow: Sender, ticks: int, counts: int, step: int
) -> None:
    state = flow.state
    state.rate = state.target_rate = ONE // 2
    state.ticks = ticks
    state.transmissions = state.cut_at + (counts + 1) * flow.rules.counter_packets - 1
    dcqcn.recover(state, flow.rules)
    assert state.target_rate == ONE // 2 + step


@pytest.mark.parametrize(
    ("rate", "target", "after"),
    [(ONE - 3, ONE, ONE - 1), (ONE - 1, ONE, ONE), (ONE, ONE - 1, ONE), (7, 8, 8)],
)
def test_half_of_the_way_is_rounded_up(flow: Sender, rate: int, target: int, after: int) -> None:
    flow.state.rate, flow.state.target_rate = rate, target
    assert dcqcn.is_limited(flow.state)
    dcqcn.recover(flow.state, flow.rules)
    assert flow.state.rate == after


def test_a_rate_comes_back_to_the_full_one_and_never_falls_below_a_thousandth(
    flow: Sender,
) -> None:
    for cnp in range(100):
        mark(flow, NOW_PS + 50 * PS_PER_US * cnp)
    assert flow.state.rate == ONE // 1000
    assert after(flow, 10**7) == 1
    assert not dcqcn.is_limited(flow.state)


@pytest.mark.parametrize("gap_ps", [1, GAP_PS, 2**46])
@pytest.mark.parametrize("rate", [ONE // 1000, 12_345, ONE - 1])
def test_no_gap_is_too_long_for_a_rate(flow: Sender, gap_ps: int, rate: int) -> None:
    flow.state.rate = rate
    sender = dcqcn.slowed(flow.state, gap_ps)
    assert sender == gap_ps * ONE // rate and sender < 2**63
