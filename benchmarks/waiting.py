"""The seconds and the memory that people wait for, here and in another version, in turns.

    git worktree add build/last COMMIT; make -C build/last setup
    python -m benchmarks.waiting build/last
    python -m benchmarks.waiting build/last --only "kernels compiled" --tries 1

Each row is a process of its own on each version: compilations with an empty cache, runs with the
caches of earlier runs. Of all tries the table has the least and the greatest CPU seconds, the least
seconds by the clock, and the most memory of a process. Speeds of kernels alone: `kernels.py`.
"""

import json
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.processes import Cost, run
from benchmarks.steps import STEPS

HERE = Path(__file__).resolve().parents[1]
GIB = 2**30
OFAN = "ofan.py"
PYTHON = ".venv/bin/python"
# Names that all versions have.
COMPILED = {
    "kernels compiled: of the simulator": "import sim; sim.prepare()",
    "kernels compiled: around programs": (
        "from emulation.virtual import simulated; simulated.prepare()"
    ),
}
LARGE = """
import sys
from fattree.experiment.model import Collective, Fabric, Scenario
from sim import run

scenario = Scenario(policy="ofan", fabric=Fabric(k=64), collective=Collective(message_bytes=2**20))
run(scenario, threads=int(sys.argv[1]))
"""
SWEEP = "sim run --k 4 --policies ofan,jsq --seeds 8 --message-bytes 16KiB --json --jobs"
STEP = STEPS["llama_8192"]
# GPUs, and k of a fabric for them.
SIZES = {8192: STEP.k, 16384: 42}


@dataclass(frozen=True, slots=True)
class Row:
    """The costs of a row's processes, here and on the version before."""

    name: str
    here: list[Cost]
    before: list[Cost]


def rows(folder: Path) -> Mapping[str, Sequence[str]]:
    """Return the arguments of Python for each row; results of steps lie in `folder`."""
    compilations = {name: ("-c", code) for name, code in COMPILED.items()}
    runs = {
        "ofan sim run of a packet": "sim run --k 4 --policies ofan --message-bytes 1 --json",
        "16 short runs": f"{SWEEP} 1",
        "16 short runs, two jobs": f"{SWEEP} 2",
    }
    commands = {name: (OFAN, *shlex.split(line)) for name, line in runs.items()}
    large = {
        f"k = 64, 1 MiB, threads: {threads}": ("-c", LARGE, str(threads)) for threads in (1, 2)
    }
    steps: dict[str, Sequence[str]] = {}
    for gpus, k in SIZES.items():
        file = folder / f"{gpus}.parquet"
        spread = STEP.spread.replace("--gpus 8192", f"--gpus {gpus}")
        generation = f"workload from-model {STEP.model} {file} {spread}"
        simulation = f"sim run --k {k} --matrix workload --policies ofan --json {STEP.packets}"
        simulation += f" --set collective.file={file}"
        steps[f"step of {gpus:,} GPUs generated"] = (OFAN, *shlex.split(generation))
        steps[f"step of {gpus:,} GPUs simulated"] = (OFAN, *shlex.split(simulation))

    return compilations | commands | large | steps


def cost(version: Path, arguments: Sequence[str], cache: Path | None) -> Cost:
    """Run a process of a version; raises ClickException where it fails."""
    environment = {**os.environ, "PYTHONPATH": ""}
    if cache:
        environment["NUMBA_CACHE_DIR"] = str(cache)

    line = [str(version / OFAN) if word == OFAN else word for word in arguments]
    return run([str(version / PYTHON), *line], environment, version)[1]


def measure(name: str, arguments: Sequence[str], old: Path, tries: int, cache: Path) -> Row:
    """Run a row on both versions in turns."""
    row = Row(name, [], [])
    for number in range(tries):
        for version, costs in ((HERE, row.here), (old, row.before)):
            own_cache = None
            if name in COMPILED:
                own_cache = cache / f"{name}-{number}-{version.name}"
                own_cache.mkdir(mode=0o700)

            costs.append(cost(version, arguments, own_cache))

    return row


def cells(tries: Sequence[Cost]) -> tuple[str, str, str]:
    """Return a version's CPU seconds, seconds by the clock, and GiB."""
    cpu_s = [try_cost.cpu_s for try_cost in tries]
    return (
        f"{min(cpu_s):.1f} to {max(cpu_s):.1f}",
        f"{min(try_cost.wall_s for try_cost in tries):.1f}",
        f"{max(try_cost.peak_bytes for try_cost in tries) / GIB:.2f}",
    )


def table(results: Sequence[Row]) -> Table:
    """Return the rows for people."""
    report = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "here: CPU s", "s", "GiB", "before: CPU s", "s", "GiB"):
        report.add_column(heading, justify="right" if heading else "left", no_wrap=True)

    for row in results:
        report.add_row(row.name, *cells(row.here), *cells(row.before))

    return report


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument(
    "old", type=click.Path(exists=True, file_okay=False, path_type=Path), default="build/last"
)
@click.option("--tries", type=click.IntRange(1), default=3, show_default=True, help="Turns.")
@click.option("--only", default="", help="Rows whose names have this.")
@click.option("--json", "as_json", type=click.Path(path_type=Path), help="Write the rows here.")
def main(old: Path, tries: int, only: str, as_json: Path | None) -> None:
    """Measure waits, here and in the version in a folder."""
    for version in (HERE, old):
        if not (version / PYTHON).exists():
            raise click.ClickException(f"{version} has no {PYTHON}: `make setup` there makes it")

    with tempfile.TemporaryDirectory() as folder:
        selection = [pair for pair in rows(Path(folder)).items() if only in pair[0]]
        results = [
            measure(name, arguments, old.resolve(), tries, Path(folder))
            for name, arguments in selection
        ]

    Console(width=120).print(table(results))
    if as_json:
        as_json.write_text(json.dumps([asdict(row) for row in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
