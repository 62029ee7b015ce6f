"""The cost of large training steps, from a configuration to a result.

    python -m benchmarks.steps                      both
    python -m benchmarks.steps --step gpt_13b       128 GPUs, nothing divided
    python -m benchmarks.steps --step llama_8192    8,192 GPUs, bytes and times divided

A step is generated and run by the commands that a user would give, each a process of its own, on
one thread. CPU time is that of both; memory is that of the larger.
"""

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.processes import Cost, run

ROOT = Path(__file__).resolve().parents[1]
GIGABYTE = 1e9


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A step: its model and how it is spread, the fabric, and options of packets."""

    model: str
    spread: str
    k: int
    packets: str = ""


# A packet stands for 16 of 4 KB where bytes are divided, queues for 16 of 800 KB, as in
# experiments/step_405b.toml. Without that packets are Ofan's own, of 4 KB.
STEPS = {
    "gpt_13b": Benchmark(
        "gpt_13b.json",
        "--gpus 128 --tp 8 --batch 128 --sequence 2048 --scale 1",
        k=8,
    ),
    # Llama 3 Herd of Models 2024, table 4, the first row; two chunks a GPU.
    "llama_8192": Benchmark(
        "llama_405b.json",
        "--gpus 8192 --tp 8 --pp 16 --batch 2048 --sequence 8192 --virtual-stages 2 --buckets 2 "
        "--thin-ends --teraflops 430 --scale 256",
        k=32,
        packets="--set packets.payload_bytes=65000 --set fabric.queue_bytes=12.8MB",
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The cost of a step, and its length: seconds of CPU, bytes, and ms of the whole step."""

    cpu_s: float
    peak_bytes: int
    packet_hops: int
    step_ms: float
    compute_ms: float


def measured(benchmark: Benchmark, folder: Path) -> Measured:
    """Generate and run a step."""
    file = folder / "step.parquet"
    _, generation = _run(
        "workload", "from-model", benchmark.model, str(file), *benchmark.spread.split()
    )
    options = ("--k", str(benchmark.k), "--matrix", "workload", "--policies", "ofan", "--json")
    workload = ("--set", f"collective.file={file}")
    output, simulation = _run("sim", "run", *options, *workload, *benchmark.packets.split())
    record: dict[str, Any] = json.loads(output)["runs"][0]
    scale = record["scale"] / 1e9
    return Measured(
        cpu_s=generation.cpu_s + simulation.cpu_s,
        peak_bytes=max(generation.peak_bytes, simulation.peak_bytes),
        packet_hops=record["packet_hops"],
        step_ms=record["cct_ps"] * scale,
        compute_ms=record["compute_ps"] * scale,
    )


def _run(*arguments: str) -> tuple[str, Cost]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'emulation' / 'p4'}"}
    return run([sys.executable, str(ROOT / "ofan.py"), *arguments], environment)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--step", "steps", type=click.Choice(list(STEPS)), multiple=True, help="Only this.")
def main(steps: tuple[str, ...]) -> None:
    """Measure large training steps."""
    for name in steps or STEPS:
        with tempfile.TemporaryDirectory() as folder:
            result = measured(STEPS[name], Path(folder))

        click.echo(
            f"{name}: {result.cpu_s:,.0f} s of CPU, {result.peak_bytes / GIGABYTE:.2f} GB, "
            f"{result.packet_hops / 1e6:,.0f} million packet-hops; step {result.step_ms:,.1f} ms, "
            f"computations alone {result.compute_ms:,.1f} ms"
        )


if __name__ == "__main__":
    main()
