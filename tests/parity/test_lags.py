"""Switches that follow a change one after the other: the same run on all networks."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import sim
from emulation.virtual import simulated
from fattree.experiment.model import Scenario
from fattree.routes.lags import Lags
from tests.naive.network import Network
from tests.parity import test_programs_equal_kernels
from tests.parity.drawing import pairs
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

CORE = {"link": "agg0_0-core0_0", "down_ns": 2_000}
EDGE = {"link": "edge1_0-agg1_1", "down_ns": 6_000, "up_ns": 20_000}
PARALLEL = {
    "edges_per_pod": 2,
    "hosts_per_edge": 2,
    "aggs_per_pod": 2,
    "pods": 3,
    "cores_per_agg": 1,
    "edge_agg_links": 2,
    "agg_core_links": 2,
}
TWO_OF_BUNDLES = [
    {"link": "edge0_0-agg0_1/1", "down_ns": 1_000},
    {"link": "agg1_0-core0_0/0", "down_ns": 3_000, "up_ns": 15_000},
]


def lagging(policy: str = "ofan", spread_rtt: tuple[float, ...] = (), **settings: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "policy": policy,
            "fabric": {"k": 4},
            "collective": {"message_bytes": 60 * 4096},
            "seed": 3,
            "failures": {"events": [CORE, EDGE], "convergence_rtt": 1},
            "controller": {"spread_rtt": spread_rtt},
            **settings,
        }
    )


def assert_all_agree(scenario: Scenario) -> sim.Result:
    result = sim.run(scenario, horizon_ps=HORIZON_PS)
    test_programs_equal_kernels.assert_same(simulated.run(scenario), result)
    assert_same(PythonFabric(scenario).run(), result)
    assert Network(scenario).run().cct_ps == result.cct_ps
    return result


@pytest.mark.parametrize(
    ("policy", "repairs"), pairs(["ofan", "switch_pkt", "jsq", "host_dr"], [False, True])
)
def test_all_networks_follow_one_switch_after_the_other(policy: str, repairs: bool) -> None:
    failures = {"events": [CORE, EDGE], "convergence_rtt": 1, "local_repair": repairs}
    late = assert_all_agree(lagging(policy, (0, 0.3, 1.5, 2.5), failures=failures))
    assert late.done_ps.tolist() != sim.run(lagging(policy, failures=failures)).done_ps.tolist()


def test_bundles_follow_as_their_switches_do() -> None:
    parallel: dict[str, Any] = {
        "fabric": PARALLEL,
        "failures": {"events": TWO_OF_BUNDLES, "convergence_rtt": 0.5},
    }
    late = assert_all_agree(lagging("ofan", (0, 1, 2), **parallel))
    assert late.done_ps.tolist() != sim.run(lagging("ofan", **parallel)).done_ps.tolist()


@pytest.mark.parametrize("policy", ["ofan", "host_dr"])
def test_one_lag_of_all_switches_is_a_longer_g(policy: str) -> None:
    longer = {"events": [CORE, EDGE], "convergence_rtt": 3.5}
    late = sim.run(lagging(policy, (2.5, 2.5)))
    assert late.done_ps.tolist() == sim.run(lagging(policy, failures=longer)).done_ps.tolist()


def test_lags_above_g_let_two_changes_overtake_no_other() -> None:
    # The second change comes before some switches have followed the first.
    back = {"link": "agg0_0-core0_0", "down_ns": 2_000, "up_ns": 3_000}
    assert_all_agree(
        lagging("ofan", (0, 5, 0.1), failures={"events": [back], "convergence_rtt": 0.5})
    )


def test_routes_of_the_start_have_no_lag() -> None:
    at_start = {"events": [{**CORE, "down_ns": 0}], "convergence_rtt": 0}
    spread = sim.run(lagging("ofan", (1, 4), failures=at_start))
    assert spread.done_ps.tolist() == sim.run(lagging("ofan", failures=at_start)).done_ps.tolist()


def test_each_lag_is_drawn_as_often_as_it_is_named() -> None:
    scenario = lagging("ofan", (2, 0, 0, 0), fabric={"k": 16})
    lags = Lags.of(scenario)
    assert lags.times_ps == (0, 2 * scenario.zero_load_rtt_ps)
    share = np.mean(lags.of_switch == 0)
    # 320 switches, three quarters of them: five standard deviations are 0.12.
    assert abs(share - 0.75) < 0.12
    of_seed_4 = Lags.of(scenario.model_copy(update={"seed": 4}))
    assert (of_seed_4.of_switch != lags.of_switch).any()


def test_up_to_64_lags_are_taken_and_none_beside_routers() -> None:
    assert len(lagging("ofan", (1,) * 64).lags_ps) == 64
    with pytest.raises(ValidationError, match="spread_rtt"):
        lagging("ofan", (1,) * 65)

    with pytest.raises(ValidationError, match="routers have their own times"):
        lagging("ofan", failures={}, controller={"kind": "bgp", "spread_rtt": (1,)})
