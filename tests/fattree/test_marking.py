"""Marks between two bounds: a chance, compared with numbers worked out by hand."""

import pytest

from fattree.errors import ExperimentError
from fattree.experiment.marking import Marking, marking
from fattree.experiment.model import LoadBalancer, Scenario, Transport
from fattree.texts.experiment_file import parse_experiment


def chance(rule: Marking, waiting: int) -> float:
    """Return the share of packets that are marked with so many bytes waiting."""
    return ((waiting - rule.least) * rule.slope >> 16) / 2**16


def test_a_chance_grows_in_proportion_from_bound_to_bound() -> None:
    rule = marking(200_000, least_percent=2.5, full_percent=100, chance=0.01)
    assert (rule.least, rule.full) == (5_000, 200_000)
    assert chance(rule, 5_000) == 0
    assert chance(rule, 102_500) == pytest.approx(0.005, abs=2e-5)
    assert chance(rule, 200_000) == pytest.approx(0.01, abs=3e-5)


def test_one_bound_needs_no_draw() -> None:
    assert marking(800_000, least_percent=10, full_percent=10, chance=0.2) == (80_000, 80_000, 0)


def test_dcqcn_has_two_bounds_unless_told_otherwise() -> None:
    dcqcn = Transport(congestion="dcqcn")
    assert Scenario().marking is None
    rule = Scenario(transport=dcqcn).marking
    assert rule and (rule.least, rule.full) == (100_000, 400_000)
    told = LoadBalancer(ecn_percent=10, ecn_full_percent=10)
    assert Scenario(transport=dcqcn, load_balancer=told).marking == (80_000, 80_000, 0)


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ExperimentError, match="5 is below ecn_percent = 10"):
        parse_experiment(
            "", "here", ["load_balancer.ecn_percent=10", "load_balancer.ecn_full_percent=5"]
        )


def test_a_bound_below_a_byte_is_one_byte_as_none_means_no_marks_to_p4() -> None:
    assert marking(5, least_percent=12.5, full_percent=12.5, chance=0.2) == (1, 1, 0)
