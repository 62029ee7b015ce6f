"""Common options of the `ofan workload` commands, and the writing of a graph to a file."""

from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

from fattree.demand.workloads.file import About, check, write_workload
from fattree.demand.workloads.graph import Graph
from fattree.files.memory import Room, spare_bytes
from fattree.generators.training import computation_ps
from sim.cli import FilePath, in_a_folder

# The simulator takes about 20 s of CPU for so many packets.
MOST_PACKETS = 12_500_000
PACKET_BYTES = 65_000

Command = Callable[..., None]


def output_argument(function: Command) -> Command:
    """Add the file to be written, OUTPUT."""
    return click.argument("output", type=FilePath, callback=in_a_folder)(function)


def counted(name: str, default: int, text: str) -> Callable[[Command], Command]:
    """Return an option that takes a number from 1 on."""
    return click.option(name, type=click.IntRange(1), default=default, show_default=True, help=text)


forced = click.option(
    "--force", is_flag=True, help="Go on even if it takes more memory than is free."
)


def room_for(is_forced: bool) -> Room:
    """Return the memory that a graph may use."""
    return Room(None if is_forced else spare_bytes())


def scale_for(graph: Graph) -> int:
    """Return the least power of two that leaves no more than MOST_PACKETS."""
    packets = int(np.ceil(graph.size / PACKET_BYTES).sum())
    return 1 << max(-(-packets // MOST_PACKETS) - 1, 0).bit_length()


def keep(output: Path, graph: Graph, about: About) -> None:
    """Write a workload and print its description; raises TrafficError."""
    # Refuse a workload that no network can run before writing the file.
    check(graph, about, str(output))
    write_workload(output, graph, about)
    say(graph, about)


def say(graph: Graph, about: About) -> None:
    """Print the description of a workload."""
    sent = int((graph.size > 0).sum())
    click.echo(about.about)
    click.echo(
        f"{about.ranks:,} ranks, {sent:,} transfers of {int(graph.size.sum()):,} bytes, "
        f"{len(graph) - sent:,} computations, {len(graph.waiting):,} dependencies"
    )
    if graph.nics:
        click.echo(f"messages name NICs 0 to {graph.nics - 1}: for fabric.planes = {graph.nics}")
    computed_ms = computation_ps(graph) / 1e9
    whole = f", of the whole step {about.scale * computed_ms:,.3f} ms" if about.scale > 1 else ""
    click.echo(f"computations alone: {computed_ms:,.3f} ms{whole}")
    if about.scale > 1:
        click.echo(
            f"scale: bytes and computations are divided by {about.scale}, latencies are not;\n"
            f"the whole step takes {about.scale} times as long as a run"
        )
