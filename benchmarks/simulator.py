"""The simulator's packet-hops per second and memory, by load balancer, size and threads.

    python benchmarks/simulator.py                  k = 8 to 64, a permutation of 1 MiB: 3 minutes
    python benchmarks/simulator.py --quick          k = 8 and 16
    python benchmarks/simulator.py --json rows.json --chart speed.png
    HTSIM="path/htsim_roce -strat ecmp_rr" python benchmarks/simulator.py --htsim-k 8

Rates are per second of this process's CPU time, building included, so that a busy machine does not
change them much; threads gain wall-clock time, and that needs a quiet machine. Every
measurement has a process of its own; memory may lie well or badly for the caches, so --tries 3
takes the fastest of three.

With HTSIM set to a simulator of the htsim family (and options of its own), it runs the same
connection matrix, side by side in one table. HTSIM is given -tm FILE -nodes N -linkspeed MBITS and
prints when flows have finished, in microseconds.
"""

import json
import os
import re
import resource
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
from matplotlib.axes import Axes
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fattree.demand import traffic
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.policies import PAPER_POLICIES
from fattree.units import PS_PER_US
from reproduction.report.style import colour, label, panel
from sim.runs.engine import prepare, run

LARGE = ("ofan", "rsq")
SEEDS = {8: 10, 16: 3, 32: 2, 64: 1}
QUICK = (8, 16)
EVERYONE_UP_TO = 16
THREADS_FROM = 16
MILLION = 1e6
GIB = 2**30
FINISHED = re.compile(r"finished at (\d+(?:\.\d+)?)")
PATIENCE_S = 3600


@dataclass(frozen=True, slots=True)
class Row:
    """The measurement of one process over its seeds.

    `rate` is packet-hops per CPU second, `cct_us` of the last seed.
    """

    simulator: str
    policy: str
    k: int
    hosts: int
    threads: int
    seeds: int
    packet_hops: int
    cpu_s: float
    wall_s: float
    rate: float
    max_rss_bytes: int
    cct_us: float


def measure(scenarios: Sequence[Scenario], threads: int) -> Row:
    """Run scenarios that differ in their seed only, after a first run that loads the kernels."""
    prepare()
    # Kernels are loaded by the first run, which is not measured.
    run(Scenario(policy=scenarios[0].policy, fabric=Fabric(k=4)), threads=threads)
    began_s = time.perf_counter()
    results = [run(scenario, threads=threads) for scenario in scenarios]
    wall_s = time.perf_counter() - began_s
    hops = sum(result.packet_hops for result in results)
    cpu_s = sum(result.cpu_s for result in results)
    first = scenarios[0]
    last = results[-1]

    return Row(
        simulator="ofan",
        policy=first.policy,
        k=first.fabric.k,
        hosts=first.tree.hosts,
        threads=threads,
        seeds=len(scenarios),
        packet_hops=hops,
        cpu_s=cpu_s,
        wall_s=wall_s,
        rate=hops / cpu_s,
        max_rss_bytes=last.record.max_rss_bytes,
        cct_us=last.cct_ps / PS_PER_US,
    )


def apart(scenarios: Sequence[Scenario], threads: int) -> Row:
    """Measure in a process of its own, so that its peak memory is that of these runs."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (scenarios, threads))


def plan(sizes: Iterable[int], quick: bool) -> Iterator[tuple[list[Scenario], int]]:
    """Yield scenarios and threads: all load balancers on small fabrics, two on large fabrics."""
    for k in sizes:
        for policy in PAPER_POLICIES if k <= EVERYONE_UP_TO else LARGE:
            seeds = 1 if quick and k > QUICK[0] else SEEDS.get(k, 1)
            scenarios = [
                Scenario(policy=policy, seed=seed, fabric=Fabric(k=k))
                for seed in range(1, seeds + 1)
            ]

            for threads in (1, 2) if k >= THREADS_FROM and policy in LARGE else (1,):
                yield scenarios, threads


def connection_matrix(scenario: Scenario) -> str:
    """Return a scenario's flows as the text of a connection matrix.

    They must not wait for each other.
    """
    flows = traffic.flows(scenario)
    size = scenario.collective.message_bytes
    ends = zip(flows.source.tolist(), flows.destination.tolist(), strict=True)
    lines = [
        f"{source}->{destination} id {number} start 0 size {size}"
        for number, (source, destination) in enumerate(ends, start=1)
    ]

    return "\n".join([f"Nodes {scenario.tree.hosts}", f"Connections {len(lines)}", *lines, ""])


def side_by_side(command: Sequence[str], k: int, folder: Path) -> Iterator[Row]:
    """Yield the rows of our simulator and of another for one connection matrix.

    Packet-hops are ours for both.
    """
    file = folder / f"permutation_{k}.cm"
    file.write_text(connection_matrix(Scenario(policy="rsq", fabric=Fabric(k=k))))
    scenario = Scenario(
        policy="rsq", fabric=Fabric(k=k), collective=Collective(matrix="file", file=str(file))
    )
    ours = apart([scenario], 1)
    yield ours
    yield other(command, file, scenario, ours.packet_hops)


def other(command: Sequence[str], file: Path, scenario: Scenario, packet_hops: int) -> Row:
    """Run a simulator of the htsim family.

    Raises ClickException with its last line where it fails.
    """
    speed = str(scenario.rate_bps // 10**6)
    arguments = [
        *command,
        "-tm",
        str(file),
        "-nodes",
        str(scenario.tree.hosts),
        "-linkspeed",
        speed,
    ]

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.perf_counter()
    try:
        done = subprocess.run(
            arguments,
            cwd=file.parent,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise click.ClickException(f"HTSIM: {error}") from None

    wall_s = time.perf_counter() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = [float(us) for us in FINISHED.findall(done.stdout)]

    if done.returncode or not finished:
        last = [*(done.stderr + done.stdout).strip().splitlines(), "no output"][-1]
        raise click.ClickException(
            f"HTSIM: {shlex.join(arguments)}: exit code {done.returncode}: {last}"
        )

    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Row(
        simulator=Path(command[0]).name,
        policy=" ".join(command[1:]),
        k=scenario.fabric.k,
        hosts=scenario.tree.hosts,
        threads=1,
        seeds=1,
        packet_hops=packet_hops,
        cpu_s=cpu_s,
        wall_s=wall_s,
        rate=packet_hops / cpu_s,
        max_rss_bytes=after.ru_maxrss * 1024,
        cct_us=max(finished),
    )


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    headings = (
        "simulator",
        "load balancer",
        "k",
        "hosts",
        "threads",
        "seeds",
        "M packet-hops",
        "CPU s",
        "wall s",
        "M per CPU s",
        "GiB",
        "CCT (µs)",
    )

    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        shown.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)

    for row in rows:
        shown.add_row(
            row.simulator,
            label(row.policy),
            *(f"{count:,}" for count in (row.k, row.hosts, row.threads, row.seeds)),
            f"{row.packet_hops / MILLION:,.1f}",
            f"{row.cpu_s:.2f}",
            f"{row.wall_s:.2f}",
            f"{row.rate / MILLION:.1f}",
            f"{row.max_rss_bytes / GIB:.2f}",
            f"{row.cct_us:.2f}",
        )

    return shown


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw rates by load balancer at the smallest k, and rates and memory by size."""
    picture, (schemes, rates, memory) = panel(width=3.8, height=3.4, columns=3)
    sizes = sorted({row.k for row in rows})
    draw_schemes(schemes, [row for row in rows if (row.k, row.threads) == (sizes[0], 1)])

    for policy in LARGE:
        for threads in (1, 2):
            draw_sizes(
                rates,
                memory,
                [row for row in rows if (row.policy, row.threads) == (policy, threads)],
            )

    for axes, title in ((rates, "million packet-hops per second"), (memory, "peak memory (GiB)")):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"k = {k}\n{k**3 // 4:,}\nhosts" for k in sizes])
        axes.set_title(title, fontsize=9)
        axes.set_ylim(0, 1.1 * max(max(line.get_ydata()) for line in axes.get_lines()))
        axes.legend(fontsize=7)

    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path)


def draw_schemes(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw a bar for each load balancer."""
    places = range(len(rows))
    axes.barh(
        places,
        [row.rate / MILLION for row in rows],
        color=[colour(row.policy) for row in rows],
        edgecolor="#333333",
    )

    axes.set_yticks(places, [label(row.policy) for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="x")
    axes.set_title(f"million packet-hops per CPU s, k = {rows[0].k}", fontsize=9)


def draw_sizes(rates: Axes, memory: Axes, rows: Sequence[Row]) -> None:
    """Draw the lines of one load balancer: one thread by CPU time, several by wall clock."""
    if not rows:
        return

    policy = rows[0].policy
    threads = rows[0].threads
    look: dict[str, Any] = {
        "color": colour(policy),
        "linestyle": "-" if threads == 1 else "--",
        "marker": "o" if threads == 1 else "s",
    }

    clock = "1 thread, CPU time" if threads == 1 else f"{threads} threads, wall clock"
    seconds = [row.cpu_s if threads == 1 else row.wall_s for row in rows]
    sizes = [row.k for row in rows]
    hops = [row.packet_hops / MILLION for row in rows]
    rates.plot(
        sizes,
        [count / time for count, time in zip(hops, seconds, strict=True)],
        label=f"{label(policy)}, {clock}",
        **look,
    )

    memory.plot(
        sizes,
        [row.max_rss_bytes / GIB for row in rows],
        label=f"{label(policy)}, {threads} thread(s)",
        **look,
    )


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option(
    "--k",
    "sizes",
    multiple=True,
    type=click.IntRange(2, 128),
    help="A size; repeatable.  [8, 16, 32, 64]",
)
@click.option("--quick", is_flag=True, help="k = 8 and 16, fewer seeds.")
@click.option(
    "--tries",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Take the fastest of so many processes.",
)
@click.option(
    "--htsim-k",
    type=click.IntRange(2, 128),
    default=8,
    show_default=True,
    help="The size of what HTSIM runs too.",
)
@click.option(
    "--json",
    "as_json",
    type=click.Path(path_type=Path),
    help="Write the rows to this file as JSON.",
)
@click.option("--chart", type=click.Path(path_type=Path), help="Draw the rows in this file.")
def main(
    sizes: tuple[int, ...],
    quick: bool,
    tries: int,
    htsim_k: int,
    as_json: Path | None,
    chart: Path | None,
) -> None:
    """Measure, and show a row as soon as it is there."""
    prepare()
    rows: list[Row] = []
    for scenarios, threads in plan(sizes or (QUICK if quick else tuple(SEEDS)), quick):
        rows.append(
            max(
                (apart(scenarios, threads) for _ in range(tries)),
                key=lambda row: row.packet_hops / row.wall_s,
            )
        )

        click.echo(
            f"k = {rows[-1].k}, {label(rows[-1].policy)}, {threads} thread(s):"
            f" {rows[-1].rate / MILLION:.1f} M/s",
            err=True,
        )

    beside: list[Row] = []
    if os.environ.get("HTSIM"):
        with tempfile.TemporaryDirectory() as folder:
            beside += side_by_side(shlex.split(os.environ["HTSIM"]), htsim_k, Path(folder))

    for part in filter(None, (rows, beside)):
        Console(width=140).print(table(part))

    if as_json:
        tables = {"rows": rows, "side_by_side": beside}
        as_json.write_text(
            json.dumps(
                {name: [asdict(row) for row in part] for name, part in tables.items()}, indent=2
            )
            + "\n"
        )

    if chart:
        draw(rows, chart)


if __name__ == "__main__":
    main()
