"""Go-back-N: what a sender sends again, and what a receiver takes and answers."""

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import Fabric, Scenario, Transport
from hostagent.rules import rules
from hostagent.transports import go_back_n, transport
from hostagent.transports.state import NEVER
from tests.hostagent.conftest import GAP_PS, Sender

RTT = Scenario().zero_load_rtt_ps


@pytest.fixture
def flow() -> Sender:
    """Return a flow of 16 packets, of which six have left."""
    found = Sender(Scenario(transport=Transport(recovery="go_back_n")))
    assert [found.send()[0] for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    return found


def ack(flow: Sender, psn: int, total: int, now_ps: int = RTT) -> bool:
    """Let an ACK of `psn` arrive of a receiver that has the first `total` packets."""
    return bool(transport.on_ack(flow.state, flow.rules, flow.packets, psn, total, False, now_ps))


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


def test_a_receiver_asks_once_for_what_is_missing_and_answers_every_duplicate() -> None:
    assert go_back_n.is_asking(psn=7, received=5, has_asked=False)
    assert not go_back_n.is_asking(psn=8, received=5, has_asked=True)
    assert go_back_n.is_asking(psn=4, received=5, has_asked=True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"trimming": True}, "in order alone"),
        ({"congestion": "mswift"}, 'needs transport.recovery = "sack"'),
    ],
)
def test_what_does_not_go_with_it_is_refused(options: dict[str, object], reason: str) -> None:
    chosen = Scenario(
        fabric=Fabric(k=4), transport=Transport.model_validate({"recovery": "go_back_n"} | options)
    )
    with pytest.raises(ExperimentError, match=reason):
        rules(chosen)
