"""Go-back-N: the packets that a sender sends again, and a receiver's packets and answers."""

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import Fabric, Scenario, Transport
from fattree.shape.addressing import host_ip
from hostagent.flow_plan import FlowPlan
from hostagent.packets import AckFrames, Ends
from hostagent.receiving import Receiving
from hostagent.rules import rules
from hostagent.transports import go_back_n, transport
from hostagent.transports.roce import Packet, parse
from hostagent.transports.state import NEVER, RECEIVER, blank
from tests.hostagent.conftest import GAP_PS, Sender

RTT = Scenario().zero_load_rtt_ps


@pytest.fixture
def flow() -> Sender:
    """Return a flow of 16 packets, of which six have left."""
    sender = Sender(Scenario(transport=Transport(recovery="go_back_n")))
    assert [sender.send()[0] for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    return sender


def ack(flow: Sender, psn: int, total: int, now_ps: int = RTT) -> bool:
    """Let an ACK of `psn` arrive of a receiver that has the first `total` packets."""
    return bool(
        transport.on_ack(
            flow.state, flow.state, flow.rules, flow.packets, psn, total, 0, False, now_ps
        )
    )


def test_what_is_out_of_order_has_all_sent_again_from_what_is_missing(flow: Sender) -> None:
    ack(flow, psn=1, total=2)
    ack(flow, psn=3, total=2)
    assert [flow.send()[0] for _ in range(6)] == [2, 3, 4, 5, 6, 7]
    assert flow.state.transmissions == 12


def test_acks_count_all_before_them_and_old_ones_change_nothing(flow: Sender) -> None:
    ack(flow, psn=4, total=5)
    ack(flow, psn=2, total=1)
    assert flow.state.acked == 5 and flow.send()[0] == 6


def test_what_has_arrived_meanwhile_is_not_sent_again(flow: Sender) -> None:
    ack(flow, psn=3, total=1)
    assert flow.send()[0] == 1
    ack(flow, psn=4, total=4)
    assert [flow.send()[0] for _ in range(2)] == [4, 5]


def test_what_has_just_been_sent_again_is_not_sent_once_more(flow: Sender) -> None:
    ack(flow, psn=3, total=1)
    assert [flow.send()[0] for _ in range(4)] == [1, 2, 3, 4]
    ack(flow, psn=2, total=3)
    assert [flow.send()[0] for _ in range(2)] == [5, 6]


def test_after_a_timeout_that_doubles_all_is_sent_again() -> None:
    short = Sender(Scenario(transport=Transport(recovery="go_back_n")), packets=3)
    for _ in range(3):
        short.send()
    waited = short.ready_ps()
    assert waited == 3 * RTT
    assert [short.send()[0] for _ in range(3)] == [0, 1, 2]
    assert short.ready_ps() == waited + 6 * RTT
    assert not ack(short, psn=1, total=2, now_ps=waited + RTT)
    assert ack(short, psn=2, total=3, now_ps=waited + RTT + GAP_PS)
    assert short.ready_ps() == NEVER


class Receiver:
    """A receiver that keeps so many packets, and its answers to numbers that arrive."""

    def __init__(self, packets: int) -> None:
        transport = Transport(recovery="go_back_n", reorder_packets=packets)
        self.rules = rules(Scenario(transport=transport))
        self.state = blank(RECEIVER)
        self.kept = [0] * go_back_n.reach(self.rules)
        self.received = 0

    def get(self, psn: int, now_ps: int = 0) -> int | bool:
        """Return how many packets are delivered, or whether one out of order is answered."""
        if psn == self.received:
            delivered: int = go_back_n.take(self.state, self.kept, psn, now_ps)
            self.received += delivered
            return delivered

        is_asking = go_back_n.is_asking(
            self.state, self.rules, self.kept, psn, self.received, now_ps
        )
        return bool(is_asking)


def test_a_receiver_asks_once_for_what_is_missing_and_answers_every_duplicate() -> None:
    strict = Receiver(packets=0)
    assert [strict.get(psn) for psn in (0, 2, 3, 0, 1, 2, 4)] == [1, True, False, True, 1, 1, True]


def test_what_is_near_the_next_packet_is_kept_and_delivered_in_order() -> None:
    nic = Receiver(packets=3)
    assert [nic.get(psn) for psn in (0, 2, 4, 2)] == [1, False, False, False]
    # 5 is more than three beyond 1: it is thrown away, and 1 asked for, once.
    assert [nic.get(psn) for psn in (5, 6, 3)] == [True, False, False]
    assert [nic.get(psn) for psn in (1, 7, 6)] == [4, False, False]
    assert [nic.get(psn) for psn in (5, 8)] == [3, 1]
    assert not any(nic.kept) and nic.state.kept == 0


def test_a_gap_that_is_too_old_is_asked_for_by_the_next_packet_behind_it() -> None:
    nic = Receiver(packets=8)
    assert not nic.get(1, now_ps=10) and not nic.get(3, now_ps=RTT + 9)
    # The gap before 3 is the first from when 0 closes the one before 1.
    assert nic.get(0, now_ps=RTT + 10) == 2 and not nic.get(4, now_ps=2 * RTT + 9)
    assert nic.get(5, now_ps=2 * RTT + 10) and not nic.get(6, now_ps=9 * RTT)
    assert nic.get(2, now_ps=9 * RTT) == 5


def test_an_answer_tells_of_marks_and_wishes_of_packets_that_were_kept() -> None:
    few = Transport(recovery="go_back_n", reorder_packets=4, packets_per_ack=8)
    plan = FlowPlan(7, 1, 0, packets=9, gap_ps=1, phase_ps=0, start_ps=0, hops=6)
    ends = Ends(2, 1, host_ip(Scenario().tree, 0), host_ip(Scenario().tree, 1))
    receiving = Receiving(plan, AckFrames(ends, 7), rules(Scenario(transport=few)), set())

    answers = []
    for psn, marked, asks in ((1, True, False), (0, False, False), (3, False, True), (2, 0, 0)):
        frame = receiving.accept(Packet(False, 7, psn, 5, bool(marked), 1, 0, asks=bool(asks)), 0)
        answers.append(frame and parse(frame))

    assert [answer and (answer.psn, answer.marked, answer.msn) for answer in answers] == [
        None,
        (0, True, 2),
        None,
        (2, False, 4),
    ]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"trimming": True}, "in order alone"),
        ({"congestion": "mswift"}, 'needs transport.recovery = "sack"'),
        ({"recovery": "sack", "reorder_packets": 1}, "reorder_packets = 1: .* in any order"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options: dict[str, object], reason: str) -> None:
    chosen = Scenario(
        fabric=Fabric(k=4), transport=Transport.model_validate({"recovery": "go_back_n"} | options)
    )
    with pytest.raises(ExperimentError, match=reason):
        rules(chosen)
