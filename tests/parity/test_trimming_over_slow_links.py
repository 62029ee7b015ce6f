"""Trimming over links that become slow and fast again: all networks are the same."""

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from emulation.virtual import simulated
from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from tests import naive
from tests.parity import (
    test_naive_against_sim,
    test_programs_equal_kernels,
    test_virtual_equals_simulator,
)
from tests.parity.scenarios import HORIZON_PS, scenarios, slow_links, virtual
from tests.python_network.fabric import PythonFabric

LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def trimming(draw: Any) -> Scenario:
    """Draw a scenario of any fabric with switches that trim early, and slow links."""
    drawn = virtual(draw(scenarios(draw(st.sampled_from(tuple(POLICIES))))))
    packets = draw(st.integers(1, 5))
    short = drawn.fabric.model_copy(update={"queue_bytes": packets * drawn.data_bytes})
    slow = draw(st.lists(slow_links(drawn.tree), min_size=1, max_size=8))
    updates = {
        "fabric": short,
        "transport": drawn.transport.model_copy(update={"trimming": True}),
        "failures": drawn.failures.model_copy(update={"degraded": tuple(slow)}),
    }
    return drawn.model_copy(update=updates)


def assert_all_same(scenario: Scenario) -> None:
    try:
        result = sim.run(scenario, horizon_ps=HORIZON_PS)
    except (FabricError, sim.UnfinishedError):
        assume(False)

    # A run that looks for a way all the while takes the plain model minutes.
    assume(result.transmissions.sum() <= test_naive_against_sim.MOST_TRANSMISSIONS)
    plain = test_naive_against_sim.of_naive(naive.run(scenario, result.end_ps, gives_up=False))
    assert test_naive_against_sim.of_sim(result) == plain
    outcome = PythonFabric(scenario).run(horizon_ps=HORIZON_PS)
    test_virtual_equals_simulator.assert_same(outcome, result)
    test_programs_equal_kernels.assert_same(simulated.run(scenario, threads=2), result)


@given(trimming())
@settings(LENIENT, max_examples=1)
def test_scenarios_drawn_at_random_are_the_same(scenario: Scenario) -> None:
    assert_all_same(scenario)


@pytest.mark.slow
@given(trimming())
@settings(LENIENT, max_examples=200)
def test_hundreds_more_are_the_same(scenario: Scenario) -> None:
    assert_all_same(scenario)
