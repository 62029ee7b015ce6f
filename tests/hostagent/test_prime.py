"""PRIME's labels: a part for each tier, uplinks in turn, penalties by severity that decay."""

from collections import Counter

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import Fabric, Scenario, Transport
from hostagent.rules import rules
from hostagent.transports import labels, prime
from hostagent.transports.state import MOST_PENALTY, MOST_UPLINKS, TRIMMED_PENALTY
from tests.hostagent.conftest import Sender

UPLINKS = 4
RTT = Scenario().zero_load_rtt_ps
# The penalties of an ECN mark, a trimmed and a lost packet, the less grave first.
SEVERITIES = (1, TRIMMED_PENALTY, MOST_PENALTY)


@pytest.fixture
def sender() -> Sender:
    return Sender(Scenario(policy="prime", fabric=Fabric(k=8)), packets=4000)


@pytest.fixture
def trimming() -> Sender:
    transport = Transport(recovery="sack", sack_threshold=3, trimming=True)
    scenario = Scenario(policy="prime", fabric=Fabric(k=8), transport=transport)
    return Sender(scenario, packets=400)


def sent_parts(sender: Sender, count: int) -> list[tuple[int, int]]:
    """Return the uplinks of the edge and of the agg that so many packets name."""
    found = [sender.send(0)[1] for _ in range(count)]
    edge, agg = sender.rules.edge_uplinks, sender.rules.agg_uplinks
    return [((label & 0xFF) % edge, (label >> 8) % agg) for label in found]


def penalties(sender: Sender, tier: int) -> list[int]:
    first = tier * MOST_UPLINKS
    return [int(penalty) for penalty in sender.state.path_states[first : first + UPLINKS]]


@pytest.mark.parametrize("k", [2, 4, 6, 8, 10, 24])
def test_each_tier_takes_every_uplink_once_a_round(k: int) -> None:
    sender = Sender(Scenario(policy="prime", fabric=Fabric(k=k)), packets=4000)
    half = k // 2
    for _ in range(3):
        sent = sent_parts(sender, half * half)
        rounds = [sent[first : first + half] for first in range(0, half * half, half)]
        assert all(sorted(edge for edge, _ in one) == list(range(half)) for one in rounds)
        assert sorted(one[0][1] for one in rounds) == list(range(half))
        # So as many packets in a row as there are paths take each once.
        assert len(set(sent)) == half * half


def test_a_rounds_order_is_its_own(sender: Sender) -> None:
    edges = [edge for edge, _ in sent_parts(sender, 40 * UPLINKS)]
    orders = Counter(tuple(edges[first : first + UPLINKS]) for first in range(0, 160, UPLINKS))
    assert len(orders) > 4


def test_a_leaf_spine_has_one_tier_of_turns() -> None:
    leaf_spine = Fabric(edges_per_pod=2, hosts_per_edge=2, aggs_per_pod=3)
    sender = Sender(Scenario(policy="prime", fabric=leaf_spine), packets=40)
    assert Counter(sent_parts(sender, 12)) == {(0, 0): 4, (1, 0): 4, (2, 0): 4}


@pytest.mark.parametrize("slots", [2, 3, 5, 15])
def test_as_many_slots_as_failures_leave_get_equal_shares(sender: Sender, slots: int) -> None:
    labels_sent = [sender.send(0)[1] for _ in range(slots * UPLINKS**2)]
    shares = Counter((label & 0xFF) % slots for label in labels_sent[: slots * UPLINKS])
    assert set(shares.values()) == {UPLINKS}
    assert len({(label >> 8) % slots for label in labels_sent}) == slots


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_graver_signal_rests_an_uplink_for_longer(sender: Sender, severity: int) -> None:
    sent_parts(sender, UPLINKS)
    prime.penalise(sender.state, sender.rules, 2, severity)
    turns = sent_parts(sender, (UPLINKS - 1) * severity)
    assert 2 not in {edge for edge, _ in turns}
    assert 2 in {edge for edge, _ in sent_parts(sender, UPLINKS)}


def test_penalties_decay_by_the_turns_that_pass_an_uplink_over(sender: Sender) -> None:
    sent_parts(sender, UPLINKS)
    prime.penalise(sender.state, sender.rules, 2, 3)
    seen = []
    for _ in range(4):
        sent_parts(sender, UPLINKS - 1)
        seen.append(penalties(sender, prime.EDGE)[2])
    assert seen == [2, 1, 0, 0]


def test_marks_trims_and_losses_blame_both_uplinks_of_a_label(sender: Sender) -> None:
    labels.on_ack(sender.state, sender.rules, 0x0301, True, 0)
    labels.on_ack(sender.state, sender.rules, 0x0301, False, 0)
    labels.on_nack(sender.state, sender.rules, 0x0202, 0)
    labels.on_lost(sender.state, sender.rules, 0x0103)
    assert penalties(sender, prime.EDGE) == [0, 1, 4, 15]
    assert penalties(sender, prime.AGG) == [0, 15, 4, 1]


def test_penalties_add_up_to_the_most_there_is(sender: Sender) -> None:
    for _ in range(5):
        prime.penalise(sender.state, sender.rules, 0x0101, TRIMMED_PENALTY)
    assert penalties(sender, prime.EDGE)[1] == penalties(sender, prime.AGG)[1] == MOST_PENALTY


def test_who_rests_everywhere_takes_the_uplink_with_the_least_penalty(sender: Sender) -> None:
    sent_parts(sender, UPLINKS)
    for uplink, penalty in enumerate((9, 3, 7, 15)):
        prime.penalise(sender.state, sender.rules, uplink, penalty)
    assert sent_parts(sender, 1)[0][0] == 1


def test_a_packet_that_times_out_counts_as_lost(sender: Sender) -> None:
    edge, agg = sent_parts(sender, 1)[0]
    sender.send(3 * RTT)
    # The walk past it has taken none or one off by then.
    assert penalties(sender, prime.EDGE)[edge] >= MOST_PENALTY - 1
    assert penalties(sender, prime.AGG)[agg] == MOST_PENALTY


def test_a_hole_that_is_sent_again_counts_as_lost_and_a_cut_packet_does_not(
    trimming: Sender,
) -> None:
    sent = [trimming.send(0)[1] for _ in range(8)]
    trimming.nack(0, RTT)
    trimming.send(RTT)
    assert max(penalties(trimming, prime.EDGE)) <= TRIMMED_PENALTY

    for psn in range(2, 8):
        trimming.ack(psn, RTT)
    assert trimming.send(RTT)[0] == 1
    assert penalties(trimming, prime.EDGE)[(sent[1] & 0xFF) % UPLINKS] >= MOST_PENALTY - 1


def test_more_uplinks_than_a_host_remembers_are_refused() -> None:
    rules(Scenario(policy="prime", fabric=Fabric(k=2 * MOST_UPLINKS)))
    wide = Fabric(edges_per_pod=2, hosts_per_edge=2, aggs_per_pod=5, edge_agg_links=13)
    with pytest.raises(ExperimentError, match=r"remembers 64 uplinks of a switch, .* with 65"):
        rules(Scenario(policy="prime", fabric=wide))
