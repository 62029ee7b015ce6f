"""MRC's entropy values: taken in turn, skipped once, retired by a loss, probed."""

from collections.abc import Iterable
from typing import Literal

import pytest

from fattree.experiment.model import Collective, Fabric, Job, Scenario, Transport
from hostagent.rules import entropy_values
from hostagent.transports import labels
from hostagent.transports.mrc import (
    ECHO,
    GOOD,
    PROBED,
    PROBES,
    REST,
    RESTED,
    RETIRED,
    SKIPPED,
    is_out,
    retire,
)
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
        retire(sender.state, sender.rules, value)


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


def probe(sender: Sender, value: int) -> int:
    """Send until a value's next probe has left; return how many packets that took."""
    sent = 1
    while sent_values(sender, 1) != [value]:
        sent += 1
    return sent


def test_a_lost_value_rests_until_its_probe(sender: Sender) -> None:
    sent = sent_values(sender, VALUES)
    lost = sent[7]
    lose(sender, lost)
    healthy = [value for value in sent if value != lost]
    for _ in range(REST - 1):
        assert sent_values(sender, VALUES - 1) == healthy

    # A packet that left before the loss and comes late is no news of the path as it is now.
    echo(sender, [lost])
    assert state_of(sender, lost) == RESTED
    assert sent_values(sender, VALUES) == sent
    assert sent_values(sender, VALUES - 1) == healthy


@pytest.mark.parametrize("echoes", [PROBES - 1, PROBES, PROBES + 1])
def test_enough_probes_bring_a_value_back(sender: Sender, echoes: int) -> None:
    lost = sent_values(sender, VALUES)[7]
    lose(sender, lost)
    probe(sender, lost)
    for number in range(echoes):
        echo(sender, [lost])
        assert (state_of(sender, lost) == GOOD) == (number + 1 >= PROBES)
        assert sender.state.retired == (number + 1 < PROBES)
        # It has its next turn: as a probe until it is back.
        assert probe(sender, lost) == VALUES


def test_a_lost_probe_takes_the_echoes_before_it(sender: Sender) -> None:
    lost = sent_values(sender, VALUES)[7]
    lose(sender, lost)
    for _ in range(PROBES - 1):
        probe(sender, lost)
        echo(sender, [lost])
    assert state_of(sender, lost) == (PROBES - 1) * ECHO + RESTED
    probe(sender, lost)
    lose(sender, lost)
    assert state_of(sender, lost) == RETIRED
    # An older probe may still come.
    echo(sender, [lost])
    assert state_of(sender, lost) == RETIRED and sender.state.retired == 1


def test_a_probe_without_an_answer_is_followed_by_another_as_much_later(sender: Sender) -> None:
    lost = sent_values(sender, VALUES)[7]
    lose(sender, lost)
    probe(sender, lost)
    packets = REST * VALUES - (REST - 1)
    assert [probe(sender, lost) for _ in range(2)] == [packets, packets]
    lose(sender, lost)
    assert state_of(sender, lost) >= PROBED


def test_a_marked_last_probe_brings_its_value_back_for_the_turn_after_next(sender: Sender) -> None:
    lost = sent_values(sender, VALUES)[7]
    lose(sender, lost)
    for _ in range(PROBES):
        probe(sender, lost)
        echo(sender, [lost], marked=True)
    assert state_of(sender, lost) == SKIPPED


@pytest.mark.parametrize("credit", [REST - 1, REST])
def test_a_probe_without_an_echo_takes_packets_on_good_values(sender: Sender, credit: int) -> None:
    first, second, third = sent_values(sender, VALUES)[:3]
    lose(sender, first, second)
    sender.state.credit = credit
    sender.state.path_states[first] = RESTED
    sender.state.path_states[second] = ECHO + RESTED
    # A value that has been heard of needs none.
    expected = [first, second, third] if credit == REST else [second, third]
    assert sent_values(sender, len(expected)) == expected
    assert sender.state.credit == (1 if credit == REST else REST)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_credit_lasts_for_half_of_the_values(sender: Sender, more: int) -> None:
    enough = VALUES // 2 * REST
    sent_values(sender, enough + more)
    assert sender.state.credit == min(enough + more, enough)


@pytest.mark.parametrize("good", [0, 1])
def test_a_sender_without_good_values_probes_a_timeout_apart(sender: Sender, good: int) -> None:
    sent = sent_values(sender, VALUES)
    lose(sender, *sent[good:])
    assert is_out(sender.state, sender.rules) == (good == 0)
    sender.state.credit = 0
    now_ps = sender.ready_ps()
    assert sender.send(now_ps)[1] % VALUES == sent[0]
    assert state_of(sender, sent[0]) == (GOOD if good else PROBED + RETIRED)
    assert sender.ready_ps() - now_ps == (sender.state.gap_ps if good else 3 * RTT)


def test_go_back_n_goes_on_without_good_values() -> None:
    transport = Transport(recovery="go_back_n")
    sender = Sender(Scenario(policy="mrc", transport=transport), packets=400)
    lose(sender, *range(VALUES))
    now_ps = sender.ready_ps()
    sender.send(now_ps)
    assert sender.ready_ps() == now_ps + sender.state.gap_ps


def test_a_probe_is_a_copy_that_is_not_missed(sack: Sender) -> None:
    first, second, third = (sack.send(0) for _ in range(3))
    value = sack.state.turn ^ sack.state.turn_xor
    lose(sack, value)
    sack.state.path_states[value] = RESTED
    sack.state.credit = REST
    psn, label = sack.send(0)
    assert label % VALUES == value
    assert psn == third[0] == 2 and sack.state.sent == 3
    assert sack.packets[psn].label == third[1]
    # Its ACK brings an echo, and no round-trip time: it may be of either.
    sack.ack(psn, RTT, label=label)
    assert state_of(sack, value) == ECHO + RESTED
    assert sack.state.srtt_ps == -1
    assert sack.send(RTT)[0] == 3
    sack.ack(first[0], RTT)
    assert sack.state.srtt_ps == RTT
    assert first[1] != second[1]


@pytest.mark.parametrize("before", [0, 1])
def test_a_first_packet_is_no_copy(sack: Sender, before: int) -> None:
    lose(sack, *range(VALUES))
    for _ in range(before):
        sack.send(0)
    assert sack.send(0)[0] == 0
    assert sack.state.sent == 1


@pytest.mark.parametrize("answers", [0, 1])
def test_a_probe_without_an_answer_ends_the_row(sender: Sender, answers: int) -> None:
    lost = sent_values(sender, VALUES)[7]
    lose(sender, lost)
    probe(sender, lost)
    echo(sender, [lost])
    probe(sender, lost)
    echo(sender, [lost] * answers)
    probe(sender, lost)
    assert state_of(sender, lost) == PROBED + 2 * answers * ECHO + RETIRED


def test_a_packet_that_times_out_is_counted_once(sack: Sender) -> None:
    label = sack.send(0)[1]
    sack.send(0)
    # The second packet's turn finds the first timed out, and the third sends it again.
    value = label % VALUES
    sack.state.path_states[value] = GOOD
    labels.lose_silent(sack.state, sack.state, sack.rules, sack.packets, now_ps=3 * RTT)
    assert state_of(sack, value) == RETIRED
    sack.state.path_states[value] = GOOD
    assert sack.send(3 * RTT)[0] == 0
    assert state_of(sack, value) == GOOD
    # The copy that left now may be lost, too.
    assert not sack.packets[0].doubted


def test_an_answered_probe_is_followed_by_the_next_one_of_its_value(sender: Sender) -> None:
    sent = sent_values(sender, VALUES)
    lose(sender, *sent)
    now_ps = sender.ready_ps()
    for number in range(PROBES):
        psn = sender.send(now_ps)[0]
        assert sender.ready_ps() == now_ps + 3 * RTT
        # Of a packet that left before the loss.
        sender.ack(3, now_ps + 1)
        assert sender.ready_ps() == now_ps + 3 * RTT
        sender.ack(psn, now_ps + RTT)
        assert sender.ready_ps() == now_ps + sender.state.gap_ps
        now_ps += RTT
        assert state_of(sender, sent[0]) == ((number + 1) * ECHO + RESTED if number < 2 else GOOD)

    # One value is enough to go on.
    sender.send(now_ps)
    assert sender.ready_ps() == now_ps + sender.state.gap_ps


def test_a_loss_retires_good_and_skipped_values_and_lets_retired_ones_rest(
    sender: Sender,
) -> None:
    for before, after in (
        (GOOD, RETIRED),
        (SKIPPED, RETIRED),
        (RESTED, RESTED),
        (RETIRED - 1, RETIRED - 1),
        (PROBED + RESTED, PROBED + RESTED),
        (PROBED + ECHO + RETIRED - 3, RETIRED),
        (ECHO + RESTED, RETIRED),
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


def late(sack: Sender) -> list[int]:
    """Send packet 0 again because it is late; return the labels of its copies."""
    first = sack.send(0)[1]
    for _ in range(7):
        sack.send(0)
    for psn in range(1, 8):
        sack.ack(psn, RTT)
    psn, second = sack.send(RTT)
    assert psn == 0
    return [first, second]


def test_a_hole_whose_second_copy_comes_first_was_lost(sack: Sender) -> None:
    first, second = late(sack)
    assert state_of(sack, first % VALUES) == GOOD
    sack.ack(0, 2 * RTT, label=second)
    assert state_of(sack, first % VALUES) == RETIRED
    assert sack.state.retired == 1


def test_a_hole_that_comes_after_all_was_late(sack: Sender) -> None:
    first, second = late(sack)
    sack.ack(0, RTT + 1, label=first)
    # The second copy is a duplicate now.
    sack.ack(0, 2 * RTT, label=second)
    assert sack.state.retired == 0


@pytest.mark.parametrize("late_ps", [-1, 0])
def test_of_two_copies_without_an_answer_both_values_are_retired(
    sack: Sender, late_ps: int
) -> None:
    first, second = late(sack)
    # Since the second copy left; a timeout of srtt + 4 rttvar is less than the floor.
    sack.send(RTT + 3 * RTT + late_ps)
    states = [state_of(sack, label % VALUES) for label in (first, second)]
    assert states == ([RETIRED, RETIRED] if late_ps == 0 else [GOOD, GOOD])


def test_a_new_packet_has_no_copies(sack: Sender) -> None:
    late(sack)
    assert sack.packets[0].doubted
    sack.ack(0, 2 * RTT, held=(0,), label=-1)
    assert not sack.packets[0].doubted


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
