"""Graphs over planes: a step that ends at a NIC starts steps that wait at its machine's others.

Random ones are in `test_graphs`: collectives, jobs, workloads, failures, in up to three planes.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sim
from emulation.virtual.simulated import run as run_programs
from fattree.demand.traffic import check_collective, flows
from fattree.demand.workloads.file import About, write_workload
from fattree.errors import TrafficError
from fattree.experiment.model import Collective, Fabric, Job, Scenario
from fattree.generators.building import Builder
from fattree.generators.model import Model
from fattree.generators.training import training_graph
from fattree.generators.training_stages import Step
from fattree.policies import POLICIES
from tests import naive
from tests.parity import test_programs_equal_kernels
from tests.parity.drawing import pairs
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_naive_against_sim import of_naive, of_sim
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

LEAVES = {"planes": 2, "edges_per_pod": 2, "hosts_per_edge": 2, "aggs_per_pod": 2}
THREE_LEVELS = {"planes": 2, "k": 4}
# In this order those of the quick tests are the smaller ones.
PLANES = {
    "fat-trees, keep": (THREE_LEVELS, "keep"),
    "leaf-spines, spray": (LEAVES, "spray"),
    "fat-trees, spray": (THREE_LEVELS, "spray"),
    "leaf-spines, keep": (LEAVES, "keep"),
}
TINY = Model(
    name="tiny",
    hidden=1024,
    layers=2,
    attention=60_000,
    attended=64,
    feed_forward=80_000,
    expert=0,
    experts=0,
    chosen=0,
    shared=0,
    router=0,
    embedding=30_000,
    embeddings=1,
)


def assert_all_same(scenario: Scenario) -> sim.Result:
    result = sim.run(scenario)
    assert of_sim(result) == of_naive(naive.run(scenario, HORIZON_PS))
    assert_same(PythonFabric(scenario).run(), result)
    return result


def all_reduce(fabric: dict[str, Any], use: str, **settings: Any) -> Scenario:
    collective = Collective(matrix="all_reduce", message_bytes=200_000, chunks=2)
    made = Fabric.model_validate(fabric | {"plane_use": use})
    return Scenario(fabric=made, collective=collective, seed=3, **settings)


@pytest.mark.parametrize(
    ("policy", "planes"), pairs(["ofan", "host_dr", "host_pkt_ar", "subflow"], [*PLANES])
)
def test_an_all_reduce_goes_over_planes(policy: str, planes: str) -> None:
    experiment = all_reduce(*PLANES[planes], policy=policy)
    result = assert_all_same(experiment)
    # Each plane has its part, and nothing leaves it.
    plane = result.flows.source // experiment.tree.machines
    assert (plane == result.flows.destination // experiment.tree.machines).all()
    packets = np.bincount(plane, weights=result.flows.packets)
    assert packets.max() <= 1.2 * packets.min()


def test_programs_and_threads_do_the_same() -> None:
    experiment = all_reduce(THREE_LEVELS, "keep")
    result = sim.run(experiment)
    test_programs_equal_kernels.assert_same(run_programs(experiment, threads=2), result)
    assert sim.run(experiment, threads=3).done_ps.tolist() == result.done_ps.tolist()


def training_file(folder: Path, tensor: int) -> str:
    step = Step(tensor=tensor, pipeline=2, data=2, batch=4, sequence=16, buckets=2)
    path = folder / "step.parquet"
    about = About(ranks=step.ranks, gpus_per_server=tensor)
    write_workload(path, training_graph(TINY, step), about)
    return str(path)


@pytest.mark.parametrize("use", ["spray", "keep", None])
def test_a_training_step_of_machines_goes_over_planes(use: str | None, tmp_path: Path) -> None:
    collective = Collective(matrix="workload", file=training_file(tmp_path, tensor=1))
    fabric = Fabric.model_validate(LEAVES | {"plane_use": use})
    assert_all_same(Scenario(fabric=fabric, collective=collective))


@pytest.mark.parametrize("fabric", [LEAVES, THREE_LEVELS], ids=["leaf-spines", "fat-trees"])
def test_gpus_of_one_number_are_a_rail(fabric: dict[str, Any], tmp_path: Path) -> None:
    file = training_file(tmp_path, tensor=2)
    collective = Collective(matrix="workload", file=file, placement="rail")
    experiment = Scenario(fabric=Fabric.model_validate(fabric), collective=collective)
    result = assert_all_same(experiment)
    # Rank t + 2 (d + 2 p) is GPU t of its server, and so in plane t.
    gpus, machines = np.arange(8), experiment.tree.machines
    hosts = gpus % 2 * machines + gpus // 2
    used = {*result.flows.source.tolist(), *result.flows.destination.tolist()}
    assert used == set(hosts.tolist())


@pytest.mark.parametrize("use", ["spray", "keep"])
def test_a_job_after_another_waits_for_all_nics_of_its_machine(use: str) -> None:
    fabric = Fabric.model_validate(LEAVES | {"plane_use": use})
    jobs = (
        Job(name="a", collective=Collective(matrix="broadcast", message_bytes=90_000)),
        Job(
            name="b",
            after="a",
            collective=Collective(matrix="all_to_all", message_bytes=9_000, chunks=2),
        ),
    )
    assert_all_same(Scenario(fabric=fabric, jobs=jobs))


def test_a_computation_waits_for_the_parts_in_all_planes(tmp_path: Path) -> None:
    builder = Builder()
    sent = builder.send(0, 3, 60_000)
    builder.send(3, 0, 4_096, [builder.compute(3, 5_000_000, [sent])])
    path = tmp_path / "work.parquet"
    write_workload(path, builder.graph(), About(ranks=4))
    experiment = Scenario(
        fabric=Fabric.model_validate(LEAVES),
        collective=Collective(matrix="workload", file=str(path)),
    )
    result = assert_all_same(experiment)
    assert result.flows.waits_for(2).tolist() == [0, 1]
    assert result.flows.waits_for(3).tolist() == result.flows.waits_for(4).tolist() == [2]


def gpus(folder: Path, per_server: int, destination: int, **fabric: Any) -> Scenario:
    builder = Builder()
    builder.send(0, destination, 4_096)
    path = folder / "gpus.parquet"
    write_workload(path, builder.graph(), About(ranks=8, gpus_per_server=per_server))
    collective = Collective(matrix="workload", file=str(path), placement="rail")
    return Scenario(fabric=Fabric.model_validate(LEAVES | fabric), collective=collective)


@pytest.mark.parametrize(
    ("per_server", "destination", "fabric", "problem"),
    [
        (4, 4, {}, "the workload has 4 a server, and there are 2 planes"),
        (2, 3, {}, "h0_0_0 sends to h1_0_1, but planes do not meet"),
        (2, 4, {"plane_use": "spray"}, 'fabric.plane_use = "spray" says nothing'),
    ],
)
def test_what_is_no_rail_is_refused(
    per_server: int, destination: int, fabric: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(TrafficError, match=problem):
        check_collective(gpus(tmp_path, per_server, destination, **fabric))
    assert len(flows(gpus(tmp_path, 2, 4))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_every_load_balancer_carries_an_all_reduce_over_planes(policy: str) -> None:
    assert_all_same(all_reduce(THREE_LEVELS, "keep", policy=policy))
