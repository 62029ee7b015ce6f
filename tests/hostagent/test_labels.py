"""Fixed, fresh, PLB, REPS (load balancers, "Hosts") and UET Bitmap's labels."""

from itertools import pairwise

from fattree.experiment.model import Scenario
from hostagent.transports import labels
from hostagent.transports.state import MOST_PENALTY, PATHS, RING
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
    # The new path has as long.
    after = plb.state.label
    assert plb.send(6 * RTT - 1)[1] == after
    assert plb.send(6 * RTT)[1] != after


def test_plb_keeps_a_path_that_acks_come_from_although_packets_are_lost(plb: Sender) -> None:
    before = plb.send(0)[1]
    for psn in range(1, 60):
        now_ps = psn * RTT
        assert plb.send(now_ps)[1] == before
        plb.ack(psn, now_ps + RTT // 2)


def test_plb_times_from_the_first_packet_after_an_ack(plb: Sender) -> None:
    before = plb.send(0)[1]
    plb.ack(0, RTT)
    # A message may pause: only packets make the flow wait for an ACK.
    assert plb.send(60 * RTT)[1] == before
    assert plb.send(63 * RTT - 1)[1] == before
    assert plb.send(63 * RTT)[1] != before


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


def sent_paths(bitmap: Sender, count: int) -> list[int]:
    return [bitmap.send(0)[1] % PATHS for _ in range(count)]


def test_bitmap_takes_every_label_once_a_round_in_an_order_of_the_rounds_own(
    bitmap: Sender,
) -> None:
    sent = [bitmap.send(0)[1] for _ in range(3 * PATHS)]
    rounds = [sent[first : first + PATHS] for first in range(0, len(sent), PATHS)]
    assert [len(set(labels_of_round)) for labels_of_round in rounds] == [PATHS] * 3
    assert {frozenset(labels_of_round) for labels_of_round in rounds} == {frozenset(rounds[0])}
    assert len({tuple(labels_of_round) for labels_of_round in rounds}) == 3
    # The upper bits are the flow's own, drawn with its first label.
    assert {label // PATHS for label in sent} == {bitmap.state.label // PATHS} != {0}


def test_bitmap_flips_bits_of_the_count(bitmap: Sender) -> None:
    sent = sent_paths(bitmap, PATHS)
    assert {path ^ turn for turn, path in enumerate(sent)} == {sent[0]}


def test_bitmap_skips_a_marked_label_once_for_each_mark(bitmap: Sender) -> None:
    sent = sent_paths(bitmap, PATHS)
    for _ in range(2):
        labels.on_ack(bitmap.state, bitmap.rules, bitmap.packets[3].label, True, 0)
    labels.on_ack(bitmap.state, bitmap.rules, bitmap.packets[4].label, False, 0)
    skipping = [sent_paths(bitmap, PATHS - 1) for _ in range(2)]
    assert [set(sent) - set(paths) for paths in skipping] == [{sent[3]}] * 2
    assert set(sent_paths(bitmap, PATHS)) == set(sent)


def test_bitmap_lets_only_the_first_label_that_it_skips_off(bitmap: Sender) -> None:
    first, second = (path ^ bitmap.state.turn_xor for path in (0, 1))
    for path in (first, second):
        labels.penalise(bitmap.state, path, 2)
    assert sent_paths(bitmap, 1) == [2 ^ bitmap.state.turn_xor]
    assert [bitmap.state.penalties[path] for path in (first, second)] == [1, 2]


def test_bitmap_sends_where_all_labels_have_penalties(bitmap: Sender) -> None:
    for path in range(PATHS):
        labels.penalise(bitmap.state, path, 1000)
    assert set(bitmap.state.penalties) == {MOST_PENALTY}
    bitmap.send(0)
    assert sorted(bitmap.state.penalties) == [MOST_PENALTY - 1] + [MOST_PENALTY] * (PATHS - 1)
    assert bitmap.state.turn == 1


def test_bitmap_gives_a_label_that_timed_out_the_most_penalty(bitmap: Sender) -> None:
    path = bitmap.send(0)[1] % PATHS
    bitmap.send(3 * RTT - 1)
    assert not any(bitmap.state.penalties)
    bitmap.send(3 * RTT)
    assert bitmap.state.penalties[path] == MOST_PENALTY
    assert sum(bitmap.state.penalties) == MOST_PENALTY
