"""Collectives, jobs and workloads on all networks: to the picosecond, with failures."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from emulation.virtual.simulated import run as run_programs
from fattree.demand.workloads.file import About, write_workload
from fattree.demand.workloads.graph import Graph
from fattree.errors import FabricError
from fattree.experiment.model import Collective, Fabric, Job, Scenario
from fattree.policies import POLICIES
from tests import naive
from tests.parity.graphs import can_be_built, graph_scenarios
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_naive_against_sim import MOST_TRANSMISSIONS, of_naive, of_sim
from tests.parity.test_naive_against_sim import assert_same as assert_naive_is_same
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

LENIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workloads")


@given(data=st.data())
@settings(LENIENT, max_examples=5)
def test_the_simulator_does_what_the_plain_model_does(data: st.DataObject, folder: Path) -> None:
    scenario = data.draw(graph_scenarios(folder))
    assume(can_be_built(scenario))
    assert_naive_is_same(scenario)


@pytest.mark.slow
@given(data=st.data())
@settings(LENIENT, max_examples=500)
def test_hundreds_more_are_the_same(data: st.DataObject, folder: Path) -> None:
    scenario = data.draw(graph_scenarios(folder))
    assume(can_be_built(scenario))
    assert_naive_is_same(scenario)


def assert_virtual_is_same(scenario: Scenario) -> None:
    try:
        result = sim.run(scenario, horizon_ps=HORIZON_PS)
    except (FabricError, sim.UnfinishedError):
        assume(False)
    assume(result.transmissions.sum() <= MOST_TRANSMISSIONS / 10)
    assert_same(PythonFabric(scenario).run(), result)


@given(data=st.data())
@settings(LENIENT, max_examples=4)
def test_the_virtual_network_does_what_the_simulator_does(
    data: st.DataObject, folder: Path
) -> None:
    scenario = data.draw(graph_scenarios(folder, is_any=False))
    assume(can_be_built(scenario))
    assert_virtual_is_same(scenario)


@pytest.mark.slow
@given(data=st.data())
@settings(LENIENT, max_examples=150)
def test_many_more_on_the_virtual_network(data: st.DataObject, folder: Path) -> None:
    scenario = data.draw(graph_scenarios(folder, is_any=False))
    assume(can_be_built(scenario))
    assert_virtual_is_same(scenario)


MIXED = (
    Job(name="many", collective=Collective(matrix="incast", hosts="pod0-1", message_bytes=30_000)),
    Job(
        name="single",
        collective=Collective(
            matrix="pairs", pairs=((0, 15), (4, 9), (0, 4)), message_bytes=50_000
        ),
        after="many",
    ),
    Job(
        name="ring",
        collective=Collective(matrix="all_gather", hosts="h*_0_0", message_bytes=30_000),
        start_ns=700,
    ),
)


@pytest.mark.parametrize("policy", ["ofan", "flow", "host_pkt_ar", "subflow"])
def test_incasts_and_single_flows_beside_collectives(policy: str) -> None:
    experiment = Scenario(policy=policy, fabric=Fabric(k=4), jobs=MIXED)
    result = sim.run(experiment)
    assert of_sim(result) == of_naive(naive.run(experiment, HORIZON_PS))
    assert_same(PythonFabric(experiment).run(), result)


def computing(folder: Path, *compute_ps: int) -> Collective:
    """Return a workload: 0 sends to 9, which computes for these times in turn, and sends back."""
    count = len(compute_ps)
    chain = np.arange(1, count + 2)
    graph = Graph(
        source=np.array([0, *[9] * count, 9]),
        destination=np.array([9, *[9] * count, 0]),
        size=np.array([8 * 4096, *[0] * count, 8 * 4096]),
        compute_ps=np.array([0, *compute_ps, 0]),
        waiting=chain,
        awaited=chain - 1,
    )
    path = folder / "computing.parquet"
    write_workload(path, graph, About(ranks=16))
    return Collective(matrix="workload", file=str(path))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_load_balancer_waits_for_computations(policy: str, tmp_path: Path) -> None:
    experiment = Scenario(
        policy=policy, fabric=Fabric(k=4), collective=computing(tmp_path, 7_000_000, 0, 1)
    )
    result = sim.run(experiment)
    first = experiment.scheme.subflows
    assert result.start_ps[-1] == result.start_ps[first] + 7_000_001
    assert of_sim(result) == of_naive(naive.run(experiment, HORIZON_PS))
    assert_same(PythonFabric(experiment).run(), result)


def test_programs_in_the_switches_wait_for_computations(tmp_path: Path) -> None:
    experiment = Scenario(fabric=Fabric(k=4), collective=computing(tmp_path, 7_000_000))
    assert run_programs(experiment).done_ps.tolist() == sim.run(experiment).done_ps.tolist()


def test_a_computation_ends_while_the_link_is_busy(tmp_path: Path) -> None:
    # It takes no link: a message after it must not wait for the host's other messages.
    graph = Graph(
        source=np.array([0, 0, 0]),
        destination=np.array([9, 0, 5]),
        size=np.array([64 * 4096, 0, 4096]),
        compute_ps=np.array([0, 1_000_003, 0]),
        waiting=np.array([2]),
        awaited=np.array([1]),
    )
    path = tmp_path / "busy.parquet"
    write_workload(path, graph, About(ranks=16))
    experiment = Scenario(
        fabric=Fabric(k=4), collective=Collective(matrix="workload", file=str(path))
    )
    result = sim.run(experiment)
    assert result.done_ps[1] == 1_000_003
    assert result.start_ps[2] == 1_000_003
    assert of_sim(result) == of_naive(naive.run(experiment, HORIZON_PS))
    assert_same(PythonFabric(experiment).run(), result)


@pytest.mark.parametrize("policy", ["ofan", "flow", "mrc"])
@pytest.mark.parametrize("in_turn", [False, True])
def test_messages_over_nics_that_a_workload_names(
    policy: str, in_turn: bool, tmp_path: Path
) -> None:
    # 0 sends to 9 over all its NICs at once; 9 answers over the last when two have come.
    graph = Graph(
        source=np.array([0, 0, 0, 0, 9, 9]),
        destination=np.array([9, 9, 9, 5, 9, 0]),
        size=np.array([40_000, 30_000, 20_000, 10_000, 0, 50_000]),
        compute_ps=np.array([0, 0, 0, 0, 1_234, 0]),
        waiting=np.array([4, 4, 5]),
        awaited=np.array([0, 1, 4]),
        in_turn=in_turn,
        nic=np.array([0, 1, 2, 2, 0, 2]),
    )
    path = tmp_path / "nics.parquet"
    write_workload(path, graph, About(ranks=16))
    experiment = Scenario(
        policy=policy,
        fabric=Fabric(k=4, planes=3),
        collective=Collective(matrix="workload", file=str(path)),
    )
    result = sim.run(experiment)
    assert (result.flows.source // 16).tolist() == [0, 1, 2, 2, 0, 2]
    assert of_sim(result) == of_naive(naive.run(experiment, HORIZON_PS))
    assert_same(PythonFabric(experiment).run(), result)


@pytest.mark.parametrize("matrix", ["all_reduce", "reduce_scatter", "all_gather"])
def test_direct_collectives_send_to_all_at_once(matrix: str) -> None:
    collective = Collective.model_validate(
        {"matrix": matrix, "algorithm": "direct", "hosts": "pod0-1", "message_bytes": 64 * 4096}
    )
    experiment = Scenario(fabric=Fabric(k=4), collective=collective)
    result = sim.run(experiment)
    assert len(result.done_ps) == 8 * 7 * (2 if matrix == "all_reduce" else 1)
    assert of_sim(result) == of_naive(naive.run(experiment, HORIZON_PS))
    assert_same(PythonFabric(experiment).run(), result)
