"""Any folded Clos: virtual network, programs in windows and kernels are the same to the picosecond.

`test_naive_against_sim` holds the kernels to the plain model on the same fabrics.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from emulation.errors import EmulationError
from emulation.virtual import simulated
from fattree.errors import FabricError
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.policies import POLICIES
from tests import naive
from tests.parity import (
    test_naive_against_sim,
    test_programs_equal_kernels,
    test_virtual_equals_simulator,
)
from tests.parity.drawing import pairs
from tests.parity.scenarios import HORIZON_PS, scenarios, virtual
from tests.python_network.fabric import PythonFabric

LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))
SHAPES = {
    "leaf-spine": {"edges_per_pod": 3, "hosts_per_edge": 3, "aggs_per_pod": 2},
    "oversubscribed": {
        "pods": 3,
        "edges_per_pod": 2,
        "hosts_per_edge": 4,
        "aggs_per_pod": 2,
        "cores_per_agg": 1,
    },
    "parallel links": {
        "pods": 2,
        "edges_per_pod": 2,
        "hosts_per_edge": 3,
        "aggs_per_pod": 2,
        "cores_per_agg": 2,
        "edge_agg_links": 2,
        "agg_core_links": 3,
    },
    "planes": {"planes": 2, "edges_per_pod": 2, "hosts_per_edge": 3, "aggs_per_pod": 2},
    "planes of three levels": {
        "planes": 2,
        "pods": 3,
        "edges_per_pod": 1,
        "hosts_per_edge": 2,
        "aggs_per_pod": 2,
        "cores_per_agg": 2,
        "edge_agg_links": 2,
        "agg_core_links": 2,
    },
    "levels of their own": {
        "pods": 2,
        "edges_per_pod": 2,
        "hosts_per_edge": 2,
        "aggs_per_pod": 2,
        "cores_per_agg": 1,
        "rate_gbps": 400,
        "edge_agg_gbps": 300,
        "agg_core_gbps": 1600,
        "edge_agg_latency_ns": 100,
        "agg_core_latency_ns": 3000,
    },
}


def scenario(shape: str, policy: str, **settings: Any) -> Scenario:
    return Scenario(
        policy=policy,
        seed=7,
        fabric=Fabric.model_validate(SHAPES[shape]),
        collective=Collective(message_bytes=6 * 4096),
        **settings,
    )


@pytest.mark.parametrize(("policy", "shape"), pairs([*POLICIES], [*SHAPES], quick=2))
def test_every_load_balancer_is_the_same_on_every_fabric(policy: str, shape: str) -> None:
    # Late routes: a change of plans while packets are under way.
    failures = Failures(rate=0.2, at_ns=1500, convergence_rtt=0.5)
    experiment = scenario(shape, policy, failures=failures)
    result = sim.run(experiment)
    assert result.ports.lost_to_failure.sum() > 0
    test_virtual_equals_simulator.assert_same(PythonFabric(experiment).run(), result)
    test_programs_equal_kernels.assert_same(simulated.run(experiment, threads=2), result)


def test_a_lost_parallel_link_moves_its_hosts_to_the_others() -> None:
    event = FailureEvent(link="edge0_0-agg0_0/1", down_ns=0)
    experiment = scenario("parallel links", "ofan", failures=Failures(events=(event,)))
    result = sim.run(experiment)
    tree = experiment.tree
    agg = tree.first_port(tree.agg(0, 0))
    alive, dead = result.ports.packets[agg : agg + 2].tolist()
    assert (alive > 0, dead) == (True, 0)


@pytest.mark.parametrize("use", ["spray", "keep"])
def test_planes_carry_what_the_plain_model_says(use: str) -> None:
    drawn = scenario("planes", "ofan", failures=Failures(rate=0.1))
    fabric = drawn.fabric.model_copy(update={"plane_use": use})
    experiment = drawn.model_copy(update={"fabric": fabric})
    result = sim.run(experiment)
    plain = test_naive_against_sim.of_naive(naive.run(experiment, HORIZON_PS))
    assert test_naive_against_sim.of_sim(result) == plain
    # Of every message each plane carries half, or a single plane all.
    shares = {"spray": {3}, "keep": {6}}[use]
    assert set(result.flows.packets.tolist()) == shares
    plane = experiment.tree.hosts_per_pod
    assert (result.flows.source // plane == result.flows.destination // plane).all()


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@given(st.data())
@settings(LENIENT, max_examples=25)
def test_scenarios_drawn_at_random_are_the_same(policy: str, data: st.DataObject) -> None:
    experiment = virtual(data.draw(scenarios(policy)))
    try:
        result = sim.run(experiment, horizon_ps=HORIZON_PS)
    except (FabricError, sim.UnfinishedError):
        assume(False)
    try:
        outcome = PythonFabric(experiment).run(horizon_ps=HORIZON_PS)
    except EmulationError as error:
        raise AssertionError(experiment) from error
    test_virtual_equals_simulator.assert_same(outcome, result)
