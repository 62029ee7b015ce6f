"""`ofan bgp`: real routers on a fabric, their weights and times when links fail."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from emulation.command_line import one_line_errors, settings_option
from emulation.held.cli import as_csv, as_json
from emulation.mininet.bgp.configuration import configurations
from emulation.mininet.bgp.convergence import Change, await_routes, fail_and_mend
from emulation.mininet.bgp.routers import routers, version
from emulation.shipped_file import ShippedFile
from fattree.records.tables import Folding, terminal, write_csv
from fattree.shape.addressing import link_named, switch_named
from fattree.shape.topology import FatTree
from fattree.texts.experiment_file import load_experiment
from fattree.texts.shipped import EXPERIMENTS

EXAMPLES = """
\b
Examples:
  ofan bgp --configuration edge0_0          what an operator would configure
  sudo ofan bgp                             a link of each kind fails
  sudo ofan bgp --fail agg0_0-core0_1 --fail edge0_0-agg0_0,edge1_0-agg1_1
  sudo ofan bgp --all --csv singles.csv     each link by itself
  sudo ofan bgp --draw 20 --seed 7          sets of 2 to 4 links
  sudo ofan bgp leaf_spine --json
"""
# The sizes of drawn sets of links.
SMALLEST_SET = 2
LARGEST_SET = 4


@click.command(epilog=EXAMPLES)
@click.argument("experiment", type=ShippedFile(), default=EXPERIMENTS / "demo.toml")
@click.option(
    "--fail",
    "named",
    multiple=True,
    metavar="LINK[,LINK...]",
    help="Links that fail together, and come back; can be repeated.",
)
@click.option("--all", "every", is_flag=True, help="Each link fails by itself.")
@click.option("--draw", type=click.IntRange(1, 10_000), help="So many random sets of links.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="For --draw.")
@click.option(
    "--configuration",
    metavar="SWITCH",
    help="Print a switch's FRR configuration instead (without root).",
)
@as_json
@as_csv
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the times of all switches (png, svg, pdf).",
)
@settings_option
def bgp(
    experiment: Path,
    named: tuple[str, ...],
    every: bool,
    draw: int | None,
    seed: int,
    configuration: str | None,
    as_json: bool,
    csv: Path | None,
    figure: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Run BGP on the switches of an experiment's fabric, and fail links.

    Each switch is a network namespace with FRR's zebra, bfdd and bgpd. The table has, for each
    change: the switches with changed routes, the time to the last route of the first, the
    median and the last switch, and the weights that differ from those that `controller.weights =
    "bgp"` computes, and from W-ECMP's.
    """
    with one_line_errors(experiment, settings):
        tree = next(load_experiment(experiment, settings).scenarios()).tree
        if configuration:
            for daemon, text in configurations(tree, switch_named(tree, configuration)).items():
                click.echo(f"! {daemon}.conf\n{text}")

            return

        failures = _failures(tree, named, every, draw, seed)
        with routers(tree) as running:
            click.echo(f"FRR {version()} starts on {tree.switches} switches", err=True)
            complete_s = await_routes(running)
            click.echo(f"all routes are there after {complete_s:.1f} s", err=True)
            changes = list(_told(fail_and_mend(running, failures), 2 * len(failures)))

        if figure:
            # The import takes half a second: only with --figure.
            from emulation.mininet.bgp.picture import draw_times

            draw_times(changes, figure)

    _write(changes, complete_s, as_json, csv)


def _failures(
    tree: FatTree, named: tuple[str, ...], every: bool, draw: int | None, seed: int
) -> list[frozenset[int]]:
    """Return the sets of links that fail, one after the other."""
    sets = [frozenset(link_named(tree, name) for name in names.split(",")) for names in named]
    if every:
        sets.extend(frozenset({link}) for link in range(tree.links))

    if draw:
        rng = np.random.default_rng(seed)
        smallest, largest = (min(size, tree.links) for size in (SMALLEST_SET, LARGEST_SET))
        sizes = rng.integers(smallest, largest, draw, endpoint=True)
        sets.extend(
            frozenset(rng.choice(tree.links, size, replace=False).tolist()) for size in sizes
        )

    # By default a link of each level: an edge's, and a core's where there are cores.
    firsts = dict.fromkeys((0, tree.edge_links if tree.cores else 0))
    return sets or [frozenset({link}) for link in firsts]


def _told(changes: Iterator[Change], count: int) -> Iterator[Change]:
    """Pass changes on, with a line on stderr for each."""
    for number, change in enumerate(changes, 1):
        state = "up" if change.is_up else "down"
        click.echo(
            f"{number}/{count}: {', '.join(change.links)} {state}, {change.last_ms:.0f} ms",
            err=True,
        )
        yield change


def _row(change: Change) -> dict[str, Any]:
    return {
        **asdict(change),
        "links": ",".join(change.links),
        "took_ms": " ".join(f"{ms:.1f}" for ms in change.took_ms),
        "switches": len(change.took_ms),
        "first_ms": round(change.first_ms, 1),
        "median_ms": round(change.median_ms, 1),
        "last_ms": round(change.last_ms, 1),
    }


def _write(changes: list[Change], complete_s: float, as_json: bool, csv: Path | None) -> None:
    if csv:
        write_csv([_row(change) for change in changes], csv)

    if as_json:
        rows = [asdict(change) for change in changes]
        click.echo(json.dumps({"frr": version(), "start_s": complete_s, "changes": rows}, indent=2))

    if as_json or csv:
        return

    table = Folding(
        *("links", "", "switches", "first (ms)", "median", "last", "not as computed"),
        "not W-ECMP's",
        keys=2,
        texts=(0, 1),
    )
    for change in changes:
        table.add_row(
            ", ".join(change.links),
            "up" if change.is_up else "down",
            str(len(change.took_ms)),
            *(f"{ms:.0f}" for ms in (change.first_ms, change.median_ms, change.last_ms)),
            str(change.other_than_computed),
            str(change.other_than_exact),
        )

    terminal().print(table)
