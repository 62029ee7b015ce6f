"""Damped flaps: controller, simulator and plain model leave out the same links."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sim
from emulation.virtual import simulated
from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.shape.addressing import link_name
from tests import naive
from tests.parity import test_naive_against_sim, test_programs_equal_kernels
from tests.parity.pausing import LENIENT
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric


def flapping(flaps: list[dict[str, Any]], rtts: float = 0, **controller: float) -> Scenario:
    return Scenario.model_validate(
        {
            "fabric": {"k": 4},
            "collective": {"message_bytes": 50 * 4096 + 100},
            "seed": 5,
            "failures": {"events": flaps, "convergence_rtt": rtts},
            "controller": controller,
        }
    )


def assert_all_same(scenario: Scenario) -> sim.Result:
    result = sim.run(scenario, horizon_ps=HORIZON_PS)
    test_programs_equal_kernels.assert_same(simulated.run(scenario), result)
    assert_same(PythonFabric(scenario).run(), result)
    plain = naive.run(scenario, HORIZON_PS)
    assert test_naive_against_sim.of_sim(result) == test_naive_against_sim.of_naive(plain)
    return result


OFTEN = {"link": "agg0_0-core0_0", "down_ns": 500, "up_ns": 900, "times": 8, "every_ns": 1_000}


@pytest.mark.parametrize("rtts", [0, 0.5])
def test_a_link_that_flaps_is_left_out_on_all_networks(rtts: float) -> None:
    damped = assert_all_same(flapping([OFTEN], rtts, damping_half_life_us=2))
    plain = sim.run(flapping([OFTEN], rtts))
    # It has been quiet for long enough before the end.
    assert damped.end_ps != plain.end_ps
    never = sim.run(flapping([OFTEN], rtts, damping_half_life_us=1_000))
    assert damped.end_ps != never.end_ps


@given(st.data())
@settings(LENIENT, max_examples=4)
def test_drawn_flaps_are_damped_alike(data: st.DataObject) -> None:
    tree = flapping([]).tree
    flaps = []
    for _ in range(data.draw(st.integers(1, 3))):
        outage_ns = data.draw(st.integers(50, 900))
        down_ns = data.draw(st.sampled_from((0, 1, 700, 3_000)))
        flaps.append(
            {
                "link": link_name(tree, data.draw(st.integers(0, 3))),
                "down_ns": down_ns,
                "up_ns": down_ns + outage_ns,
                "times": data.draw(st.integers(2, 9)),
                "every_ns": outage_ns + data.draw(st.sampled_from((1, 100, 1_000))),
            }
        )
    experiment = flapping(
        flaps,
        data.draw(st.sampled_from((0, 0, 0.3, 1.5))),
        damping_half_life_us=data.draw(st.sampled_from((0.5, 1, 4, 100))),
        damping_suppress=data.draw(st.sampled_from((1.5, 2, 3))),
        damping_reuse=data.draw(st.sampled_from((0.5, 1, 1.2))),
    )
    try:
        assert_all_same(experiment)
    except (FabricError, sim.UnfinishedError):
        assume(False)
