"""Training steps as they are run, and a served model, on all networks: to the picosecond."""

from dataclasses import replace
from pathlib import Path

import pytest

import sim
from fattree.demand.workloads.file import About, write_workload
from fattree.demand.workloads.graph import Graph
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.generators.model import Model
from fattree.generators.serving import Serving, serving_graph
from fattree.generators.training import training_graph
from fattree.generators.training_stages import Step
from tests import naive
from tests.parity.drawing import one_in
from tests.parity.scenarios import HORIZON_PS
from tests.parity.test_naive_against_sim import of_naive, of_sim
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

DENSE = Model(
    name="tiny",
    hidden=512,
    layers=4,
    attention=20_000,
    attended=64,
    feed_forward=30_000,
    expert=0,
    experts=0,
    chosen=0,
    shared=0,
    router=0,
    embedding=10_000,
    embeddings=1,
    keys=128,
)
MIXTURE = replace(
    DENSE, expert=5_000, experts=4, chosen=2, router=2_000, sparse=frozenset(range(4))
)
STEP = Step(batch=8, sequence=16, teraflops=1, buckets=2)
STEPS = {
    "chunks": (DENSE, replace(STEP, pipeline=2, virtual=2, data=2)),
    "zero bubble": (DENSE, replace(STEP, pipeline=4, zero_bubble=True, data=2)),
    "DualPipe": (MIXTURE, replace(STEP, pipeline=2, dual_pipe=True, data=2, experts=2)),
    "context": (DENSE, replace(STEP, context=4, data=2)),
    "ZeRO 2": (DENSE, replace(STEP, data=4, zero=2)),
    "uneven": (
        MIXTURE,
        replace(STEP, data=8, experts=4, by_layer=True, skew=1, jitter=0.1, stragglers=1),
    ),
}


def assert_all_same(graph: Graph, ranks: int, folder: Path) -> None:
    path = folder / "step.parquet"
    write_workload(path, graph, About(ranks=ranks))
    experiment = Scenario(
        fabric=Fabric(k=4), collective=Collective(matrix="workload", file=str(path))
    )
    result = sim.run(experiment)
    assert of_sim(result) == of_naive(naive.run(experiment, HORIZON_PS))
    assert_same(PythonFabric(experiment).run(), result)


@pytest.mark.parametrize("name", one_in(2, STEPS))
def test_a_step_as_it_is_run(name: str, tmp_path: Path) -> None:
    model, step = STEPS[name]
    assert_all_same(training_graph(model, step), step.ranks, tmp_path)


def test_a_served_model(tmp_path: Path) -> None:
    serving = Serving(
        tensor=4,
        decode_tensor=8,
        server=4,
        requests=2,
        prompt=20,
        tokens=2,
        parts=2,
        teraflops=1,
    )
    assert_all_same(serving_graph(DENSE, serving), serving.ranks, tmp_path)
