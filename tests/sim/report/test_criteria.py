"""The criteria of claims are functions of numbers: tables of cases on both sides of each line."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from sim.figures import (
    baseline,
    convergence,
    failure_rate,
    growth,
    message_size,
    network_size,
    overload,
    sack,
)
from sim.report import schemes
from sim.report.claims import CLAIMS, combined, decide
from sim.report.figure import FAILS, HOLDS, OPEN, PARTLY, Outcome, Verdict
from sim.report.statistics import Estimate


def runs(increases: dict[str, Sequence[float]], **columns: Any) -> pl.DataFrame:
    """Return a frame of runs: one row a load balancer and seed."""
    rows = [
        {
            "policy": policy,
            "seed": seed,
            "increase": value,
            "cct_ps": 17_000_000 * (1 + value),
            **columns,
        }
        for policy, values in increases.items()
        for seed, value in enumerate(values, start=1)
    ]
    return pl.DataFrame(rows)


def exactly(mean: float, half: float = 0.0) -> Estimate:
    return Estimate(mean, half, 10)


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [
        ([HOLDS], HOLDS),
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, FAILS], PARTLY),
        ([FAILS], FAILS),
        ([HOLDS, OPEN], OPEN),
        ([], OPEN),
    ],
)
def test_verdicts_of_a_claim_come_together(outcomes: list[Outcome], together: Outcome) -> None:
    assert combined([Verdict("C01", outcome, "") for outcome in outcomes]) == together


def test_a_changed_criterion_does_not_count() -> None:
    assert (
        combined([Verdict("C01", FAILS, ""), Verdict("C01", HOLDS, "", criterion="another")])
        == FAILS
    )


@pytest.mark.parametrize(
    ("checks", "outcome"), [([True, True], HOLDS), ([True, False], PARTLY), ([False, False], FAILS)]
)
def test_checks_decide(checks: list[bool], outcome: Outcome) -> None:
    assert decide(checks) == outcome


def test_every_claim_of_the_paper_is_listed() -> None:
    assert list(CLAIMS) == [f"C{number:02}" for number in range(1, 32)]


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
        ({"host_pkt": (1.0, 1.9, 1.3)}, FAILS),
        ({"host_pkt": (0.1, 2.9, 0.1)}, FAILS),
    ],
)
def test_packet_schemes_beat_coarse_ones_and_are_close(
    change: dict[str, Sequence[float]], outcome: Outcome
) -> None:
    assert baseline.packets_beat_coarse(runs({**COARSE, **CLOSE, **change})).verdict == outcome


@pytest.mark.parametrize(
    ("flowlets", "outcome"),
    [((1.6, 1.7, 1.7), HOLDS), ((1.3, 1.7, 1.4), FAILS), ((1.2, 1.3, 1.2), FAILS)],
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
    ("gaps", "stays"),
    [((0.1, 0.11, 0.09), True), ((0.1, 0.121, 0.1), False), ((0.1, 0.079, 0.1), False)],
)
def test_gaps_stay_within_a_fifth(gaps: Sequence[float], stays: bool) -> None:
    assert failure_rate.unchanged(dict(enumerate(map(exactly, gaps)))) is stays


def groups(linear: Estimate, root: Estimate, constant: Estimate) -> dict[str, Estimate]:
    fits = zip(growth.GROUPS.values(), (linear, root, constant), strict=True)
    return {policy: fit for group, fit in fits for policy in group}


@pytest.mark.parametrize(
    ("linear", "root", "constant", "right"),
    [
        (exactly(0.9, 0.1), exactly(0.5, 0.1), exactly(0.1, 0.1), True),
        (exactly(0.6, 0.1), exactly(0.5, 0.1), exactly(0.1, 0.1), False),
    ],
)
def test_groups_of_exponents_do_not_overlap(
    linear: Estimate, root: Estimate, constant: Estimate, right: bool
) -> None:
    assert growth.in_order(groups(linear, root, constant)) is right


@pytest.mark.parametrize(
    ("second", "same"),
    [({"a": 0.1, "b": 0.2}, True), ({"a": 0.2, "b": 0.1}, False), ({"a": 0.102, "b": 0.1}, True)],
)
def test_orders_agree_up_to_half_a_point(second: dict[str, float], same: bool) -> None:
    assert network_size.same_order({16: {"a": 0.1, "b": 0.2}, 128: second}) is same


@pytest.mark.parametrize(("other", "stays"), [(0.18, True), (0.25, False), (0.01, False)])
def test_gaps_to_ofan_stay_within_a_factor_two(other: float, stays: bool) -> None:
    sizes = {
        16: {"ofan": 0.02, "host_pkt_ar": 0.1, "switch_pkt_ar": 0.1},
        128: {"ofan": 0.02, "host_pkt_ar": other, "switch_pkt_ar": 0.1},
    }
    assert network_size.gaps_stay(sizes) is stays


@pytest.mark.parametrize(
    ("gaps", "falls"),
    [((0.2, 0.1, 0.05), True), ((0.2, 0.1, 0.15), False), ((0.1, 0.1, 0.1), False)],
)
def test_gaps_shrink_from_one_megabyte_on(gaps: Sequence[float], falls: bool) -> None:
    sizes = [schemes.MIB * 4**power for power in range(3)]
    assert message_size.shrinks({schemes.KIB: 0.0, **dict(zip(sizes, gaps, strict=True))}) is falls


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({2: exactly(0.2), 6: exactly(0.1), 16: exactly(0.104)}, (6, 16)),
        ({2: exactly(0.2, 0.1), 6: exactly(0.1, 0.11)}, (2, 6)),
    ],
)
def test_thresholds_as_good_as_the_best(found: dict[int, Estimate], best: tuple[int, ...]) -> None:
    assert sack.good(found) == best


def links(up: float, down: float) -> overload.Overload:
    return overload.Overload(uplinks=exactly(up), downlinks=exactly(down))


def worst(perfect: float, poor: float) -> dict[str, overload.Overload]:
    found = {policy: links(poor, poor) for policy in overload.RANDOM}
    local = {policy: links(perfect, poor) for policy in overload.LOCAL}
    return {
        **found,
        **local,
        "host_dr": links(perfect, perfect),
        "ofan": links(0, 0.01),
    }


@pytest.mark.parametrize(
    ("perfect", "poor", "right"), [(0.01, 0.5, 5), (0.03, 0.5, 3), (0.01, 0.09, 3)]
)
def test_overload_perfect_and_poor(perfect: float, poor: float, right: int) -> None:
    small = {
        **worst(perfect, poor),
        "host_dr": links(0.01, 0.01),
        "ofan": links(0, 0),
    }
    assert sum(overload.judged(worst(perfect, poor), small).values()) == right
