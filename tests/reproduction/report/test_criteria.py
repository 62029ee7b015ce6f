"""The criteria of claims are functions of numbers: tables of cases on both sides of each line."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from reproduction.figures import (
    baseline,
    buffer_size,
    converged,
    convergence,
    failure_rate,
    growth,
    message_size,
    network_size,
    overload,
    sack,
)
from reproduction.report import schemes
from reproduction.report.claims import POINT
from reproduction.report.figure import (
    FAILS,
    FEW,
    HOLDS,
    PARTLY,
    Outcome,
)
from reproduction.report.statistics import Estimate, one_direction
from tests.reproduction.report.made_up import exactly, runs

COARSE = {"flow": (2.3, 2.5, 2.4), "subflow": (1.4, 1.5, 1.4), "host_flowlet_ar": (1.6, 1.7, 1.7)}
CLOSE = {
    "host_pkt": (0.09, 0.1, 0.1),
    "switch_pkt": (0.11, 0.12, 0.12),
    "host_pkt_ar": (0.1, 0.1, 0.11),
    "switch_pkt_ar": (0.08, 0.09, 0.09),
}


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, HOLDS),
        ({"switch_pkt": (0.5, 0.5, 0.5)}, PARTLY),
        ({"host_pkt": (2.9, 2.9, 2.9)}, FAILS),
        ({"host_pkt": (0.1, 2.9, 0.1)}, FEW),
    ],
)
def test_packet_schemes_beat_coarse_ones_and_are_close(
    change: dict[str, Sequence[float]], outcome: Outcome
) -> None:
    assert baseline.packets_beat_coarse(runs({**COARSE, **CLOSE, **change})).verdict == outcome


@pytest.mark.parametrize(
    ("flowlets", "outcome"),
    [((1.9, 2.0, 1.9), HOLDS), ((1.3, 1.7, 1.4), FEW), ((1.2, 1.3, 1.2), FAILS)],
)
def test_flowlets_against_subflows(flowlets: Sequence[float], outcome: Outcome) -> None:
    assert (
        baseline.flowlets_against_subflows(runs({**COARSE, "host_flowlet_ar": flowlets})).verdict
        == outcome
    )


@pytest.mark.parametrize(
    ("differences", "first"),
    [
        ({0: exactly(0, 1), 1: exactly(1, 2), 2: exactly(5, 1), 4: exactly(9, 1)}, 2),
        ({0: exactly(0, 1), 1: exactly(5, 1), 2: exactly(1, 2), 4: exactly(9, 1)}, 4),
        ({0: exactly(0, 1), 1: exactly(1, 2)}, float("inf")),
    ],
)
def test_first_delay_from_which_schemes_differ(
    differences: dict[float, Estimate], first: float
) -> None:
    assert convergence.first_difference(differences) == first


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        (exactly(0.02, 0.005), True),
        (exactly(-0.04, 0.005), False),
        (exactly(0.02, 0.02), None),
    ],
)
def test_c07_gaps_stay_within_three_points(change: Estimate, stays: bool | None) -> None:
    assert failure_rate.unchanged(change) is stays


def groups(linear: Estimate, root: Estimate, constant: Estimate) -> dict[str, Estimate]:
    fits = zip(growth.GROUPS.values(), (linear, root, constant), strict=True)
    return {policy: fit for group, fit in fits for policy in group}


@pytest.mark.parametrize(
    ("linear", "root", "constant", "right"),
    [
        (exactly(0.9, 0.1), exactly(0.5, 0.1), exactly(0.1, 0.1), True),
        (exactly(0.6, 0.1), exactly(0.5, 0.1), exactly(0.1, 0.1), None),
        (exactly(0.4, 0.1), exactly(0.5, 0.1), exactly(0.1, 0.1), None),
        (exactly(0.2, 0.1), exactly(0.5, 0.1), exactly(0.1, 0.1), False),
        (exactly(0.5, 0.02), exactly(0.5, 0.02), exactly(0.1, 0.1), False),
    ],
)
def test_groups_of_exponents_do_not_overlap(
    linear: Estimate, root: Estimate, constant: Estimate, right: bool | None
) -> None:
    assert growth.in_order(groups(linear, root, constant)) is right


def test_c08_steps_tell_a_plateau_from_growth() -> None:
    queues = {64: 30, 128: 32, 256: 34, 512: 60, 1024: 110}
    rows = [
        {"policy": "jsq", "seed": seed, "size": size, "max_queue_packets": queue + seed / 10}
        for size, queue in queues.items()
        for seed in range(3)
    ]
    steps = growth.steps(pl.DataFrame(rows), "jsq")

    assert steps[256].mean == pytest.approx(0.09, abs=0.01)
    assert steps[1024].mean == pytest.approx(0.87, abs=0.01)


PAIR = ("host_pkt_ar", "ofan")


@pytest.mark.parametrize(
    ("second", "same"),
    [
        (exactly(0.05, 0.01), True),
        (exactly(-0.05, 0.01), False),
        (exactly(-0.05, 0.1), None),
        (exactly(-0.002, 0.006), True),
        (exactly(-0.005, 0.004), False),
    ],
)
def test_c10_no_pair_turns(second: Estimate, same: bool) -> None:
    assert network_size.same_direction({PAIR: {16: exactly(0.1, 0.01), 128: second}}) is same


def test_c10_pairs_that_no_size_tells_apart_are_not_decided() -> None:
    assert network_size.same_direction({PAIR: {16: exactly(0.1, 0.2)}}) is None


@pytest.mark.parametrize(
    ("second", "stays"),
    [
        (exactly(0.18, 0.001), True),
        (exactly(0.25, 0.01), False),
        (exactly(0.01, 0.001), False),
        (exactly(0.2, 0.05), None),
    ],
)
def test_c10_gaps_stay_within_a_factor_two(second: Estimate, stays: bool | None) -> None:
    assert network_size.gaps_stay({PAIR: {16: exactly(0.1, 0.001), 128: second}}) is stays


def test_c10_gaps_below_a_point_do_not_count() -> None:
    gaps = {PAIR: {16: exactly(0.001, 0.0001), 128: exactly(0.009, 0.0001)}}
    assert network_size.gaps_stay(gaps) is True


def values(*means: float, noise: float = 0.001) -> dict[int, Any]:
    """Return ten seeds of every size, from 256 KB on."""
    spread = noise * np.array([-1, 1] * 5)
    return {
        schemes.MIB // 4 * 4**power: mean + (1 + 0.1 * power) * spread
        for power, mean in enumerate(means)
    }


LAST = schemes.MIB * 4


@pytest.mark.parametrize(
    ("gaps", "falls"),
    [
        (values(0.1, 0.2, 0.05), True),
        (values(0.2, 0.1, 0.15), False),
        (values(0.1, 0.11, 0.2), False),
        (values(0.1, 0.2, 0.199, noise=0.1), None),
    ],
)
def test_c12_gaps_shrink_from_their_peak_on(gaps: dict[int, Any], falls: bool | None) -> None:
    assert message_size.shrinks(gaps, until=LAST) is falls


@pytest.mark.parametrize(
    ("increases", "again"),
    [
        (values(0.3, 0.1, 0.2), True),
        (values(0.3, 0.2, 0.1), False),
        (values(0.3, 0.1, 0.101, noise=0.1), None),
    ],
)
def test_c12_host_pkt_ar_rises_again(increases: dict[int, Any], again: bool | None) -> None:
    assert message_size.rises(increases, message_size.lowest_from(increases)) is again


@pytest.mark.parametrize(
    ("second", "stays"),
    [(exactly(0.1), True), (exactly(-0.1), False)],
)
def test_c12_no_pair_changes_direction(second: Estimate, stays: bool) -> None:
    assert one_direction([exactly(0.1), second], POINT) is stays


@pytest.mark.parametrize(
    ("sack_gap", "same"),
    [(exactly(0.05, 0.01), True), (exactly(-0.05, 0.01), False), (exactly(-0.05, 0.1), None)],
)
def test_c14_the_order_of_sack_is_that_of_erasure(sack_gap: Estimate, same: bool | None) -> None:
    assert sack.same_order({PAIR: sack_gap}, {PAIR: exactly(0.1, 0.01)}, POINT) is same


@pytest.mark.parametrize(
    ("flowlets", "outcome"),
    [((2.6, 2.7, 2.7), HOLDS), ((0.6, 0.7, 0.7), FAILS), ((1.0, 2.9, 1.5), FEW)],
)
def test_c27_the_gap_with_stale_routes_is_not_below(
    flowlets: Sequence[float], outcome: Outcome
) -> None:
    whole = runs({**COARSE, **CLOSE})
    stale = runs({**COARSE, **CLOSE, "host_flowlet_ar": flowlets})

    assert converged.gap_grows(stale, whole, whole, whole).verdict == outcome


@pytest.mark.parametrize(
    ("estimates", "best"),
    [
        ({2: exactly(0.2), 6: exactly(0.1), 16: exactly(0.104)}, (6, 16)),
        ({2: exactly(0.2, 0.1), 6: exactly(0.1, 0.11)}, (2, 6)),
    ],
)
def test_thresholds_as_good_as_the_best(
    estimates: dict[int, Estimate], best: tuple[int, ...]
) -> None:
    assert sack.good(estimates) == best


def links(up: float, down: float) -> overload.Overload:
    return overload.Overload(uplinks=exactly(up), downlinks=exactly(down))


def worst(perfect: float, poor: float) -> dict[str, overload.Overload]:
    overloads = {policy: links(poor, poor) for policy in overload.RANDOM}
    local = {policy: links(perfect, poor) for policy in (*overload.LOCAL, "simple_rr_shared")}
    return {
        **overloads,
        **local,
        "host_dr": links(perfect, perfect),
        "ofan": links(0, 0.01),
    }


@pytest.mark.parametrize(
    ("perfect", "poor", "right"), [(0.01, 0.5, 5), (0.06, 0.5, 3), (0.01, 0.09, 3)]
)
def test_overload_perfect_and_poor(perfect: float, poor: float, right: int) -> None:
    small = {
        **worst(perfect, poor),
        "host_dr": links(0.01, 0.01),
        "ofan": links(0, 0),
    }
    checks = overload.judged(worst(perfect, poor), small)

    assert sum(value is True for value in checks.values()) == right


def test_c09_an_interval_on_both_sides_of_the_line_is_not_decided() -> None:
    overloads = worst(0.01, 0.5)
    overloads["host_dr"] = overload.Overload(exactly(0.05, 0.01), exactly(0.01))

    assert overload.judged(overloads, worst(0.2, 0.5))["Host DR is perfect at 1 MB"] is None


BUFFERS = {
    "host_pkt": (0.5, 0.51, 0.52),
    "switch_pkt": (0.5, 0.52, 0.51),
    "host_pkt_ar": (0.3, 0.31, 0.32),
    "switch_pkt_ar": (0.4, 0.42, 0.41),
    "switch_pkt_ar_stale": (0.06, 0.062, 0.061),
    "ofan": (0.01, 0.011, 0.012),
}


@pytest.mark.parametrize(
    ("readings", "outcome"), [("switch_pkt_ar", PARTLY), ("switch_pkt_ar_stale", HOLDS)]
)
def test_c11_each_age_of_readings_has_its_verdict(readings: str, outcome: Outcome) -> None:
    assert buffer_size.short_buffers(runs(BUFFERS), readings).verdict == outcome


@pytest.mark.parametrize(
    ("flowlets", "outcome"),
    [((0.1, 0.101, 0.1), HOLDS), ((0.3, 0.31, 0.32), PARTLY), ((0.1, 0.2, 0.15), FEW)],
)
def test_c03_flowlets_within_16_per_cent(flowlets: Sequence[float], outcome: Outcome) -> None:
    near = dict.fromkeys((*CLOSE, "ofan"), (0.001, 0.0011, 0.001))
    ata = runs(
        {**near, "flow": (0.5, 0.5, 0.5), "subflow": (0.4, 0.41, 0.4), "host_flowlet_ar": flowlets},
        bound_ps=1_350_000_000,
        packets=128 * 127 * 256,
        hosts=128,
    )

    assert baseline.near_the_bound(ata, runs({**COARSE, **CLOSE})).verdict == outcome
