"""`ofan workload`: files of transfers and computations, from other people's traces.

`[collective] matrix = "workload"` runs them.
"""

from pathlib import Path

import click

from emulation.commands.workload_files import forced, keep, output_argument, room_for, say
from fattree.demand.workloads.file import About, read_workload
from fattree.errors import TrafficError
from fattree.files.text_file import read_bytes
from fattree.generators.chakra import chakra_graph
from fattree.generators.chakra_dimensions import by_dimensions
from fattree.generators.chakra_file import read_chakra
from fattree.generators.chakra_ranks import stretched
from fattree.generators.goal import goal_graph, marks
from fattree.generators.goal_file import read_goal
from fattree.signs_of_life import signs_of_life
from sim.cli import FilePath, one_line_errors

CHAKRA_EXAMPLES = """
\b
Examples:
  ofan workload from-chakra traces/step step.parquet
  ofan workload from-chakra traces/step step.parquet --ranks 64
  ofan workload from-chakra traces/step step.parquet --dimensions 4,2
"""


def _sizes(_: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Read whole numbers from 1 on between commas."""
    numbers = value.split(",") if value is not None else []
    if not all(number.isascii() and number.isdigit() and 0 < len(number) < 8 for number in numbers):
        raise click.BadParameter(f"{value!r:.40}: must be numbers of ranks, as in 4,2")

    return tuple(map(int, numbers))


@click.command("from-goal")
@click.argument("schedule", type=FilePath)
@output_argument
@forced
def from_goal(schedule: Path, output: Path, force: bool) -> None:
    """Write the GOAL schedule in SCHEDULE, text or LogGOPSim's binary form, to OUTPUT."""
    with one_line_errors(), signs_of_life(f"writing {output}"):
        memory = room_for(force)
        read = read_goal(read_bytes(schedule, TrafficError), str(schedule), memory)
        said = (
            f"GOAL schedule {schedule.name}: {len(read):,} operations, "
            f"{read.dependencies:,} dependencies, {read.total_bytes:,} bytes"
        )
        graph = goal_graph(read, memory)
        if ignored := marks(read, graph):
            click.echo(f"{ignored:,} sends without bytes and without a receiver take no time")

        keep(output, graph, About(said, read.ranks))


@click.command("from-chakra", epilog=CHAKRA_EXAMPLES)
@click.argument("prefix", type=str)
@output_argument
@click.option(
    "--algorithm",
    type=click.Choice(["ring", "double_tree", "recursive", "direct"]),
    default="ring",
    show_default=True,
    help="Algorithm of the collectives in the traces.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1),
    metavar="M",
    help="Copy the trace's ranks until there are M; collectives of all ranks then have all M."
    "  [the number of files]",
)
@click.option(
    "--dimensions",
    callback=_sizes,
    metavar="A,B,...",
    help="Ranks in each dimension of the trace's files, for collectives of some dimensions.",
)
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="NAME",
    help="Leave out an attribute of this name; others that are not known are refused.",
)
@forced
def from_chakra(
    prefix: str,
    output: Path,
    algorithm: str,
    ranks: int | None,
    dimensions: tuple[int, ...],
    ignored: tuple[str, ...],
    force: bool,
) -> None:
    """Write the Chakra traces PREFIX.0.et, PREFIX.1.et, ... to OUTPUT."""
    with one_line_errors(), signs_of_life(f"writing {output}"):
        memory = room_for(force)
        trace = read_chakra(prefix, memory, frozenset(ignored))
        if trace.left_out:
            click.echo(
                f"{trace.left_out:,} control dependencies name missing nodes, or their own node: "
                "they are left out; data dependencies are kept"
            )
        if dimensions:
            trace = by_dimensions(trace, dimensions)
        if ranks:
            trace = stretched(trace, ranks, memory)
        elif len(trace.ranks) == 1:
            raise TrafficError(
                f"{prefix}.0.et is the trace of a single rank, which has no peer: "
                "--ranks M makes M ranks of it"
            )

        said = (
            f"Chakra traces {Path(prefix).name}: {sum(map(len, trace.ranks)):,} nodes, "
            f"{trace.dependencies:,} dependencies, {trace.total_bytes:,} bytes"
        )
        keep(output, chakra_graph(trace, algorithm, memory), About(said, len(trace.ranks)))


@click.command("show")
@click.argument("file", type=FilePath)
def show(file: Path) -> None:
    """Describe the workload in FILE."""
    with one_line_errors():
        say(*read_workload(str(file)))
