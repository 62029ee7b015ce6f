"""Pacing, erasure, SACK, timeouts and MSwift (load balancers, "Transport")."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.errors import ExperimentError
from fattree.experiment.hosts import Congestion
from fattree.experiment.model import Scenario, Transport
from hostagent.rules import rules
from hostagent.transports import swift, timers, transport
from hostagent.transports.packet_states import ACKED
from hostagent.transports.sack import has_new
from hostagent.transports.state import NEVER
from tests.hostagent.conftest import GAP_PS, Sender

RTT = Scenario().zero_load_rtt_ps


def test_next_packet_is_due_a_gap_after_the_actual_start(erasure: Sender) -> None:
    erasure.send(1_000)
    assert erasure.ready_ps() == 1_000 + GAP_PS
    erasure.send(90_000)
    assert erasure.ready_ps() == 90_000 + GAP_PS


def test_jitter_stays_below_its_share_of_the_gap() -> None:
    sender = Sender(Scenario(transport=Transport(pacing_jitter=0.5)), packets=200)
    extra = []
    for _ in range(100):
        start = sender.ready_ps()
        sender.send()
        extra.append(sender.ready_ps() - start - GAP_PS)
    assert min(extra) >= 0 and max(extra) < GAP_PS // 2 and len(set(extra)) > 50


def test_erasure_stops_when_the_message_is_out_and_is_done_with_the_last_ack(
    erasure: Sender,
) -> None:
    for psn in range(16):
        assert erasure.send()[0] == psn
    # The flow stops when its next packet would be due.
    assert erasure.ready_ps() == erasure.state.due_ps + 3 * RTT
    done = [erasure.ack(psn, RTT + psn * GAP_PS) for psn in range(16)]
    assert done == [False] * 15 + [True]
    assert erasure.ready_ps() == NEVER


def test_erasure_any_packets_complete_the_message(erasure: Sender) -> None:
    for _ in range(16):
        erasure.send()
    for psn in range(1, 16):
        erasure.ack(psn, RTT + psn * GAP_PS)
    assert erasure.send()[0] == 16
    assert erasure.ack(16, 3 * RTT)


def test_erasure_stops_for_one_srtt_after_its_first_stop(erasure: Sender) -> None:
    for _ in range(15):
        erasure.send()
    erasure.ack(0, RTT)
    erasure.send()
    stop_ps = erasure.state.due_ps
    assert erasure.ready_ps() == stop_ps + RTT
    resumed = [erasure.ready_ps()]
    for _ in range(5):
        erasure.send()
        resumed.append(erasure.ready_ps())
    assert resumed == [stop_ps + RTT + number * GAP_PS for number in range(6)]


def test_erasure_reads_srtt_whenever_the_flow_might_send(erasure: Sender) -> None:
    for _ in range(15):
        erasure.send()
    erasure.ack(0, RTT)
    erasure.send()
    stop_ps = erasure.state.due_ps

    # Queues have filled: 1 comes back after twice the time, when the flow has just gone on.
    assert erasure.ready_ps() == stop_ps + RTT
    now_ps = stop_ps + RTT
    erasure.send(now_ps)
    erasure.ack(1, now_ps + 1)
    assert erasure.state.srtt_ps > RTT + GAP_PS
    assert erasure.ready_ps() == stop_ps + erasure.state.srtt_ps


def test_erasure_no_stop_is_noted_while_the_last_packet_keeps_its_gap(erasure: Sender) -> None:
    for _ in range(16):
        erasure.send(0)
    # 0 is missing, which an ACK shows before the next packet is due.
    erasure.ack(1, GAP_PS - 1)
    again_ps = erasure.ready_ps()
    assert again_ps == GAP_PS
    erasure.send(again_ps)
    assert erasure.ready_ps() == again_ps + GAP_PS + erasure.state.srtt_ps


def test_erasure_an_ack_that_shows_a_gap_lets_one_more_go_at_once(erasure: Sender) -> None:
    for _ in range(16):
        erasure.send()
    stopped_until_ps = erasure.state.due_ps + RTT
    erasure.ack(0, RTT)
    assert erasure.ready_ps() == stopped_until_ps
    # 1 and 2 are lost, or late.
    erasure.ack(3, RTT + 3 * GAP_PS)
    for _ in range(2):
        assert erasure.ready_ps() == erasure.state.due_ps < stopped_until_ps
        erasure.send(RTT + 3 * GAP_PS)
    assert erasure.ready_ps() == stopped_until_ps


def test_erasure_a_late_arrival_takes_back_what_was_missing(erasure: Sender) -> None:
    for _ in range(16):
        erasure.send()
    erasure.ack(1, RTT + GAP_PS)
    assert erasure.ready_ps() == erasure.state.due_ps
    erasure.ack(0, RTT + 2 * GAP_PS)
    assert erasure.ready_ps() > erasure.state.due_ps


def test_erasure_a_lost_ack_costs_nothing(erasure: Sender) -> None:
    for _ in range(16):
        erasure.send()
    assert not erasure.ack(4, RTT, total=5)
    assert not erasure.ack(1, RTT + 1, total=2)
    assert erasure.state.acked == 5
    assert erasure.ack(15, 2 * RTT, total=16)


@pytest.mark.parametrize("more", [0, 1])
def test_erasure_a_number_is_remembered_until_its_entry_is_anothers(
    erasure: Sender, more: int
) -> None:
    ring = len(erasure.packets)
    for _ in range(ring + more):
        erasure.send(0)

    # With one more, the entry of 0 is that of the last one, of which nothing has come.
    erasure.ack(0, RTT)
    assert erasure.state.srtt_ps == (-1 if more else RTT)
    assert erasure.packets[0].state == (0 if more else ACKED)


def test_timeout_follows_the_mean_and_the_deviation(erasure: Sender) -> None:
    assert timers.timeout_ps(erasure.state, erasure.rules) == 3 * RTT
    timers.sample_rtt(erasure.state, 2 * RTT)
    assert timers.timeout_ps(erasure.state, erasure.rules) == 2 * RTT + 4 * RTT
    for _ in range(100):
        timers.sample_rtt(erasure.state, RTT // 4)
    assert timers.timeout_ps(erasure.state, erasure.rules) == 3 * RTT


@pytest.mark.parametrize(
    ("floor_rtt", "before_ps", "after_ps"),
    [(0, 3 * RTT, RTT // 4), (1, 3 * RTT, RTT), (5, 5 * RTT, 5 * RTT)],
)
def test_nothing_times_out_sooner_than_the_floor(
    floor_rtt: float, before_ps: int, after_ps: int
) -> None:
    sender = Sender(Scenario(transport=Transport(timer_floor_rtt=floor_rtt)), packets=16)
    assert timers.timeout_ps(sender.state, sender.rules) == before_ps
    for _ in range(100):
        timers.sample_rtt(sender.state, RTT // 4)
    assert timers.timeout_ps(sender.state, sender.rules) == pytest.approx(after_ps, rel=1e-4)


def test_sack_resends_every_late_hole_once_the_lowest_is_late(sack: Sender) -> None:
    for _ in range(8):
        sack.send()
    for psn in (2, 4):
        sack.ack(psn, RTT + psn * GAP_PS)
    assert sack.send()[0] == 0, "it alone has more than three above it"
    sack.ack(6, RTT + 6 * GAP_PS)
    assert [sack.send()[0] for _ in range(2)] == [1, 8], "0 has been resent, 3 and 5 may come yet"


def test_sack_takes_no_sample_from_what_was_sent_twice(sack: Sender) -> None:
    for _ in range(6):
        sack.send(0)
    for psn in (1, 2, 3, 4, 5):
        sack.ack(psn, RTT)
    assert sack.send(2 * RTT)[0] == 0
    before = sack.state.srtt_ps
    sack.ack(0, 2 * RTT + 1)
    assert sack.state.srtt_ps == before and sack.state.lowest == 6


def test_sack_timeout_doubles_until_something_is_acknowledged(sack: Sender) -> None:
    for _ in range(16):
        sack.send()
    waits = []
    for _ in range(3):
        now = sack.ready_ps()
        waits.append(now - sack.packets[0].sent_ps)
        assert sack.send(now)[0] == 0
        while sack.state.round_next < sack.state.round_end:
            sack.send()
    assert waits == [3 * RTT, 6 * RTT, 12 * RTT]
    sack.ack(0, sack.state.due_ps)
    assert sack.state.backoff == 0


def test_sack_does_not_run_further_ahead_than_its_ring() -> None:
    sender = Sender(Scenario(transport=Transport(recovery="sack")), packets=100, gap_ps=10 * RTT)
    while has_new(sender.state, sender.rules, sender.packets):
        sender.send(0)
    assert sender.state.sent == len(sender.packets) == 32


@settings(max_examples=30)
@given(order=st.permutations(range(24)), dropped=st.sets(st.integers(0, 23), max_size=6))
def test_sack_completes_whatever_is_lost_or_late(order: list[int], dropped: set[int]) -> None:
    sender = Sender(Scenario(transport=Transport(recovery="sack", sack_threshold=6)), packets=24)
    for _ in range(24):
        sender.send()
    held: tuple[int, ...] = ()
    now = sender.state.due_ps + RTT
    for psn in order:
        if psn not in dropped:
            held += (psn,)
            sender.ack(psn, now, held=held)
    while sender.state.done_ps == NEVER:
        now = max(now, sender.ready_ps())
        assert now < 100 * RTT
        psn, _ = sender.send(now)
        held += (psn,)
        sender.ack(psn, now + RTT, held=held)
    assert sender.state.acked == 24 and sender.state.sent == 24


def controlled(congestion: Congestion) -> Sender:
    return Sender(Scenario(transport=Transport(recovery="sack", congestion=congestion)), packets=60)


def test_mswift_starts_with_the_targets_worth_of_packets(mswift: Sender) -> None:
    assert mswift.state.target_ps == RTT + Scenario().tx_ps(113_000)
    assert mswift.state.window / swift.ONE == pytest.approx(176.7, abs=0.1)


def test_mswift_stops_at_its_window(mswift: Sender) -> None:
    while mswift.ready_ps() <= mswift.state.due_ps:
        mswift.send()
    assert mswift.state.sent == 176
    mswift.ack(0, mswift.state.due_ps)
    assert mswift.ready_ps() == mswift.state.due_ps


def test_mswift_grows_by_one_packet_a_round_trip(mswift: Sender) -> None:
    before = mswift.state.window
    for psn in range(176):
        mswift.send(psn)
        mswift.ack(psn, psn + RTT)
    assert (mswift.state.window - before) / swift.ONE == pytest.approx(1, abs=0.02)


def test_mswift_cuts_once_a_round_trip_and_by_half_at_most(mswift: Sender) -> None:
    before = mswift.state.window
    for psn in range(100):
        mswift.send(psn)
        mswift.ack(psn, psn + 100 * RTT)
    assert mswift.state.window == before - before // 2


def test_mswift_does_not_cut_again_for_what_left_before_the_last_cut(mswift: Sender) -> None:
    for psn in range(150):
        mswift.send(psn * GAP_PS)
    late = 150 * GAP_PS + 20 * RTT
    mswift.ack(0, late)
    cut = mswift.state.window
    for psn in range(1, 150):
        mswift.ack(psn, late + 2 * RTT + psn)
    assert mswift.state.window == cut


def test_mswift_target_is_proportional_to_the_links_of_the_path() -> None:
    sender = Sender(Scenario(transport=Transport(recovery="sack", congestion="mswift")))
    transport.start(sender.state, sender.rules, 0, 10, GAP_PS, 0, 2, 0, 1)
    assert sender.state.target_ps == sender.rules.target_ps // 3


@settings(max_examples=50)
@given(delays=st.lists(st.integers(1, 50), min_size=1, max_size=60), window=st.integers(1, 100))
def test_median_is_that_of_the_last_half_window(delays: list[int], window: int) -> None:
    sender = Sender(Scenario(transport=Transport(recovery="sack", congestion="mswift")), packets=60)
    sender.state.window = window * swift.ONE
    for delay in delays:
        sender.packets[sender.state.samples % len(sender.packets)].delay_ns = delay
        sender.state.samples += 1
        median = swift.median_ns(sender.state, sender.rules, sender.packets)
        last = sorted(delays[: sender.state.samples][-max(window // 2, 1) :])
        assert median == (last[(len(last) - 1) // 2] + last[len(last) // 2]) // 2


@pytest.mark.parametrize("congestion", ["swift", "lazy_swift"])
def test_without_the_median_the_last_delay_counts(congestion: Congestion) -> None:
    sender = controlled(congestion)
    for delay in (9, 9, 9, 4):
        sender.packets[sender.state.samples].delay_ns = delay
        sender.state.samples += 1
    assert swift.median_ns(sender.state, sender.rules, sender.packets) == 4


@pytest.mark.parametrize(("congestion", "late_holes"), [("swift", 1), ("mswift", 5)])
def test_plain_swift_halves_at_the_first_late_hole_and_lazy_swift_at_the_fifth(
    congestion: Congestion, late_holes: int
) -> None:
    sender = controlled(congestion)
    windows = [sender.state.window]
    for hole in range(late_holes):
        swift.on_late_hole(sender.state, sender.rules, (hole + 1) * RTT)
        windows.append(sender.state.window)
    assert windows == [windows[0]] * late_holes + [windows[0] - windows[0] // 2]


def test_a_hole_that_closes_by_itself_ends_the_row_and_keeps_others_from_rounds(
    sack: Sender,
) -> None:
    for _ in range(12):
        sack.send(0)
    for psn in (1, 2, 3, 4):
        sack.ack(psn, RTT + psn)
    assert sack.send(RTT + 10)[0] == 0
    sack.state.late_holes = 4
    sack.ack(0, RTT + 20)
    assert sack.state.late_holes == 0
    for psn in (7, 8, 9, 10):
        sack.ack(psn, RTT + 20 + psn)
    assert sack.send(RTT + 40)[0] == 12, "5 is late, but gets a round trip to arrive"
    sack.ack(11, 2 * RTT + 30)
    assert [sack.send(2 * RTT + 40)[0] for _ in range(2)] == [5, 6]


def test_a_hole_that_its_second_packet_has_closed_counts(sack: Sender) -> None:
    for _ in range(12):
        sack.send(0)
    for psn in (1, 2, 3, 4):
        sack.ack(psn, RTT + psn)
    sack.send(RTT + 10)
    sack.state.late_holes = 4
    sack.ack(0, 2 * RTT + 20)
    assert sack.state.late_holes == 4 and sack.state.patient_ps == 0


@pytest.mark.parametrize("congestion", ["swift", "lazy_swift", "mswift"])
def test_swift_needs_sack(congestion: Congestion) -> None:
    with pytest.raises(ExperimentError, match=f'"{congestion}" needs transport'):
        rules(Scenario(transport=Transport(congestion=congestion)))


def test_what_a_receiver_told_of_late_holds_for_the_next_message() -> None:
    shared = rules(Scenario())
    begin = partial(transport.share_at_start, shared, told=3, told_ps=1_000)

    assert begin(in_turn=0, now_ps=1_000 + RTT) == 3
    assert begin(in_turn=0, now_ps=1_001 + RTT) == 1
    assert begin(in_turn=1, now_ps=1_000) == 1
    assert begin(told_ps=NEVER, in_turn=0, now_ps=1_000) == 1


def test_a_share_is_the_pace_from_the_first_packet_on() -> None:
    sender = Sender(Scenario())
    state = sender.state
    transport.start(state, sender.rules, 7, 16, GAP_PS, 500, 6, 0, 3)

    assert sender.ready_ps() == 500
    sender.send(500)
    assert sender.ready_ps() == 500 + 3 * GAP_PS
