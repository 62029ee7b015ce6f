"""The simulator's kernels beside those of another version, in one run: the ratio of their speeds.

    git worktree add build/last COMMIT         # the last release
    pip install --no-deps --target build/last ofan*.whl          # or its two wheels
    python benchmarks/kernels.py build/last
    python benchmarks/kernels.py build/last --quick --json rows.json

Both versions run the same scenarios with the same Python and libraries, in processes of their own
that take turns, so that a busy machine is as busy for both. The least CPU time of all runs counts,
building included; the spread (median over least) shows how far to believe it. Completion
times must be equal, or the benchmark fails: figures of different results compare nothing.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parents[1]
MILLION = 1e6
# (k, MiB a message, load balancer, runs a process).
Case: TypeAlias = tuple[int, int, str, int]
CASES = ((8, 4, "ofan", 7), (8, 4, "jsq", 7), (32, 1, "ofan", 1))
MORE = ((8, 4, "rsq", 7), (16, 1, "ofan", 3), (32, 1, "jsq", 1))
# The program of a process: it uses only names that all versions have.
CHILD = """
import json, sys
from fattree.experiment.model import Collective, Fabric, Scenario
from sim import prepare, run

k, size, policy, runs = json.loads(sys.argv[1])
prepare()
collective = Collective(message_bytes=size * 2**20)
run(Scenario(policy=policy, fabric=Fabric(k=4)))
results = [
    run(Scenario(policy=policy, fabric=Fabric(k=k), collective=collective)) for _ in range(runs)
]
print(json.dumps([[each.packet_hops, each.cct_ps, each.cpu_s] for each in results]))
"""


@dataclass(frozen=True, slots=True)
class Side:
    """All runs of one version: packet-hops and completion time of each, and its CPU seconds."""

    packet_hops: int
    cct_ps: int
    cpu_s: list[float]

    @property
    def rate(self) -> float:
        """Return packet-hops per second of the quickest run."""
        return self.packet_hops / min(self.cpu_s)

    @property
    def spread(self) -> float:
        """Return the median of the times over the least."""
        return median(self.cpu_s) / min(self.cpu_s)


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario on both versions; `ratio` is above 1 where the version here is faster."""

    policy: str
    k: int
    message_mib: int
    here: Side
    there: Side
    ratio: float


def measure(folder: Path, case: Case) -> list[list[float]]:
    """Run a case in a process of the version in a folder; return (hops, CCT, CPU s) of each run."""
    # Versions up to 0.4.0 have the P4 tools in the second folder.
    path = os.pathsep.join(str(folder / part) for part in ("", "p4tools", "emulation/p4"))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(case)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(f"{folder}: the runs failed (above)")

    rows: list[list[float]] = json.loads(done.stdout)
    return rows


def side(rows: Sequence[Sequence[float]]) -> Side:
    """Return the side of a scenario's runs, which are all alike but for their time."""
    packet_hops, cct_ps, _ = rows[0]
    return Side(int(packet_hops), int(cct_ps), [cpu_s for _, _, cpu_s in rows])


def compared(case: Case, folder: Path, tries: int) -> Row:
    """Run a case on both versions in turn; raises ClickException where results differ."""
    turns = [(measure(HERE, case), measure(folder, case)) for _ in range(tries)]
    ours, theirs = (
        side([row for rows in turn for row in rows]) for turn in zip(*turns, strict=True)
    )
    k, message, policy, _ = case
    if (ours.packet_hops, ours.cct_ps) != (theirs.packet_hops, theirs.cct_ps):
        raise click.ClickException(
            f"{policy}, k = {k}: the versions differ, {ours.cct_ps} and {theirs.cct_ps} ps"
        )

    return Row(policy, k, message, ours, theirs, ratio=ours.rate / theirs.rate)


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    headings = (
        "load balancer",
        "k",
        "message",
        "M packet-hops",
        "here",
        "there",
        "ratio",
        "spread",
    )
    for number, heading in enumerate(headings):
        shown.add_column(heading, justify="left" if number == 0 else "right", no_wrap=True)

    for row in rows:
        shown.add_row(
            row.policy,
            str(row.k),
            f"{row.message_mib} MiB",
            f"{row.here.packet_hops / MILLION:.1f}",
            f"{row.here.rate / MILLION:.1f} M/s",
            f"{row.there.rate / MILLION:.1f} M/s",
            f"{row.ratio:.2f}",
            f"{row.here.spread:.2f}, {row.there.spread:.2f}",
        )

    return shown


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument(
    "there", type=click.Path(exists=True, file_okay=False, path_type=Path), default="build/last"
)
@click.option("--quick", is_flag=True, help="Fewer scenarios.")
@click.option(
    "--tries",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="So many processes of each version for each scenario.",
)
@click.option(
    "--json",
    "as_json",
    type=click.Path(path_type=Path),
    help="Write the rows to this file as JSON.",
)
def main(there: Path, quick: bool, tries: int, as_json: Path | None) -> None:
    """Compare the kernels here with those of the version in a folder, by default build/last.

    It is a checkout, or a folder that pip has filled with --target.
    """
    rows = [
        compared(case, there.resolve(), tries) for case in (CASES if quick else (*CASES, *MORE))
    ]
    Console(width=120).print(table(rows))
    if as_json:
        as_json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
