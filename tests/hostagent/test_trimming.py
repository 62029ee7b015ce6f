"""Effects of NACKs of trimmed packets: the next packet, timers, windows, labels, bytes."""

import pytest

from fattree.experiment.hosts import Congestion
from fattree.experiment.model import LoadBalancer, Scenario, Transport
from hostagent.packets import AckFrames, DataFrames, Ends, wrap
from hostagent.rules import rules
from hostagent.transports import congestion, labels, nscc, swift, timers
from hostagent.transports.packet_states import RESENT
from hostagent.transports.roce import NAK_SYNDROME, parse, parse_trimmed
from hostagent.transports.state import NEVER, PATHS, TRIMMED_PENALTY
from tests.hostagent.conftest import GAP_PS, Sender

RTT = Scenario().zero_load_rtt_ps
ENDS = Ends(2, 4, 0x0A000002, 0x0A010002)
HEADERS = 62


def sent(sender: Sender, count: int) -> list[int]:
    """Send `count` packets, each when it is due; return their numbers."""
    return [sender.send()[0] for _ in range(count)]


def test_what_was_cut_goes_again_before_new_packets_the_lowest_first(trimming: Sender) -> None:
    assert sent(trimming, 6) == [0, 1, 2, 3, 4, 5]
    for psn in (4, 1, 3):
        trimming.nack(psn, RTT)
    trimming.nack(4, RTT)
    assert sent(trimming, 5) == [1, 3, 4, 6, 7]


@pytest.mark.parametrize("cut", [(1, 3), (3, 1), (1, 3, 5), (3, 5, 1)])
def test_the_lowest_goes_first_in_whatever_order_nacks_come(
    trimming: Sender, cut: tuple[int, ...]
) -> None:
    sent(trimming, 6)
    for psn in cut:
        trimming.nack(psn, RTT)
    assert sent(trimming, len(cut)) == sorted(cut)


def test_what_arrived_all_the_same_is_not_sent_again(trimming: Sender) -> None:
    sent(trimming, 6)
    trimming.nack(1, RTT)
    trimming.nack(2, RTT)
    trimming.ack(3, RTT, held=(1, 3))
    # A NACK of a packet that is known to be here, and of a packet below all holes.
    trimming.nack(3, RTT, held=(0,))
    trimming.nack(0, RTT)
    assert trimming.state.trimmed == 1
    assert sent(trimming, 3) == [2, 6, 7]


def test_a_nack_reports_what_has_arrived_and_may_complete_the_flow(trimming: Sender) -> None:
    sent(trimming, 16)
    assert not trimming.nack(5, RTT, held=tuple(range(15)))
    assert trimming.nack(5, RTT + 1, held=(15,))
    assert trimming.state.done_ps == RTT + 1 and trimming.ready_ps() == NEVER
    assert not trimming.nack(5, RTT + 2)


def test_late_rounds_leave_out_what_was_cut(trimming: Sender) -> None:
    sent(trimming, 10)
    trimming.nack(0, RTT)
    assert sent(trimming, 1) == [0]
    trimming.nack(1, RTT)
    # 0 is on its way again, 1 goes by itself, 2 and 3 are late: more than three above arrived.
    trimming.ack(8, RTT, held=(4, 5, 6, 7, 8))
    assert sent(trimming, 4) == [1, 2, 3, 10]


@pytest.mark.parametrize("psn", [8, 1])
def test_a_round_leaves_out_what_a_nack_of_a_known_packet_has_reported(
    trimming: Sender, psn: int
) -> None:
    sent(trimming, 10)
    trimming.nack(1, RTT)
    trimming.ack(8, RTT, held=(4, 5, 6, 7, 8))
    assert sent(trimming, 1) == [1]
    # 0 is next, then 2 and 3. The NACK is of a packet that has arrived or is cut already.
    trimming.nack(1, RTT)
    trimming.nack(psn, RTT, held=(0, 2))
    before = trimming.state.acked
    assert sent(trimming, 3) == [1, 3, 10]
    trimming.ack(3, 2 * RTT, held=(3, 1))
    assert trimming.state.acked == before + 2 and trimming.state.lowest == 9


def test_without_trimming_a_late_round_sends_again_what_was_sent_again(sack: Sender) -> None:
    sent(sack, 10)
    sack.packets[0].state = RESENT
    sack.ack(8, RTT, held=(4, 5, 6, 7, 8))
    assert sent(sack, 2) == [0, 1]


def test_what_waits_for_the_window_goes_when_nothing_was_heard_for_a_timeout() -> None:
    settings = Transport(recovery="sack", congestion="mswift", trimming=True)
    sender = Sender(Scenario(transport=settings), packets=400)
    sent(sender, 4)
    sender.state.window = 2 * swift.ONE
    sender.nack(0, RTT)
    # Three are under way and the window has two: the timer runs from when something was heard.
    timeout_ps = timers.timeout_ps(sender.state, sender.rules)
    assert sender.ready_ps() == RTT + timeout_ps
    assert sender.send(RTT + timeout_ps)[0] == 0
    assert sender.state.trimmed == 0 and sender.state.backoff == 1


def test_what_was_cut_is_not_under_way() -> None:
    settings = Transport(recovery="sack", congestion="mswift", trimming=True)
    sender = Sender(Scenario(transport=settings), packets=400)
    sent(sender, 4)
    sender.state.window = 4 * swift.ONE
    assert not congestion.allows(sender.state, sender.rules)
    sender.nack(0, RTT)
    assert congestion.allows(sender.state, sender.rules)
    assert sent(sender, 1) == [0]
    assert not congestion.allows(sender.state, sender.rules)


def test_each_symbol_that_was_cut_is_made_up_for_once(erasure: Sender) -> None:
    # The NACK of packet 1 has overtaken the ACK of packet 0: two are missing, as far as is known.
    sent(erasure, 4)
    erasure.nack(1, RTT)
    sent(erasure, 13)
    due_ps = erasure.state.due_ps
    assert erasure.ready_ps() == due_ps
    # With the ACK one is missing: of seventeen sixteen may arrive, so that the flow stops.
    erasure.ack(0, due_ps)
    assert erasure.ready_ps() > due_ps
    # While it is stopped: one more at once, and it stops again.
    erasure.nack(3, due_ps + 1)
    erasure.ack(2, due_ps + 1)
    assert erasure.ready_ps() == due_ps
    erasure.send(due_ps + 1)
    assert erasure.ready_ps() > due_ps + GAP_PS + 1


def test_swift_and_its_kin_take_a_nack_for_a_late_hole() -> None:
    patience: dict[Congestion, int] = {"swift": 1, "lazy_swift": 5, "mswift": 5}
    for name, holes in patience.items():
        settings = Transport(recovery="sack", congestion=name, trimming=True)
        sender = Sender(Scenario(transport=settings), packets=400)
        sent(sender, 20)
        before = sender.state.window
        for psn in range(holes - 1):
            sender.nack(psn, 4 * RTT)
        assert sender.state.window == before
        sender.nack(holes, 4 * RTT)
        assert sender.state.window == before - (before >> 1)


@pytest.fixture
def of_nscc() -> Sender:
    settings = Transport(recovery="sack", congestion="nscc", trimming=True)
    sender = Sender(Scenario(transport=settings), packets=400)
    sent(sender, 20)
    sender.state.window = 40 * nscc.ONE
    return sender


def test_nscc_gives_up_a_packet_and_takes_the_queue_for_one_round_trip_long(
    of_nscc: Sender,
) -> None:
    of_nscc.state.quick_ps = 100 * RTT
    of_nscc.nack(3, 2 * RTT)
    assert of_nscc.state.window == 39 * nscc.ONE
    assert of_nscc.state.mean_delay_ps == RTT // nscc.MEAN_OF
    assert of_nscc.rules.target_ps == 3 * RTT // 4
    # Sent again it costs nothing more.
    assert sent(of_nscc, 1) == [3]
    assert of_nscc.state.window == 39 * nscc.ONE


def test_nscc_hears_of_a_cut_packet_once(of_nscc: Sender) -> None:
    of_nscc.send()
    of_nscc.nack(0, RTT)
    window = of_nscc.state.window
    of_nscc.nack(0, RTT)
    assert of_nscc.state.window == window


def test_nscc_adapts_quickly_to_what_was_cut(of_nscc: Sender) -> None:
    of_nscc.state.quick_ps = 2 * RTT
    of_nscc.state.acked = 5
    of_nscc.nack(9, 2 * RTT + 1)
    assert of_nscc.state.window == 5 * nscc.ONE
    # 14 of 20 are under way: marks and NACKs do nothing until these are over.
    assert of_nscc.state.ignored_below == 19
    for psn in range(10, 14):
        of_nscc.nack(psn, 2 * RTT + 2)
    assert of_nscc.state.window == 5 * nscc.ONE and of_nscc.state.ignored_below == 15


def test_packets_that_nacks_have_told_of_do_not_time_out(reps: Sender) -> None:
    reps.rules = reps.rules._replace(trimming=1)
    reps.send(0)
    reps.nack(0, 2 * RTT)
    reps.send(100 * RTT)
    assert reps.state.freezes == 0
    reps.send(200 * RTT)
    assert reps.state.freezes == 1


def test_a_nack_adds_four_to_its_paths_penalty(bitmap: Sender) -> None:
    _, label = bitmap.send(0)
    bitmap.nack(0, RTT)
    assert bitmap.state.penalties[label % PATHS] == TRIMMED_PENALTY == 4


def test_flowlets_take_a_nack_for_a_mark() -> None:
    scenario = Scenario(policy="host_flowlet_ar", load_balancer=LoadBalancer(plb_acks=2))
    sender = Sender(scenario, packets=400)
    labels.on_nack(sender.state, sender.rules, 0, RTT)
    assert sender.state.history == 1 and sender.state.acks_seen == 1


def test_a_frame_that_was_cut_says_what_the_whole_one_said() -> None:
    frame = DataFrames(ENDS, 7, 4096, run=3).frame(label=99, psn=5)
    whole, cut = parse(frame), parse_trimmed(frame[:HEADERS])
    assert whole is not None and cut == whole._replace(trimmed=True)
    assert parse(frame[:HEADERS]) is None and parse_trimmed(frame) is None

    tunnelled = wrap(frame, 1, 2)
    assert parse_trimmed(tunnelled[: HEADERS + 20]) == cut
    assert parse_trimmed(frame[:40]) is None and parse_trimmed(b"") is None


def test_a_nack_is_an_ack_with_another_syndrome() -> None:
    frames = AckFrames(ENDS, 7)
    ack = parse(frames.frame(99, 5, False, 3, 0b110))
    nack_frame = frames.frame(99, 5, False, 3, 0b110, trimmed=True)
    assert nack_frame[54] == NAK_SYNDROME
    assert ack is not None and parse(nack_frame) == ack._replace(trimmed=True)


def test_the_target_without_trimming_is_a_whole_round_trip() -> None:
    plain = Scenario(transport=Transport(recovery="sack", congestion="nscc"))
    assert rules(plain).target_ps == RTT
