"""From which packet or instant on a hole is late, times out, or is left alone: both sides of each
bound.
"""

import pytest

from fattree.experiment.model import Scenario, Transport
from hostagent.rules import sack_threshold
from hostagent.transports import nscc, sack
from hostagent.transports.state import PSN_WINDOW
from tests.hostagent.conftest import GAP_PS, Sender

ONE = nscc.ONE
RTT = Scenario().zero_load_rtt_ps


def flow(packets: int = 64, **options: object) -> Sender:
    """Return a flow of SACK whose packets have all left at 0."""
    chosen = Transport.model_validate({"recovery": "sack"} | options)
    sender = Sender(Scenario(transport=chosen), packets=packets)
    for _ in range(packets):
        sender.send(0)
    return sender


def is_resending(sender: Sender) -> bool:
    return bool(sender.state.round_next < sender.state.round_end)


@pytest.mark.parametrize("threshold", [1, 6, 32, None])
@pytest.mark.parametrize("more", [0, 1])
def test_a_hole_is_late_when_more_than_the_threshold_have_arrived_above_it(
    threshold: int | None, more: int
) -> None:
    sender = flow(sack_threshold=threshold)
    for psn in range(1, 1 + (threshold or 32) + more):
        assert not is_resending(sender)
        sender.ack(psn, RTT)

    assert is_resending(sender) == bool(more)


def test_the_threshold_is_32_unless_the_window_sets_it() -> None:
    assert sack_threshold(Scenario(transport=Transport(recovery="sack"))) == 32
    by_window = Transport(recovery="sack", congestion="nscc")
    assert sack_threshold(Scenario(transport=by_window)) == 0
    by_threshold = by_window.model_copy(update={"sack_threshold": 6})
    assert sack_threshold(Scenario(transport=by_threshold)) == 6


@pytest.mark.parametrize(
    ("window", "arrived", "end"),
    [
        # Five packets at least: the bound is one and a half windows from 4 packets on.
        (1 * ONE, 4, 0),
        (1 * ONE, 5, 16),
        (3 * ONE, 4, 0),
        (3 * ONE, 5, 16),
        (4 * ONE, 5, 0),
        (4 * ONE, 6, 15),
        (4 * ONE, 7, 15),
        # Rounded down: 1.5 * 4.6 = 6.9.
        (4 * ONE + 39_322, 6, 15),
        (40 * ONE, 59, 0),
        (40 * ONE, 60, -39),
        # The largest window, 1.5 * RTT / gap, is the most.
        (200 * ONE, 3 * RTT // (2 * GAP_PS) - 1, 0),
        (200 * ONE, 3 * RTT // (2 * GAP_PS), 21 - 3 * RTT // (2 * GAP_PS)),
    ],
)
def test_a_hole_is_late_when_one_and_a_half_windows_have_arrived_above_it(
    window: int, arrived: int, end: int
) -> None:
    sender = Sender(Scenario(transport=Transport(recovery="sack", congestion="nscc")), 400)
    sender.state.window = window
    sender.state.lowest = 3
    sender.state.acked = 3 + arrived
    sender.state.highest = 20
    assert sack.end_of_late(sender.state, sender.rules) == end


def test_late_holes_wait_until_the_patient_instant_itself() -> None:
    for early_ps, expected in ((1, False), (0, True)):
        sender = flow(sack_threshold=3)
        sender.state.patient_ps = 2 * RTT
        for psn in (1, 2, 3):
            sender.ack(psn, RTT)
        sender.ack(4, 2 * RTT - early_ps)
        assert is_resending(sender) == expected


def test_a_hole_at_the_end_of_the_last_round_is_the_lowest() -> None:
    """`recover` is the number below which holes have been in a round: a hole there has not been."""
    sender = flow(sack_threshold=3, congestion="swift")
    sender.state.recover = 2
    for psn in (0, 1, 3, 4, 5):
        sender.ack(psn, RTT)
    before = sender.state.window
    sender.state.decreased_ps = -RTT
    sender.ack(6, 3 * RTT)
    assert is_resending(sender)
    assert sender.state.window <= before // 2 + 1


@pytest.mark.parametrize(("sent_ps", "psn"), [(-1, 1), (0, 1), (1, 2)])
def test_a_round_sends_what_has_left_by_its_instant(sent_ps: int, psn: int) -> None:
    sender = flow(packets=4)
    sender.packets[1].sent_ps = RTT + sent_ps
    sack.start_round(sender.state, sender.packets, 1, end=4, before_ps=RTT)
    assert sender.state.round_next == psn


@pytest.mark.parametrize(("backoff", "doublings"), [(0, 0), (15, 15), (16, 16), (17, 16)])
def test_a_timeout_doubles_sixteen_times_at_most(backoff: int, doublings: int) -> None:
    sender = flow()
    sender.state.backoff = backoff
    wait_ps = sack.deadline_ps(sender.state, sender.rules, sender.packets)
    assert wait_ps == 3 * RTT << doublings


def test_a_packet_times_out_at_its_deadline_not_before() -> None:
    deadline_ps = 3 * RTT
    early, due = flow(packets=10, sack_threshold=3), flow(packets=10, sack_threshold=3)
    for sender in (early, due):
        sender.state.packets = 20
    assert early.send(deadline_ps - 1)[0] == 10
    assert due.send(deadline_ps)[0] == 0


def test_the_ring_is_the_most_that_is_ahead_of_the_lowest_hole() -> None:
    sender = flow(packets=4)
    sender.state.packets = PSN_WINDOW
    sender.state.lowest = 1
    reach = len(sender.packets)
    for sent, expected in ((reach, True), (reach + 1, False)):
        sender.state.sent = sent
        assert sack.has_new(sender.state, sender.rules, sender.packets) == expected


def test_no_round_begins_where_the_first_hole_is_the_first_that_is_not_late() -> None:
    sender = flow(sack_threshold=3)
    for psn in (1, 2, 3):
        sender.ack(psn, RTT)
    # `end_of_late` is 0, as is the lowest hole: an empty round would end a running one's marks.
    assert sender.state.recover == 0
    sender.state.recover = 4
    for psn in (0, 5, 6, 7):
        sender.ack(psn, RTT)
    assert sender.state.lowest == 4 and sender.state.late_holes == 0
    assert not is_resending(sender) and sender.state.round_end == 0
