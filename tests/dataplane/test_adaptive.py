"""RSQ, JSQ, Switch Pkt AR and Ofan's JSQ start: queues, ties, bins, weights.

Queues are bytes that wait at a port.
"""

from collections import Counter

import pytest

from controller.fabric_controller import LinkChange
from fattree.experiment.model import Scenario
from tests.dataplane.rig import Rig, ack, controller_of, data, rig, scenario


def loaded(
    chosen: Scenario,
    queues: list[int],
    failed: frozenset[int] = frozenset(),
    draw: int | None = None,
) -> Rig:
    """Return edge 0 with bytes waiting at its uplinks; `draw` replaces its random numbers."""
    bench = rig(chosen, 0, None if draw is None else lambda low, high: draw)
    controller = controller_of(chosen)
    controller.start()
    bench.apply(controller.on_event(0, LinkChange(down=failed)))
    registers = bench.switch.pipeline
    assert registers is not None
    for uplink, queue in enumerate(queues):
        registers.registers[0][bench.tree.uplink_port(0, uplink)] = queue
    return bench


def choices(bench: Rig, count: int) -> Counter[int]:
    """Return how often each uplink is chosen for data while the queues stay as they are."""
    cells = bench.switch.pipeline.registers[0]  # type: ignore[union-attr]
    before = list(cells)
    counts: Counter[int] = Counter()
    for _ in range(count):
        port = bench.offer(data(bench.tree, 0, bench.tree.hosts - 1))
        assert port is not None
        counts[port - bench.tree.uplink_port(0, 0)] += 1
        bench.waiting.clear()
        cells[:] = before
    return counts


def is_even(counts: Counter[int], shares: dict[int, float]) -> bool:
    """Return whether counts fit their shares within 5 standard deviations (else p < 10^-5)."""
    total = sum(counts.values())
    return set(counts) <= set(shares) and all(
        abs(counts[uplink] - total * share) <= 5 * (total * share * (1 - share)) ** 0.5
        for uplink, share in shares.items()
    )


def test_rsq_is_uniform_whatever_the_queues() -> None:
    assert is_even(
        choices(loaded(scenario("rsq", k=8), [0, 9, 700_000, 1]), 2000),
        dict.fromkeys(range(4), 0.25),
    )


def test_rsq_draws_in_proportion_to_weight() -> None:
    bench = loaded(scenario("rsq", k=8), [], frozenset({16 * 8}))
    assert is_even(choices(bench, 3000), {0: 3 / 15, 1: 4 / 15, 2: 4 / 15, 3: 4 / 15})


@pytest.mark.parametrize(
    ("queues", "best"), [([5, 4, 9, 7], 1), ([1, 0, 2, 3], 1), ([8, 8, 8, 7], 3), ([0, 1, 1, 1], 0)]
)
def test_jsq_takes_the_shortest_queue(queues: list[int], best: int) -> None:
    assert choices(loaded(scenario("jsq", k=8), queues), 20) == {best: 20}


def test_jsq_breaks_ties_uniformly() -> None:
    bench = loaded(scenario("jsq", k=8), [100, 4158, 100, 100])
    assert is_even(choices(bench, 2000), dict.fromkeys((0, 2, 3), 1 / 3))


@pytest.mark.parametrize(
    ("draw", "uplink"), [(0, 0), (0x5555, 0), (0x5556, 2), (0xAAAA, 2), (0xAAAB, 3), (0xFFFF, 3)]
)
def test_a_tie_is_number_r_times_ties_shifted_by_16(draw: int, uplink: int) -> None:
    assert choices(loaded(scenario("jsq", k=8), [7, 8, 7, 7], draw=draw), 1) == {uplink: 1}


def test_jsq_divides_queues_by_weights() -> None:
    """Weights 3, 4, 4, 4: 300 bytes at weight 3 equal 400 at weight 4."""
    lost = frozenset({16 * 8})
    assert choices(loaded(scenario("jsq", k=8), [299, 400, 400, 400], lost), 20) == {0: 20}
    assert 0 not in choices(loaded(scenario("jsq", k=8), [301, 400, 400, 400], lost), 20)
    assert is_even(
        choices(loaded(scenario("jsq", k=8), [300, 400, 900, 900], lost), 1000), {0: 0.5, 1: 0.5}
    )


def test_jsq_never_takes_an_uplink_without_a_path() -> None:
    bench = loaded(scenario("jsq", k=8), [0, 500, 400, 900], frozenset({0}))
    assert choices(bench, 50) == {2: 50}


def test_jsq_sees_what_it_has_just_sent_and_what_has_left() -> None:
    bench = loaded(scenario("jsq"), [0, 0])
    frame = data(bench.tree, 0, 15)
    first = bench.offer(frame, length=4158)
    second = bench.offer(frame, length=4158)
    assert {first, second} == {3, 4}
    bench.leave()
    assert bench.offer(frame, length=4158) == first


def test_jsq_weighs_bytes_not_packets() -> None:
    bench = loaded(scenario("jsq"), [0, 0], draw=0)
    assert bench.offer(data(bench.tree, 0, 15), length=4158) == 3
    acks = [bench.offer(ack(bench.tree, 0, 15), length=64) for _ in range(60)]
    assert set(acks) == {4}


@pytest.mark.parametrize(
    ("queues", "share"),
    [
        ([0, 39_999, 40_000, 0], {0: 1 / 3, 1: 1 / 3, 3: 1 / 3}),
        ([40_000, 79_999, 80_000, 500_000], {0: 1 / 2, 1: 1 / 2}),
        ([80_000, 159_999, 160_000, 160_000], {0: 1 / 2, 1: 1 / 2}),
        ([160_000, 799_999, 300_000, 200_000], dict.fromkeys(range(4), 1 / 4)),
    ],
    ids=["first bin", "second", "third", "fourth"],
)
def test_switch_pkt_ar_is_uniform_within_the_lowest_bin(
    queues: list[int], share: dict[int, float]
) -> None:
    """Bins begin at 0, 5, 10 and 20 % of 800,000 bytes."""
    assert is_even(choices(loaded(scenario("switch_pkt_ar", k=8), queues), 1500), share)


def test_switch_pkt_ar_counts_weights_within_a_bin() -> None:
    bench = loaded(
        scenario("switch_pkt_ar", k=8), [0, 0, 400_000, 5], frozenset({16 * 8, 16 * 8 + 1})
    )
    assert is_even(choices(bench, 2000), {0: 1 / 5, 1: 2 / 5, 3: 2 / 5})


def test_switch_pkt_ar_scales_bins_with_the_threshold() -> None:
    chosen = scenario("switch_pkt_ar", k=8, fabric={"queue_bytes": 0, "threshold_bytes": 80_000})
    assert is_even(choices(loaded(chosen, [4_000, 3_999, 3_999, 9_000]), 1000), {1: 0.5, 2: 0.5})


def test_ofan_jsq_start_begins_at_the_shortest_queue_and_goes_on_in_order() -> None:
    bench = loaded(scenario("ofan_jsq_start", k=8), [10, 20, 5, 20])
    frame = data(bench.tree, 0, 127)
    assert [bench.port_of(frame) for _ in range(6)] == [7, 8, 5, 6, 7, 8]


def test_ofan_jsq_start_draws_for_first_packets_only() -> None:
    counted: list[int] = []

    def last(low: int, high: int) -> int:
        counted.append(high)
        return 0xFFFF

    bench = rig(scenario("ofan_jsq_start"), 0, random=last)
    assert [bench.port_of(data(bench.tree, 0, 15)) for _ in range(3)] == [4, 3, 4]
    assert bench.port_of(ack(bench.tree, 0, 15)) == 4
    assert counted == [0xFFFF, 0xFFFF]


def test_ofan_jsq_start_skips_uplinks_without_a_path() -> None:
    bench = loaded(scenario("ofan_jsq_start", k=8), [9, 0, 8, 7], frozenset({31 * 4 + 1}))
    assert [bench.port_of(data(bench.tree, 0, 127)) for _ in range(4)] == [8, 5, 7, 8]
