"""Packet-hops per CPU second: kernels, the same load balancers as P4 programs, and these in Python.

    python benchmarks/programs.py                     k = 8 and 32, a permutation of 1 MiB
    python benchmarks/programs.py --k 8,32,64 --policies ofan,jsq
    python benchmarks/programs.py --k 8 --mib 8 --tries 5
    python benchmarks/programs.py --program two_choices.p4

Every measurement has a process of its own, and engines take turns, so that a busy machine is as
busy for all; of several tries the fastest counts. Rates are per second of CPU time, tables and
hosts built, kernels compiled before; the last column is the speed in kernels' speeds. The Python
network runs up to k = 8.
"""

import resource
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import BUILT_IN, Collective, Fabric, Scenario
from fattree.policies import POLICY_SETS
from sim.arrays.network import build
from sim.runs.engine import prepare, simulate

KERNEL = "kernel"
NATIVE = "P4, native"
PYTHON = "P4, in Python"
PYTHON_UP_TO = 8
MIB = 2**20
# Enough packets for a rate, few enough to see its end.
PYTHON_BYTES = 32 * 4096
MILLION = 1e6
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Row:
    """The measurement of one process: building and running apart, in seconds of CPU time."""

    policy: str
    engine: str
    k: int
    build_s: float
    run_s: float
    packet_hops: int
    max_rss_bytes: int


def measure(scenario: Scenario, kind: str) -> Row:
    """Build and run a scenario, after a first run that loads the kernels."""
    build_s, run_s, hops = {KERNEL: _kernel, NATIVE: _native, PYTHON: _python}[kind](scenario)
    name = scenario.policy if scenario.program in (None, BUILT_IN) else scenario.program
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Row(str(name), kind, scenario.fabric.k, build_s, run_s, hops, peak)


def _kernel(scenario: Scenario) -> tuple[float, float, int]:
    prepare()
    began_s = time.process_time()
    network = build(scenario)
    built_s = time.process_time()
    result = simulate(network, None, None, began_s=built_s)
    return built_s - began_s, time.process_time() - built_s, result.packet_hops


def _native(scenario: Scenario) -> tuple[float, float, int]:
    simulated.prepare()
    began_s = time.process_time()
    fabric = simulated.SimulatedFabric(scenario, simulated.program_of(scenario))
    fabric.timed.happen()
    built_s = time.process_time()
    result = fabric.run()
    return built_s - began_s, time.process_time() - built_s, result.packet_hops


def _python(scenario: Scenario) -> tuple[float, float, int]:
    began_s = time.process_time()
    fabric = VirtualFabric(scenario, simulated.program_of(scenario), is_interpreted=True)
    built_s = time.process_time()
    outcome = fabric.run()
    hops = outcome.accounts.sent + sum(port.packets for port in outcome.ports)
    return built_s - began_s, time.process_time() - built_s, hops


def alone(scenario: Scenario, kind: str) -> Row:
    """Measure in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (scenario, kind))


def scenarios(policies: list[str], programs: tuple[Path, ...], k: int, mib: int) -> list[Scenario]:
    """Return the scenarios measured at one size; a user's program is like JSQ."""
    alike = Scenario(fabric=Fabric(k=k), collective=Collective(message_bytes=mib * MIB))
    ours = [{"policy": policy, "program": BUILT_IN} for policy in policies]
    users = [{"policy": "jsq", "program": str(path)} for path in programs]
    return [alike.model_copy(update=settings) for settings in (*ours, *users)]


@click.command()
@click.option("--k", "sizes", default="8,32", show_default=True, help="Sizes, with commas.")
@click.option("--policies", "policies", default="ofan", show_default=True, help="Names, or all.")
@click.option("--program", "programs", multiple=True, type=click.Path(path_type=Path))
@click.option("--mib", default=1, show_default=True, help="MiB a message.")
@click.option("--tries", default=1, show_default=True, help="Of so many, the fastest counts.")
def main(sizes: str, policies: str, programs: tuple[Path, ...], mib: int, tries: int) -> None:
    """Print one line per measurement."""
    names = list(POLICY_SETS.get(policies) or policies.split(","))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("load balancer", "k", "engine"):
        table.add_column(heading)
    headings = ("build s", "run s", "packet-hops", "million a second", "GiB", "of kernels")
    for heading in headings:
        table.add_column(heading, justify="right")

    for k in map(int, sizes.split(",")):
        for scenario in scenarios(names, programs, k, mib):
            rows = _rows(scenario, tries)
            for row in rows:
                table.add_row(*_cells(row, rows[0]))

    Console(width=120).print(table)


def _rows(scenario: Scenario, tries: int) -> list[Row]:
    measured = [(scenario, NATIVE)]
    if scenario.program == BUILT_IN:
        measured.insert(0, (scenario.model_copy(update={"program": None}), KERNEL))

    attempts = [[alone(*case) for case in measured] for _ in range(tries)]
    rows = [min(turns, key=lambda row: row.run_s) for turns in zip(*attempts, strict=True)]
    if scenario.fabric.k <= PYTHON_UP_TO:
        short = scenario.model_copy(update={"collective": Collective(message_bytes=PYTHON_BYTES)})
        rows.append(alone(short, PYTHON))

    return rows


def _cells(row: Row, first: Row) -> list[str]:
    rate = row.packet_hops / row.run_s / MILLION
    of_kernels = rate / (first.packet_hops / first.run_s / MILLION)
    return [
        row.policy,
        str(row.k),
        row.engine,
        f"{row.build_s:.1f}",
        f"{row.run_s:.1f}",
        f"{row.packet_hops:,}",
        f"{rate:.2f}",
        f"{row.max_rss_bytes / GIB:.2f}",
        f"{of_kernels:.2f}" if first.engine == KERNEL else "",
    ]


if __name__ == "__main__":
    main()
