"""Fixed, fresh, PLB and REPS labels (load balancers, "Hosts")."""

from itertools import pairwise

from fattree.experiment import Scenario
from hostagent import labels
from hostagent.state import RING
from tests.hostagent.conftest import GAP_PS, Sender

RTT = Scenario().zero_load_rtt_ps


def test_fixed_label_never_changes(erasure: Sender) -> None:
    assert len({erasure.send()[1] for _ in range(16)}) == 1


def test_fresh_labels_differ_from_packet_to_packet() -> None:
    sender = Sender(Scenario(policy="host_pkt"), packets=100)
    assert len({sender.send()[1] for _ in range(100)}) > 95


def test_labels_are_the_flows_own_stream() -> None:
    first, again = (Sender(Scenario(policy="host_pkt")) for _ in range(2))
    assert [first.send() for _ in range(5)] == [again.send() for _ in range(5)]


def test_plb_keeps_a_path_while_few_acks_are_marked(plb: Sender) -> None:
    before = plb.state.label
    for psn in range(100):
        plb.send()
        plb.ack(psn, (psn + 1) * GAP_PS, marked=psn % 10 < 3)
    assert plb.state.label == before


def test_plb_leaves_a_bad_path_after_ten_to_twelve_gaps(plb: Sender) -> None:
    before = plb.state.label
    plb.send()
    plb.ack(0, 0)
    changed = []
    for psn in range(1, 40):
        plb.send()
        plb.ack(psn, psn * GAP_PS, marked=True)
        if plb.state.label != before:
            changed.append(psn)
            before = plb.state.label
    assert 10 <= changed[0] <= 17
    assert all(10 <= later - earlier <= 13 for earlier, later in pairwise(changed))


def test_plb_leaves_a_path_that_times_out(plb: Sender) -> None:
    before = plb.send(0)[1]
    plb.send(3 * RTT - 1)
    assert plb.state.label == before
    assert plb.send(3 * RTT)[1] != before


def test_reps_reuses_unmarked_labels_oldest_first(reps: Sender) -> None:
    sent = [reps.send()[1] for _ in range(6)]
    for psn in range(6):
        reps.ack(psn, RTT, marked=psn in (1, 4))
    recycled = [reps.send()[1] for _ in range(5)]
    assert recycled[:4] == [sent[0], sent[2], sent[3], sent[5]]
    assert recycled[4] not in sent


def test_reps_keeps_the_latest_eight_labels(reps: Sender) -> None:
    sent = [reps.send()[1] for _ in range(RING + 3)]
    for psn in range(RING + 3):
        reps.ack(psn, RTT)
    assert reps.state.fresh == RING
    assert [reps.send()[1] for _ in range(RING)] == sent[3:]


def test_reps_freezes_on_a_timeout_and_cycles_through_what_it_has(reps: Sender) -> None:
    sent = [reps.send(0)[1] for _ in range(4)]
    for psn in (0, 1):
        reps.ack(psn, RTT)
    late = 4 * RTT
    frozen = [reps.send(late + number)[1] for number in range(5)]
    assert reps.state.freezes == 1
    assert set(frozen) == {sent[0], sent[1]}


def test_reps_explores_after_freezing(reps: Sender) -> None:
    sent = [reps.send(0)[1] for _ in range(3)]
    reps.ack(0, RTT)
    reps.send(4 * RTT)
    thawed = 4 * RTT + reps.rules.freeze_ps
    assert sent[0] not in [reps.send(thawed + number)[1] for number in range(3)]
    assert reps.state.explore == reps.rules.explore_packets - 3
    assert reps.state.frozen_until_ps == 0


def test_reps_forgets_a_label_that_timed_out(reps: Sender) -> None:
    labels.keep_label(reps.state, 77)
    labels.forget_label(reps.state, 77)
    assert reps.state.fresh == 0
    assert 77 not in reps.state.ring
