"""The simulator on a GPU beside the same machine's processor: times, and that results are equal.

    pip install 'ofan[gpu]'
    python benchmarks/gpu.py                   # 1 MiB permutations, k = 8 to 64
    python benchmarks/gpu.py --k 16 --threads 8
    python benchmarks/gpu.py --compile         # needs no GPU: the kernels' code for a GPU

All runs are of one process and take turns. A GPU's first run compiles and is not counted; of the
others the least wall time counts, from a built network to its end: `send` and `back` are the
world's way to the GPU and from it, `windows` the time between. Where results differ, it fails.
"""

import os
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import click
import numpy as np
from numba import cuda, typeof, types
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fattree.experiment.model import Collective, Fabric, Scenario
from sim import Result
from sim.arrays.network import build
from sim.gpu import engine as gpu_engine
from sim.gpu import kernels as gpu_kernels
from sim.kernels.state import Buffers
from sim.runs.engine import Device, buffers_of, prepare, simulate

SIZES = (8, 16, 32, 64)
# Compute capability that kernels are compiled for: Hopper.
CAPABILITY = (9, 0)


class Clock:
    """The total seconds of calls, by name."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that notes how long it takes."""

        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments, **named)
            self.seconds[name] += time.perf_counter() - began
            return result

        return call


def run(scenario: Scenario, threads: int, device: Device) -> tuple[Result, dict[str, float]]:
    """Return a run and its wall times: of all of it, and of its parts on a GPU."""
    network = build(scenario)
    clock = Clock()
    parts = {"send": "send", "windows": "through_windows", "back": "bring_back"}
    changed: dict[str, Any] = {
        name: clock.timed(part, getattr(gpu_engine, name)) for part, name in parts.items()
    }
    with patch.multiple(gpu_engine, **changed):
        whole = clock.timed("all", simulate)
        result = whole(network, None, None, 0, threads=threads, device=device)

    return result, clock.seconds


def least(scenario: Scenario, threads: int, device: Device, tries: int) -> Any:
    """Return the result and the times of the quickest run."""
    return min(
        (run(scenario, threads, device) for _ in range(tries)), key=lambda pair: pair[1]["all"]
    )


def refuse_difference(first: Result, second: Result) -> None:
    """Raise ClickException where two runs of a scenario differ."""
    for name in ("first_ps", "done_ps", "transmissions", "host_packets"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise click.ClickException(f"{first.scenario.policy}: {name} differs")

    for name in first.ports.__dataclass_fields__:
        if not np.array_equal(getattr(first.ports, name), getattr(second.ports, name)):
            raise click.ClickException(f"{first.scenario.policy}: ports' {name} differ")


def compared(k: int, policy: str, size: int, threads: int, tries: int) -> list[str]:
    """Return a row of the table."""
    scenario = Scenario(
        policy=policy, fabric=Fabric(k=k), collective=Collective(message_bytes=size)
    )
    run(scenario, 1, "gpu")
    ours, gpu = least(scenario, 1, "gpu", tries)
    alone, single = least(scenario, 1, "cpu", tries)
    crew, many = least(scenario, threads, "cpu", tries)
    refuse_difference(ours, alone)
    refuse_difference(crew, alone)

    seconds = [single["all"], many["all"], gpu["all"], gpu["send"], gpu["windows"], gpu["back"]]
    ratio = min(single["all"], many["all"]) / gpu["all"]
    return [policy, str(k), *(f"{time_s:.3f}" for time_s in seconds), f"{ratio:.2f}"]


def kernels() -> Iterator[tuple[str, Any, Any]]:
    """Yield each kernel of a run, plain and with all features, with its signature."""
    network = build(Scenario(fabric=Fabric(k=4), collective=Collective(message_bytes=1 << 16)))
    stacked: Any = [np.stack([array, array]) for array in buffers_of(network.world, 4)]
    buffers = Buffers(*stacked)
    number, totals = types.int64, typeof(network.world.counters)
    routes, span = typeof(network.routes[0].routes), typeof(gpu_kernels.Span(0, 1, 2, 3))
    for form, features in (("plain", None), ("all", 1)):
        pool = network.world.pool._replace(ring=network.world.counters)
        world = typeof(network.world._replace(pool=pool, features=features))
        shared = (world, routes)
        yield f"hosts, {form}", gpu_kernels.hosts, (*shared, totals, number, number)
        switches = (*shared, typeof(buffers), totals, span, number, number)
        yield f"switches, {form}", gpu_kernels.switches, switches
        yield f"next event, {form}", gpu_kernels.next_event, (world, totals)


def compiled(name: str, kernel: Any, signature: Any) -> list[str]:
    """Return a row about a kernel: it is compiled for a GPU that need not be there."""
    began = time.process_time()
    ptx, _ = cuda.compile(
        kernel.py_func, types.void(*signature), cc=CAPABILITY, device=False, abi="numba"
    )
    seconds = time.process_time() - began
    head = ptx[ptx.index(".entry") :].partition("{")[0]
    bytes_ = 8 * head.count(".param .u64")
    floats = len(re.findall(r"\.f(?:32|64)\b", ptx))
    return [name, f"{seconds:.1f}", str(bytes_), str(floats), *assembled(ptx)]


def assembled(ptx: str) -> list[str]:
    """Return the registers of a kernel and the bytes that it spills, where ptxas is on the PATH."""
    kind = f"-arch=sm_{CAPABILITY[0]}{CAPABILITY[1]}"
    with TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        command = ["ptxas", "-v", kind, str(source), "-o", f"{source}.cubin"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return ["?", "?"]

    said = done.stderr
    return [
        re.findall(r"Used (\d+) registers", said)[-1],
        str(sum(map(int, re.findall(r"(\d+) bytes spill", said)))),
    ]


class Absent:
    """An absent GPU, with the attribute that compiling device functions asks for."""

    compute_capability = CAPABILITY


def table(headings: str, rows: Iterator[list[str]]) -> Table:
    """Return rows for people."""
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings.split(" | ")):
        shown.add_column(heading, justify="left" if number == 0 else "right", no_wrap=True)

    for row in rows:
        shown.add_row(*row)

    return shown


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--k", "sizes", type=int, multiple=True, default=SIZES, show_default=True)
@click.option("--policies", default="ofan,jsq", show_default=True)
@click.option("--message-bytes", "size", type=int, default=1 << 20, show_default=True)
@click.option("--threads", type=int, default=os.cpu_count(), show_default="processors")
@click.option("--tries", type=click.IntRange(1), default=3, show_default=True)
@click.option("--compile", "compiles", is_flag=True, help="Only compile; needs numba-cuda, no GPU.")
def main(
    sizes: tuple[int, ...], policies: str, size: int, threads: int, tries: int, compiles: bool
) -> None:
    """Measure, or compile."""
    if compiles:
        with patch("numba.cuda.dispatcher.get_current_device", Absent):
            headings = "kernel | CPU s to PTX | bytes of arguments | floats | registers | spilled"
            shown = table(headings, (compiled(*case) for case in kernels()))
    else:
        prepare()
        headings = "load balancer | k | cpu s | threads s | gpu s | send | windows | back | cpu/gpu"
        balancers = policies.split(",")
        shown = table(
            headings,
            (compared(k, case, size, threads, tries) for k in sizes for case in balancers),
        )

    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
