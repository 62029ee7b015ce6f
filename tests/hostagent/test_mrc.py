"""MRC's entropy values: taken in turn, skipped once, retired by a loss, probed."""

from collections.abc import Iterable
from typing import Literal

import pytest

from fattree.experiment.model import Collective, Fabric, Job, Scenario, Transport
from hostagent.rules import entropy_values
from hostagent.transports import labels
from hostagent.transports.mrc import GOOD, PROBED, REST, RETIRED, SKIPPED
from hostagent.transports.state import ENTROPY_VALUES as VALUES
from tests.hostagent.conftest import Sender

RTT = Scenario().zero_load_rtt_ps


@pytest.fixture
def sender() -> Sender:
    return Sender(Scenario(policy="mrc"), packets=4000)


@pytest.fixture
def sack() -> Sender:
    transport = Transport(recovery="sack", sack_threshold=3, trimming=True)
    return Sender(Scenario(policy="mrc", transport=transport), packets=4000)


def sent_values(sender: Sender, count: int) -> list[int]:
    return [sender.send(0)[1] % VALUES for _ in range(count)]


def echo(sender: Sender, values: Iterable[int], marked: bool = False) -> None:
    for value in values:
        labels.on_ack(sender.state, sender.rules, value, marked, 0)


def lose(sender: Sender, *values: int) -> None:
    for value in values:
        labels.on_lost(sender.state, sender.rules, value)


def state_of(sender: Sender, value: int) -> int:
    return int(sender.state.path_states[value])


def test_a_connection_takes_every_value_once_a_round_in_an_order_of_its_own() -> None:
    first, second = (Sender(Scenario(policy="mrc", seed=seed), packets=400) for seed in (1, 2))
    rounds = [sent_values(first, VALUES) for _ in range(2)]
    assert sorted(rounds[0]) == list(range(VALUES))
    assert rounds[0] == rounds[1]
    assert sent_values(second, VALUES) != rounds[0]


def test_labels_have_the_upper_bits_of_the_flow(sender: Sender) -> None:
    assert {sender.send(0)[1] // VALUES for _ in range(VALUES)} == {sender.state.label // VALUES}


def test_a_marked_value_loses_one_turn(sender: Sender) -> None:
    sent = sent_values(sender, VALUES)
    # However often it is marked until then.
    echo(sender, [sent[5]] * 3, marked=True)
    assert sent_values(sender, VALUES - 1) == [value for value in sent if value != sent[5]]
    assert sent_values(sender, VALUES) == sent


def test_a_packet_forgives_one_value_only(sender: Sender) -> None:
    sent = sent_values(sender, VALUES)
    echo(sender, sent[:3], marked=True)
    assert sent_values(sender, 1) == [sent[3]]
    assert [state_of(sender, value) for value in sent[:3]] == [GOOD, SKIPPED, SKIPPED]


def test_a_sender_whose_values_are_all_skipped_comes_round_to_a_forgiven_one(
    sender: Sender,
) -> None:
    sent = sent_values(sender, VALUES)
    echo(sender, sent, marked=True)
    # The second packet forgives the second value, and comes round to the first before that.
    assert sent_values(sender, 3) == [sent[0], sent[0], sent[1]]


def test_a_lost_value_is_unused_until_its_probe_has_come_back(sender: Sender) -> None:
    sent = sent_values(sender, VALUES)
    lost = sent[7]
    lose(sender, lost)
    healthy = [value for value in sent if value != lost]
    for _ in range(REST - 1):
        assert sent_values(sender, VALUES - 1) == healthy

    # A packet that left before the loss and comes late is no news of the path as it is now.
    echo(sender, [lost])
    assert state_of(sender, lost) < RETIRED
    assert sent_values(sender, VALUES) == sent
    assert sent_values(sender, VALUES - 1) == healthy

    echo(sender, [lost])
    assert state_of(sender, lost) == GOOD
    assert lost in sent_values(sender, VALUES)


def test_a_lost_probe_is_followed_by_another_as_much_later(sender: Sender) -> None:
    lost = sent_values(sender, VALUES)[7]
    lose(sender, lost)
    probes = [number for number in range(3 * REST * VALUES) if sent_values(sender, 1) == [lost]]
    assert len(probes) == 3
    lose(sender, lost)
    assert state_of(sender, lost) >= PROBED


def test_a_marked_probe_brings_its_value_back_for_the_turn_after_next(sender: Sender) -> None:
    lost = sent_values(sender, VALUES)[7]
    lose(sender, lost)
    while sent_values(sender, 1) != [lost]:
        pass
    echo(sender, [lost], marked=True)
    assert state_of(sender, lost) == SKIPPED


def test_a_sender_that_has_lost_all_probes_the_value_that_rests_longest(sender: Sender) -> None:
    sent = sent_values(sender, VALUES)
    lose(sender, *sent)
    assert sent_values(sender, VALUES) == sent
    assert all(state_of(sender, value) >= PROBED for value in sent)


def test_a_loss_retires_good_and_skipped_values_and_lets_retired_ones_rest(
    sender: Sender,
) -> None:
    for before, after in (
        (GOOD, RETIRED),
        (SKIPPED, RETIRED),
        (SKIPPED + 1, SKIPPED + 1),
        (RETIRED - 1, RETIRED - 1),
        (PROBED + SKIPPED + 1, PROBED + SKIPPED + 1),
    ):
        sender.state.path_states[3] = before
        lose(sender, 3)
        assert state_of(sender, 3) == after


def test_a_trimmed_packet_retires_nothing(sack: Sender) -> None:
    value = sack.send(0)[1] % VALUES
    sack.nack(0, RTT)
    assert state_of(sack, value) == SKIPPED
    # It goes again first of all, which is no sign of a loss either.
    assert sack.send(RTT)[0] == 0
    assert not any(state >= RETIRED for state in sack.state.path_states)


def test_a_hole_that_is_sent_again_retires_its_value(sack: Sender) -> None:
    sent = [sack.send(0)[1] % VALUES for _ in range(8)]
    for psn in range(1, 8):
        sack.ack(psn, RTT)
    assert sack.send(RTT)[0] == 0
    assert [state_of(sack, value) for value in sent] == [RETIRED] + [GOOD] * 7


def test_a_packet_that_times_out_retires_its_value(sender: Sender) -> None:
    value = sender.send(0)[1] % VALUES
    sender.send(3 * RTT - 1)
    assert state_of(sender, value) == GOOD
    sender.send(3 * RTT)
    assert state_of(sender, value) == RETIRED


@pytest.mark.parametrize(
    ("planes", "use", "values"),
    [(None, None, 128), (2, None, 64), (3, "spray", 64), (8, "spray", 16), (8, "keep", 128)],
)
def test_planes_share_128_to_256_values(
    planes: int | None, use: Literal["spray", "keep"] | None, values: int
) -> None:
    scenario = Scenario(policy="mrc", fabric=Fabric(k=4, planes=planes, plane_use=use))
    assert entropy_values(scenario) == values
    assert 128 <= values * (planes if planes and use != "keep" else 1) < 256


def test_who_keeps_to_a_rail_has_all_values_there() -> None:
    collective = Collective(matrix="workload", file="step.parquet", placement="rail")
    by_rail = Job(name="rail", collective=collective)
    packed = Job(name="packed", collective=Collective(matrix="all_reduce"))
    fabric = Fabric(k=4, planes=4)
    assert entropy_values(Scenario(policy="mrc", fabric=fabric, jobs=(by_rail,))) == 128
    assert entropy_values(Scenario(policy="mrc", fabric=fabric, jobs=(by_rail, packed))) == 32
