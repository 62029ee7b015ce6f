"""One program, four networks: how many packets a second of CPU time `ofan.p4` moves on each.

    sudo python -m benchmarks.networks --chart docs/networks.png
    python -m benchmarks.networks                                    without root: no real packets

Real packets are 64-byte frames that flood one switch through veth pairs, as in a Mininet network; a
hop is one packet through one switch, or off one host. All else is a permutation of 1 MiB (of
128 KiB for programs in Python); building and compiling are left out.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.programs import KERNEL, MILLION, NATIVE, PYTHON, PYTHON_BYTES, alone
from benchmarks.rates.wires import OURS
from fattree.experiment.model import BUILT_IN, Collective, Fabric, Scenario
from fattree.texts.looks import GRID, SLATES

POLICY = "ofan"
SMALL = 8
LARGE = 32
WIRES_SECONDS = "3"


@dataclass(frozen=True, slots=True)
class Rate:
    """A network, how it is fed, and packet-hops per second of CPU time."""

    network: str
    how: str
    per_cpu_s: float


def of_programs() -> list[Rate]:
    """Measure the virtual networks and the simulator, each in a process of its own."""
    rates = []
    for network, how, kind, k in (
        ("virtual time", f"Python, k = {SMALL}", PYTHON, SMALL),
        ("virtual time and simulator", f"machine code, k = {SMALL}", NATIVE, SMALL),
        ("virtual time and simulator", f"machine code, k = {LARGE}", NATIVE, LARGE),
        ("simulator", f"its kernel, no P4, k = {LARGE}", KERNEL, LARGE),
    ):
        scenario = Scenario(policy=POLICY, program=BUILT_IN, fabric=Fabric(k=k))
        if kind == PYTHON:
            short = Collective(message_bytes=PYTHON_BYTES)
            scenario = scenario.model_copy(update={"collective": short})
        elif kind == KERNEL:
            scenario = scenario.model_copy(update={"program": None})

        row = alone(scenario, kind)
        rates.append(Rate(network, how, row.packet_hops / row.run_s))

    return rates


def of_wires() -> list[Rate]:
    """Measure one switch between veth pairs, in a namespace of its own (root)."""
    command = (sys.executable, "-m", "benchmarks.bursts", "--veth", "--json")
    ended = subprocess.run(
        [*command, "--seconds", WIRES_SECONDS], check=True, capture_output=True, text=True
    )
    rows = json.loads(ended.stdout[ended.stdout.index("[") :])
    (rate,) = [
        row["per_cpu_s"]
        for row in rows
        if (row["where"], row["switch"], row["program"], row["size"])
        == ("flooded", OURS, POLICY, "64 B")
    ]
    return [Rate("real packets (Mininet)", "veths, one switch", rate)]


def draw(rates: list[Rate], path: Path) -> None:
    """Draw the rates as dots: lengths of bars say nothing on a logarithmic axis."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 0.5 * len(rates) + 1.2), layout="constrained")
    places = range(len(rates), 0, -1)
    axes.scatter([rate.per_cpu_s for rate in rates], places, color=SLATES[1], s=60, zorder=2)
    for rate, height in zip(rates, places, strict=True):
        axes.annotate(
            f"{rate.per_cpu_s / MILLION:.2g} million",
            (rate.per_cpu_s, height),
            textcoords="offset points",
            xytext=(8, -3),
            fontsize=8,
        )

    axes.set_xscale("log")
    axes.set_xlim(1e4, 1e8)
    axes.set_ylim(0.4, len(rates) + 0.6)
    axes.set_yticks(list(places), [f"{rate.network}\n{rate.how}" for rate in rates], fontsize=8)
    axes.set_xlabel("packet-hops per second of CPU time (ofan.p4, one core)")
    axes.grid(axis="x", color=GRID, zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=150)


@click.command()
@click.option("--chart", type=click.Path(path_type=Path, dir_okay=False), help="Draw the rates.")
def main(chart: Path | None) -> None:
    """Measure one program on all networks."""
    rates = [*(of_wires() if os.geteuid() == 0 else ()), *of_programs()]
    for rate in rates:
        print(f"{rate.network:28}{rate.how:28}{rate.per_cpu_s / MILLION:8.3f} million/s")

    if chart:
        draw(rates, chart)


if __name__ == "__main__":
    main()
