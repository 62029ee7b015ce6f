"""A run on a GPU leaves every array as a processor does: on a GPU, or on numba's simulator."""

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

import sim
from fattree.experiment.model import Collective, Fabric, HostRule, Scenario
from sim.arrays.network import build
from sim.errors import SimulationError
from sim.gpu.engine import rounds, take_pages
from sim.gpu.kernels import switch_of
from tests.sim.gpu_runs import RUNS, columns

# Simulated, each takes 1 or 2 seconds: load balancers that remember, that look at queues and
# that choose at the host; windows in which nothing happens, route changes, chunks that run out, and
# more than one leg.
QUICK = (
    "ofan",
    "jsq",
    "host_dr",
    "long pauses",
    "links fail and heal",
    "an all-to-all in a small pool",
    "stale queues",
)
OTHERS = tuple(name for name in RUNS if name not in QUICK)
HAS_GPU = cuda.is_available()
RULE = Path(__file__).parents[2] / "experiments" / "fast_labels.py"


def differing(*names: str, is_simulated: bool = False) -> dict[str, list[str]]:
    """Return which arrays differ, by run."""
    simulated = {"NUMBA_ENABLE_CUDASIM": "1"} if is_simulated else {}
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.gpu_runs", *names],
        env={**os.environ, **simulated, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    differences: dict[str, list[str]] = json.loads(done.stdout)
    return differences


@pytest.mark.slow
def test_a_simulated_gpu_does_what_a_processor_does() -> None:
    assert differing(*QUICK, is_simulated=True) == {name: [] for name in QUICK}


@pytest.mark.slow
def test_a_simulated_gpu_does_so_whatever_a_run_has() -> None:
    assert differing(*OTHERS, is_simulated=True) == {name: [] for name in OTHERS}


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU, or no numba-cuda")
def test_a_gpu_does_what_a_processor_does() -> None:
    assert differing() == {name: [] for name in RUNS}


@pytest.mark.slow
@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU, or no numba-cuda")
def test_a_gpu_does_so_on_large_fabrics() -> None:
    differences = differing("--large")
    assert differences and not any(differences.values())


@pytest.mark.parametrize(
    "fabric",
    [
        Fabric(k=6),
        Fabric(k=4, planes=2),
        Fabric(edges_per_pod=3, hosts_per_edge=2, aggs_per_pod=2, cores_per_agg=0),
    ],
    ids=["fat-tree", "two planes", "leaf-spine"],
)
def test_a_round_serves_no_neighbours_and_every_switch_has_one(fabric: Fabric) -> None:
    made = build(small(fabric=fabric))
    tree = made.scenario.tree
    served = [
        [switch_of(span, number) for number in range(span.nodes)] for span in rounds(made.world)
    ]
    assert sorted(chain(*served)) == list(range(tree.switches))

    for switches in served:
        near = {
            end.switch
            for switch in switches
            for port in tree.ports(switch)
            if (end := tree.neighbour(switch, port))
        }
        assert near.isdisjoint(switches)


def small(**settings: object) -> Scenario:
    made = {"fabric": Fabric(k=4), "collective": Collective(message_bytes=8192), **settings}
    return Scenario.model_validate(made)


def test_what_takes_memory_for_a_run_s_return_changes_nothing() -> None:
    world = build(small(fabric=Fabric(k=4, planes=2))).world
    before = {name: array.copy() for name, array in columns(world, "world")}
    take_pages(world, world)
    for name, array in columns(world, "world"):
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_a_rule_of_ones_own_is_refused_by_name() -> None:
    scenario = small(
        policy="host_pkt_ar", host_rule=HostRule(file=RULE.name, text=RULE.read_text())
    )
    with pytest.raises(SimulationError, match=r"^host rule: a GPU runs none of your own"):
        sim.run(scenario, device="gpu")


@pytest.mark.skipif(HAS_GPU, reason="there is one")
def test_without_a_gpu_a_run_says_so() -> None:
    with pytest.raises(SimulationError, match=r"^no GPU"):
        sim.run(small(), device="gpu")
