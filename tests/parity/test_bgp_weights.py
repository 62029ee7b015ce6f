"""Schedules from BGP's weights: the simulator, programs in it and the virtual network agree."""

import numpy as np
import pytest

import sim
from emulation.virtual import simulated
from fattree.experiment.model import Scenario
from fattree.routes.forwarding import scenario_forwarding
from fattree.routes.wecmp import LinkState
from tests.parity import test_programs_equal_kernels
from tests.parity.drawing import one_in
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

FAILING = {"link": "agg0_0-core0_0", "down_ns": 2_000}
# Three of four cores are left above an agg of pod 0: 4 : 4 : 4 : 3, in percents 26 : 26 : 26 : 20.
LONGEST = {"exact": 15, "bgp": 49}


def failing(policy: str, weights: str) -> Scenario:
    return Scenario.model_validate(
        {
            "policy": policy,
            "fabric": {"k": 8},
            "collective": {"message_bytes": 40 * 4096},
            "seed": 3,
            "failures": {"events": [FAILING], "convergence_rtt": 0.5},
            "controller": {"weights": weights},
        }
    )


@pytest.mark.parametrize("policy", one_in(3, ["ofan", "simple_rr", "switch_pkt"]))
def test_all_networks_walk_the_schedules_of_bgp(policy: str) -> None:
    under_bgp = failing(policy, "bgp")
    result = sim.run(under_bgp, horizon_ps=HORIZON_PS)
    test_programs_equal_kernels.assert_same(simulated.run(under_bgp), result)
    assert_same(PythonFabric(under_bgp).run(), result)
    assert result.done_ps.tolist() != sim.run(failing(policy, "exact")).done_ps.tolist()


@pytest.mark.parametrize(("weights", "slots"), LONGEST.items())
def test_a_schedule_has_a_slot_for_each_percent(weights: str, slots: int) -> None:
    scenario = failing("ofan", weights)
    links = LinkState.without(scenario.tree, frozenset({scenario.tree.edge_links}))
    state = scenario_forwarding(scenario, links)
    assert np.diff(state.schedule_offset).max() == slots
