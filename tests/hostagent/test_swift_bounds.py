"""Swift's target, cuts and smallest window, and when a share or an early ACK counts: both sides."""

import pytest

from fattree.experiment.model import Scenario, Transport
from fattree.units import PS_PER_NS
from hostagent.transports import congestion, erasure, swift, transport
from hostagent.transports.packet_states import RESENT
from hostagent.transports.state import NEVER, PSN_WINDOW
from tests.hostagent.conftest import GAP_PS, Sender

ONE = swift.ONE
RTT = Scenario().zero_load_rtt_ps
NOW_PS = 1_000 * RTT
WINDOW = 100 * ONE
SWIFT = Scenario(transport=Transport(recovery="sack", congestion="swift"))
TARGET_NS = Sender(SWIFT).state.target_ps // PS_PER_NS


@pytest.fixture
def flow() -> Sender:
    """Return a flow with a window of 100 packets, whose last cut was long ago."""
    sender = Sender(SWIFT, packets=400)
    sender.state.window = WINDOW
    sender.state.srtt_ps = RTT
    return sender


def ack(flow: Sender, delay_ps: int, now_ps: int = NOW_PS) -> int:
    """Let a packet be acknowledged; return the window."""
    flow.state.acked += 1
    swift.on_ack(flow.state, flow.rules, flow.packets, delay_ps, now_ps)
    return int(flow.state.window)


@pytest.mark.parametrize(
    ("delay_ps", "window"),
    [
        (TARGET_NS * PS_PER_NS - 1, WINDOW + ONE // 100),
        # At the target there is no excess. Delays are whole nanoseconds.
        (TARGET_NS * PS_PER_NS, WINDOW),
        (TARGET_NS * PS_PER_NS + PS_PER_NS - 1, WINDOW),
        (TARGET_NS * PS_PER_NS + PS_PER_NS, WINDOW - WINDOW * 4 // (5 * (TARGET_NS + 1))),
        # 0.8 * 1 / 4.
        (TARGET_NS * PS_PER_NS * 4 // 3, WINDOW * 4 // 5),
        # 0.8 * 5 / 8 is half of the window, the most that is cut.
        (TARGET_NS * PS_PER_NS * 8 // 3, WINDOW // 2),
        (TARGET_NS * PS_PER_NS * 9, WINDOW // 2),
    ],
)
def test_the_window_grows_below_the_target_and_is_cut_above(
    flow: Sender, delay_ps: int, window: int
) -> None:
    assert ack(flow, delay_ps) == pytest.approx(window, abs=100)
    assert (flow.state.window == WINDOW) == (window == WINDOW)
    assert (flow.state.window > WINDOW) == (window > WINDOW)


@pytest.mark.parametrize(("since_ps", "is_cut"), [(RTT - 1, False), (RTT, True)])
def test_a_window_is_cut_once_a_round_trip(flow: Sender, since_ps: int, is_cut: bool) -> None:
    flow.state.decreased_ps = NOW_PS - since_ps
    swift.cut(flow.state, ONE, NOW_PS)
    assert (flow.state.window < WINDOW) == is_cut


@pytest.mark.parametrize(("late_ps", "samples"), [(0, 1), (1, 0)])
def test_what_left_at_the_last_cut_counts_and_what_left_before_does_not(
    flow: Sender, late_ps: int, samples: int
) -> None:
    flow.state.decreased_ps = NOW_PS - RTT + late_ps
    ack(flow, RTT)
    assert flow.state.samples == samples


@pytest.mark.parametrize(
    ("before", "after"), [(3 * ONE, 3 * ONE // 2), (2 * ONE, ONE), (ONE + 1, ONE), (ONE, ONE)]
)
def test_no_window_is_below_a_packet(flow: Sender, before: int, after: int) -> None:
    flow.state.window = before
    swift.cut(flow.state, before, NOW_PS)
    assert flow.state.window == after


def test_no_window_is_above_the_most_numbers_that_an_ack_tells_of(flow: Sender) -> None:
    flow.state.window = PSN_WINDOW * ONE - 1
    assert ack(flow, 0) == PSN_WINDOW * ONE
    assert ack(flow, 0) == PSN_WINDOW * ONE


@pytest.mark.parametrize(
    ("gap_ps", "window"),
    [(1, PSN_WINDOW), (10 * TARGET_NS * PS_PER_NS, 1), (TARGET_NS * PS_PER_NS // 2, 2)],
)
def test_the_first_window_is_the_targets_worth_within_its_bounds(gap_ps: int, window: int) -> None:
    flow = Sender(SWIFT, packets=400, gap_ps=gap_ps)
    assert flow.state.window / ONE == pytest.approx(window, abs=1e-4)


@pytest.mark.parametrize(
    ("sent", "acked", "trimmed", "expected"),
    [(9, 0, 0, True), (10, 0, 0, False), (12, 3, 0, True), (12, 0, 3, True), (13, 0, 3, False)],
)
def test_as_many_are_under_way_as_the_window_has_whole_packets(
    flow: Sender, sent: int, acked: int, trimmed: int, expected: bool
) -> None:
    flow.state.window = 11 * ONE - 1
    flow.state.sent, flow.state.acked, flow.state.trimmed = sent, acked, trimmed
    assert congestion.allows(flow.state, flow.rules) == expected


@pytest.mark.parametrize(("early_ps", "is_spurious"), [(1, True), (0, False)])
def test_an_ack_within_less_than_the_paths_rtt_is_the_first_copys(
    early_ps: int, is_spurious: bool
) -> None:
    sender = Sender(Scenario(transport=Transport(recovery="sack", sack_threshold=3)))
    for _ in range(6):
        sender.send(0)
    for psn in (1, 2, 3, 4):
        sender.ack(psn, RTT)
    assert sender.send(2 * RTT)[0] == 0
    sender.ack(0, 3 * RTT - early_ps)
    assert (sender.state.patient_ps > 0) == is_spurious


@pytest.mark.parametrize(("more", "is_spurious"), [(0, True), (1, False)])
def test_an_ack_of_a_packet_whose_place_another_has_says_nothing_of_that(
    more: int, is_spurious: bool
) -> None:
    # The packet with number 0 has the place of number `entries`, too, once that is sent.
    sender = Sender(Scenario(transport=Transport(recovery="sack")), packets=10_000)
    entries = len(sender.packets)
    sender.state.sent = entries + more
    sender.packets[0].state = RESENT
    sender.packets[0].sent_ps = RTT
    sender.ack(0, 2 * RTT - 1, held=())
    assert (sender.state.patient_ps > 0) == is_spurious


@pytest.mark.parametrize(
    ("packets", "gap_ps", "entries"),
    [
        # Twice the message, rounded up to a power of two.
        (1, GAP_PS, 2),
        (4, GAP_PS, 8),
        (5, GAP_PS, 16),
        # Or 16 more than leave in 16 zero-load RTTs: of these here 16, so that 32 are enough.
        (10_000, RTT, 32),
        (10_000, RTT - 1, 32),
        (10_000, 16 * RTT // 17, 64),
        (10_000, 1, PSN_WINDOW),
    ],
)
def test_a_ring_has_room_for_what_may_be_under_way(packets: int, gap_ps: int, entries: int) -> None:
    assert transport.ring_length(Sender(Scenario()).rules, packets, gap_ps) == entries


@pytest.mark.parametrize(
    ("sent", "highest", "acked", "missing", "expected"),
    [
        (16, -1, 0, 0, True),
        (15, -1, 0, 0, False),
        # Packet 3 has arrived, with two of those before it.
        (16, 3, 3, 1, False),
        (17, 3, 3, 1, True),
        (16, 3, 4, 0, True),
        # The count may be newer than the number.
        (16, 3, 6, 0, True),
    ],
)
def test_erasure_makes_up_for_what_is_known_to_be_missing(
    erasure_sender: Sender, sent: int, highest: int, acked: int, missing: int, expected: bool
) -> None:
    state = erasure_sender.state
    state.sent, state.highest, state.acked = sent, highest, acked
    assert erasure.known_missing(state) == missing
    assert erasure.covers(state) == expected


@pytest.fixture
def erasure_sender() -> Sender:
    """Return a flow of 16 packets."""
    return Sender(Scenario())


def test_a_stop_is_noted_up_to_its_own_instant(erasure_sender: Sender) -> None:
    state = erasure_sender.state
    state.sent, state.due_ps = 16, 500
    for now_ps, stop_ps in ((500, NEVER), (501, 500)):
        state.stop_ps = 500
        # One is missing, which is known by then.
        state.highest, state.acked = 3, 3
        erasure.note_stop(state, now_ps)
        assert state.stop_ps == stop_ps


@pytest.mark.parametrize(
    ("in_turn", "share", "pace_ps"), [(1, 1, 0), (1, 2, 2 * GAP_PS), (0, 1, GAP_PS)]
)
def test_what_goes_in_turn_has_a_pace_once_its_receiver_is_shared(
    erasure_sender: Sender, in_turn: int, share: int, pace_ps: int
) -> None:
    erasure_sender.state.in_turn, erasure_sender.state.share = in_turn, share
    transport.set_pace(erasure_sender.state, erasure_sender.rules)
    assert erasure_sender.state.pace_ps == pace_ps
