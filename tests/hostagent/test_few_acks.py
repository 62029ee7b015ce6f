"""Which packets ask for an ACK, which a receiver answers at once, and who needs all of them."""

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import HostRule, Scenario, Transport
from hostagent.packets import DataFrames, Ends
from hostagent.rules import rules
from hostagent.transports import swift, timers, transport
from hostagent.transports.roce import parse
from tests.hostagent.conftest import GAP_PS, Sender

RTT = Scenario().zero_load_rtt_ps
FOUR = Transport(recovery="sack", packets_per_ack=4)
ENDS = Ends(2, 4, 0x0A000002, 0x0A010002)


def sends(sender: Sender, count: int) -> list[bool]:
    """Send `count` packets; return which ask for an ACK."""
    return [
        bool(transport.asks(sender.state, sender.rules, sender.packets, sender.send()[0]))
        for _ in range(count)
    ]


def test_the_last_packet_of_a_message_asks_and_what_is_sent_again() -> None:
    sender = Sender(Scenario(transport=FOUR))
    assert sends(sender, 16) == [False] * 15 + [True]
    sender.send(sender.ready_ps())
    assert transport.asks(sender.state, sender.rules, sender.packets, 0)


def test_the_last_packet_that_a_window_lets_go_asks() -> None:
    settings = FOUR.model_copy(update={"congestion": "mswift"})
    sender = Sender(Scenario(transport=settings), packets=400)
    sender.state.window = 3 * swift.ONE
    assert sends(sender, 3) == [False, False, True]


def test_with_erasure_codes_every_symbol_from_the_messages_end_on_asks() -> None:
    sender = Sender(Scenario(transport=Transport(packets_per_ack=4)))
    assert sends(sender, 18) == [False] * 15 + [True] * 3


def test_without_the_option_every_packet_asks(sack: Sender) -> None:
    assert all(sends(sack, 16))


def test_a_receiver_answers_the_fourth_packet_and_what_cannot_wait() -> None:
    chosen = rules(Scenario(transport=FOUR))
    plain = {
        "waiting": 3,
        "asked": False,
        "marked": False,
        "is_new": True,
        "is_complete": False,
    }
    assert not transport.is_acknowledged(chosen, **plain)
    for change in (
        {"waiting": 4},
        {"asked": True},
        {"marked": True},
        {"is_new": False},
        {"is_complete": True},
    ):
        assert transport.is_acknowledged(chosen, **{**plain, **change})


def test_a_timeout_waits_for_the_packets_that_an_ack_waits_for(sack: Sender) -> None:
    sender = Sender(Scenario(transport=FOUR))
    assert timers.timeout_ps(sender.state, sender.rules) == 3 * RTT + 3 * GAP_PS
    assert timers.timeout_ps(sack.state, sack.rules) == 3 * RTT
    # The packets are as far apart as they leave, or as at the flow's full rate.
    for pace_ps, apart_ps in ((0, GAP_PS), (GAP_PS + 1, GAP_PS + 1)):
        sender.state.pace_ps = pace_ps
        assert timers.timeout_ps(sender.state, sender.rules) == 3 * RTT + 3 * apart_ps


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (Scenario(policy="host_flowlet_ar", transport=FOUR), "host_flowlet_ar judges a path"),
        (
            Scenario(policy="host_pkt_ar", transport=Transport(packets_per_ack=2)),
            "host_pkt_ar takes packets that no ACK names for lost",
        ),
        (
            Scenario(
                host_rule=HostRule(file="mine.py", text="x = 1"),
                transport=Transport(packets_per_ack=2),
            ),
            "mine.py takes packets",
        ),
    ],
)
def test_rules_that_need_every_ack_are_refused_by_name(scenario: Scenario, said: str) -> None:
    with pytest.raises(ExperimentError, match=said):
        rules(scenario)


def test_the_bth_says_whether_a_packet_asks() -> None:
    frames = DataFrames(ENDS, 7, 4096)
    asking, silent = parse(frames.frame(9, 5)), parse(frames.frame(9, 5, asks=False))
    assert asking is not None and asking.asks
    assert silent == asking._replace(asks=False)
