"""PLB's and REPS's bounds: the last value that keeps a path, and the first that does not."""

import pytest

from fattree.experiment.model import Scenario
from hostagent.transports import labels, timers
from hostagent.transports.state import NEVER
from tests.hostagent.conftest import GAP_PS, Sender

RTT = Scenario().zero_load_rtt_ps


@pytest.mark.parametrize(
    ("marks", "is_good"),
    [
        # Under 40 % of the last ten.
        ("0000000111", True),
        ("0000001111", False),
        ("1110000000", True),
        ("1111000000", False),
        # A mark counts until ten ACKs are younger than the packet before it.
        ("1000000111", False),
        ("10000000111", True),
        # Of fewer than ten, of those there are.
        ("00010", True),
        ("00011", False),
        # Of more than ten, of ten.
        ("00000000000000001111", False),
        ("00000000000000000111", True),
    ],
)
def test_plb_a_path_is_good_while_under_40_per_cent_of_ten_acks_are_marked(
    plb: Sender, marks: str, is_good: bool
) -> None:
    plb.state.changed_ps = NEVER // 2
    for now_ps, mark in enumerate(marks):
        labels.judge_path(plb.state, plb.rules, mark == "1", now_ps)

    assert (plb.state.good_ps == len(marks) - 1) == is_good


@pytest.mark.parametrize(("good_ps", "changed_ps"), [(1_000, 0), (0, 1_000), (1_000, 1_000)])
def test_plb_leaves_a_path_that_is_bad_for_longer_than_its_patience(
    plb: Sender, good_ps: int, changed_ps: int
) -> None:
    for late_ps in (0, 1):
        state = plb.state
        state.good_ps, state.changed_ps, state.patience_ps = good_ps, changed_ps, 500
        state.acks_seen, state.history = 9, 0b1111
        before = state.draws
        labels.judge_path(state, plb.rules, True, 1_500 + late_ps)
        assert state.draws - before == late_ps


def test_plb_patience_is_ten_gaps_and_up_to_two_more() -> None:
    patience = []
    for seed in range(60):
        sender = Sender(Scenario(policy="host_flowlet_ar", seed=seed))
        patience.append(sender.state.patience_ps / GAP_PS)

    assert 10 <= min(patience) < 10.2 and 11.8 < max(patience) < 12


def test_reps_explores_as_many_packets_as_it_says(reps: Sender) -> None:
    labels.keep_label(reps.state, 77)
    reps.state.explore = 2
    assert [reps.send(0)[1] == 77 for _ in range(4)] == [False, False, True, False]


def test_reps_does_not_freeze_while_it_explores(reps: Sender) -> None:
    reps.state.explore = 2
    reps.send(0)
    reps.send(3 * RTT)
    assert (reps.state.oldest, reps.state.freezes, reps.state.frozen_until_ps) == (1, 0, 0)
    # Afterwards the second one's timeout does.
    reps.send(6 * RTT - 1)
    assert reps.state.freezes == 0
    reps.send(6 * RTT)
    assert reps.state.freezes == 1


def test_reps_a_timeout_while_frozen_prolongs_nothing(reps: Sender) -> None:
    reps.send(0)
    reps.send(1)
    reps.send(3 * RTT)
    until_ps = 3 * RTT + reps.rules.freeze_ps
    reps.send(3 * RTT + 1)
    assert (reps.state.oldest, reps.state.freezes) == (2, 1)
    assert reps.state.frozen_until_ps == until_ps


def test_reps_thaws_at_the_end_of_its_freezing_not_before(reps: Sender) -> None:
    labels.keep_label(reps.state, 77)
    reps.state.frozen_until_ps = 1_000
    assert reps.send(999)[1] == 77 and reps.state.explore == 0
    reps.send(1_000)
    assert reps.state.frozen_until_ps == 0
    assert reps.state.explore == reps.rules.explore_packets - 1


def test_reps_frozen_cycles_on_behind_the_label_that_it_took(reps: Sender) -> None:
    for label in (5, 6, 7):
        labels.keep_label(reps.state, label)
    reps.state.frozen_until_ps = NEVER
    reps.state.frozen_head = 1
    assert [reps.send(0)[1] for _ in range(5)] == [6, 7, 5, 6, 7]


@pytest.mark.parametrize("late_ps", [-1, 0])
def test_a_label_expires_with_its_timeout(bitmap: Sender, late_ps: int) -> None:
    bitmap.send(500)
    expired = labels.expire(
        bitmap.state, bitmap.rules, bitmap.packets, now_ps=500 + 3 * RTT + late_ps
    )
    assert expired == (late_ps == 0)


@pytest.mark.parametrize(
    ("error_ps", "rttvar_ps", "srtt_ps"),
    [
        # A quarter of the error's distance from the deviation, an eighth of the error; both
        # rounded down, below zero, too.
        (0, 75, 1_000),
        (7, 76, 1_000),
        (8, 77, 1_001),
        (96, 99, 1_012),
        (99, 99, 1_012),
        (100, 100, 1_012),
        (103, 100, 1_012),
        (104, 101, 1_013),
        (-1, 75, 999),
        (-8, 77, 999),
        (-9, 77, 998),
        (-104, 101, 987),
    ],
)
def test_a_sample_moves_mean_and_deviation_by_whole_steps(
    erasure: Sender, error_ps: int, rttvar_ps: int, srtt_ps: int
) -> None:
    erasure.state.srtt_ps, erasure.state.rttvar_ps = 1_000, 100
    timers.sample_rtt(erasure.state, 1_000 + error_ps)
    assert (erasure.state.rttvar_ps, erasure.state.srtt_ps) == (rttvar_ps, srtt_ps)


@pytest.mark.parametrize(
    ("srtt_ps", "rttvar_ps", "timeout_ps"),
    [
        (-1, 0, 3 * RTT),
        (RTT, RTT // 2, 3 * RTT),
        (RTT, RTT // 2 + 1, RTT + 4 * (RTT // 2 + 1)),
        (3 * RTT, 0, 3 * RTT),
        (3 * RTT + 1, 0, 3 * RTT + 1),
    ],
)
def test_the_timer_is_the_floor_or_what_is_longer(
    erasure: Sender, srtt_ps: int, rttvar_ps: int, timeout_ps: int
) -> None:
    erasure.state.srtt_ps, erasure.state.rttvar_ps = srtt_ps, rttvar_ps
    assert erasure.rules.timer_floor_ps == 3 * RTT
    assert timers.timeout_ps(erasure.state, erasure.rules) == timeout_ps
