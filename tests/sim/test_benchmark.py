"""The simulator's benchmark: the input of another simulator, and the use of its answer."""

import importlib.util
import stat
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from fattree.demand import traffic
from fattree.experiment.model import Collective, Fabric, Scenario
from sim.runs.engine import run

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "simulator.py"
PERMUTATION = Scenario(
    policy="rsq", fabric=Fabric(k=4), collective=Collective(message_bytes=64 * 1024)
)


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("simulator_benchmark", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def matrix(benchmark: ModuleType, tmp_path: Path) -> Path:
    path = tmp_path / "x.cm"
    path.write_text(benchmark.connection_matrix(PERMUTATION))
    return path


def program(folder: Path, text: str) -> Path:
    path = folder / "htsim"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_connection_matrix_is_the_scenarios_traffic(matrix: Path) -> None:
    scenario = PERMUTATION.model_copy(
        update={"collective": Collective(matrix="file", file=str(matrix))}
    )
    ours, theirs = traffic.flows(PERMUTATION), traffic.flows(scenario)
    for name in ("source", "destination", "packets", "start_ps"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()


def test_another_simulator_gets_the_same_file_and_is_timed(
    benchmark: ModuleType, matrix: Path, tmp_path: Path
) -> None:
    echo = program(
        tmp_path,
        'echo "$@" > arguments; echo "Flow a finished at 12.5"; '
        'echo "Flow b finished at 19.25 total"',
    )
    row = benchmark.other([str(echo), "-strat", "x"], matrix, PERMUTATION, 1000)
    assert (
        tmp_path / "arguments"
    ).read_text() == f"-strat x -tm {matrix} -nodes 16 -linkspeed 800000\n"
    assert (row.simulator, row.policy, row.cct_us, row.packet_hops) == (
        "htsim",
        "-strat x",
        19.25,
        1000,
    )


@pytest.mark.parametrize(
    "text", ["exit 3", "echo no flow at all", "echo Flow a finished at 1; exit 1"]
)
def test_another_simulator_that_fails_is_one_line(
    benchmark: ModuleType, matrix: Path, tmp_path: Path, text: str
) -> None:
    with pytest.raises(click.ClickException, match=r"^HTSIM: .*exit code"):
        benchmark.other([str(program(tmp_path, text))], matrix, PERMUTATION, 1000)


def test_a_row_has_what_its_runs_have_measured(benchmark: ModuleType) -> None:
    scenarios = [PERMUTATION.model_copy(update={"seed": seed}) for seed in (1, 2)]
    row = benchmark.measure(scenarios, 2)
    assert row.packet_hops == sum(run(scenario).packet_hops for scenario in scenarios)
    assert (row.k, row.hosts, row.threads, row.seeds) == (4, 16, 2, 2)
    assert row.rate == row.packet_hops / row.cpu_s
