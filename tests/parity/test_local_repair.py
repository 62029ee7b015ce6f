"""Local repair: switch agents against the simulator, a rule on entries against one on arrays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p4src
import sim
from controller.local_repair import repaired as without_dead_ports
from controller.pipeline import Pipeline
from controller.plan import Planner
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.policies import POLICIES
from fattree.routes.forwarding import scenario_forwarding
from fattree.routes.local_repair import repaired
from fattree.routes.wecmp import LinkState
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

EDGE = FailureEvent(link="edge0_0-agg0_1", down_ns=2_000, up_ns=14_000)
CORE = FailureEvent(link="agg1_0-core0_1", down_ns=3_500)
FOREVER = float("inf")


def scenario(policy: str, convergence_rtt: float, events: tuple[FailureEvent, ...]) -> Scenario:
    failures = Failures(events=events, convergence_rtt=convergence_rtt, local_repair=True)
    return Scenario(
        policy=policy,
        fabric=Fabric(k=4),
        collective=Collective(message_bytes=24 * 4096),
        seed=5,
        failures=failures,
    )


@pytest.mark.parametrize("policy", ["switch_pkt", "jsq", "host_dr", "ofan", "ofan_jsq_start"])
def test_a_switch_that_leaves_its_dead_uplinks_is_the_same_on_both_networks(policy: str) -> None:
    experiment = scenario(policy, 0.7, (EDGE, CORE))
    assert_same(PythonFabric(experiment).run(), sim.run(experiment))


@pytest.mark.slow
@pytest.mark.parametrize("convergence_rtt", [0, 0.7, 2, FOREVER])
@pytest.mark.parametrize("policy", POLICIES)
def test_local_repair_is_the_same_for_every_delay_of_the_controller(
    policy: str, convergence_rtt: float
) -> None:
    experiment = scenario(
        policy, convergence_rtt, (EDGE, CORE.model_copy(update={"up_ns": 20_000}))
    )
    assert_same(PythonFabric(experiment).run(), sim.run(experiment))


def test_less_is_lost_than_without() -> None:
    local = scenario("ofan", 2, (EDGE,))
    patient = local.model_copy(
        update={"failures": local.failures.model_copy(update={"local_repair": False})}
    )
    assert PythonFabric(local).run().accounts.lost < PythonFabric(patient).run().accounts.lost


@pytest.mark.parametrize("policy", POLICIES)
@given(
    dead=st.frozensets(st.integers(0, 31), max_size=6),
    routed=st.frozensets(st.integers(0, 31), max_size=3),
)
@settings(max_examples=3, deadline=None)
def test_the_rule_on_entries_is_the_rule_on_arrays(
    policy: str, dead: frozenset[int], routed: frozenset[int]
) -> None:
    experiment = Scenario(policy=policy, fabric=Fabric(k=4))
    tree, planner = (
        experiment.tree,
        Planner(experiment, Pipeline.read(p4src.p4info_path(POLICIES[policy].program))),
    )
    table = scenario_forwarding(experiment, LinkState.without(tree, routed))
    for switch in (0, 3, tree.edges, tree.edges + 5):
        plan, local = (
            planner.plan(state, switch)
            for state in (table, repaired(table, LinkState.without(tree, dead)))
        )
        ids = [index * table.orders for index in range(len(plan.blocks))]
        ports = frozenset(
            end.port for link in dead for end in tree.link_ends(link) if end.switch == switch
        )
        ours = without_dead_ports(planner.entries(plan, ids), ports)
        assert ours == planner.entries(local, ids)
