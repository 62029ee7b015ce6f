"""`ofan report`: run or resume the evaluation, draw it, decide the claims, write the page."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from reproduction.report import files
from reproduction.report.contents import BEYOND, EDITIONS, FIGURES, Edition, figure
from reproduction.report.drawing import draw
from reproduction.report.figure import Data, Figure, Level, Preset
from reproduction.report.gather import Asked, Machines, batches, collect, compute, follow
from reproduction.report.gather import Progress as Report
from reproduction.report.looks import LOOKS
from reproduction.report.page import Judged, counts, judge, surroundings
from reproduction.report.stored import MadeWith, stored
from sim.cli import one_line_errors
from sim.kernels.plain import Form
from sim.runs.engine import prepare
from sim.sweeps.cost import processors
from sim.sweeps.own_folder import locked

EXAMPLES = """
\b
Examples:
  ofan report --quick       a look, some four minutes; decides few claims
  ofan report --jobs 2      all figures; goes on where it stopped
  ofan report --figure growth --figure packet_size --output build/two
  ofan report --draw-only   the page from what is finished so far
  ofan report --beyond      what the paper does not have, likewise
  ofan report --full --scheduler tcp://127.0.0.1:8786   on a Dask cluster
  ofan report --data docs/report/data --output build/again   drawn again
"""
MILLION = 1e6


@contextmanager
def reporting() -> Iterator[Report]:
    """Show how much is done and the time left: a bar on a terminal, else a line every tenth."""
    # In packet-hops, as runs are too different to count: one may have a thousand times another's.
    if not sys.stderr.isatty():
        yield _lines()
        return

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
    )

    # A long period: with runs of a hundredth of a second and of a minute the speed of the last few
    # seconds is a poor estimate for the rest.
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(
        *columns, *times, console=Console(stderr=True), transient=True, speed_estimate_period=600
    ) as bar:
        task = bar.add_task("simulating", total=None)
        yield lambda title, done, total: bar.update(
            task, description=title.partition("-")[0], completed=done, total=total
        )


def _lines() -> Report:
    shown = [-1]
    began = time.monotonic()

    def report(title: str, done: float, total: float) -> None:
        tenth = int(10 * done / total) if total else 10
        if tenth > shown[0]:
            shown[0] = tenth
            spent = time.monotonic() - began
            remaining = f", about {spent * (total - done) / done:.0f} s left" if done else ""
            click.echo(
                f"{100 * done / max(total, 1):.0f} % of {total / MILLION:,.0f} M packet-hops "
                f"after {spent:.0f} s{remaining}",
                err=True,
            )

    return report


@click.command(epilog=EXAMPLES)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for page, data and finished runs.  [build/report, build/beyond]",
)
@click.option(
    "--beyond",
    is_flag=True,
    help="Not the paper: other fabrics, collectives, training steps, faults, congestion controls.",
)
@click.option(
    "--quick",
    "level",
    flag_value="quick",
    help="Few seeds and small fabrics, some four minutes.",
)
@click.option("--full", "level", flag_value="full", help="Everything, up to 65,536 hosts; hours.")
@click.option(
    "--figure",
    "names",
    multiple=True,
    metavar="NAME",
    type=click.Choice([*FIGURES, *BEYOND]),
    help=f"Only this figure; repeatable: {', '.join(FIGURES)}; beyond: {', '.join(BEYOND)}.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**62), default=1, show_default=True, help="The first seed."
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes on this machine.  [one for each processor]"
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this Dask scheduler (tcp://host:port) instead.",
)
@click.option("--draw-only", is_flag=True, help="Run nothing: draw what is finished.")
@click.option(
    "--data",
    "kept",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Run nothing: draw a report's data again (the folder `data` beside its page).",
)
@click.option("--json", "as_json", is_flag=True, help="Write the verdicts to stdout as JSON.")
def report(
    output: Path | None,
    beyond: bool,
    level: Level | None,
    names: tuple[str, ...],
    seed: int,
    jobs: int | None,
    scheduler: str | None,
    draw_only: bool,
    kept: Path | None,
    as_json: bool,
) -> None:
    """Reproduce the paper: run every figure, decide every claim, write one page and its data."""
    if kept and (level or seed != 1):
        raise click.UsageError("--data says which preset and seeds it has")

    with one_line_errors(), ExitStack() as claims:
        kept_made = MadeWith.read(kept) if kept else None
        edition = _edition(beyond, kept_made)
        figures = _figures(edition, names)
        output = output or Path("build") / ("beyond" if edition.slug == "beyond" else "report")
        if kept and kept_made:
            made = kept_made
            figure_data = stored(figures, made, kept)
        else:
            preset = Preset(level or "default", seed)
            machines = Machines(jobs or processors(), scheduler)
            folder = output / files.STORES
            if not draw_only:
                claims.enter_context(claimed(output))

            began = time.monotonic()
            ran = 0

            def fetch(asked: Asked) -> dict[str, Data]:
                nonlocal ran
                ran += 0 if draw_only else simulate(figures, asked, folder, machines)
                return collect(figures, asked, preset, folder)

            figure_data, looks = follow(figures, preset, edition.claims, fetch, tell_look)
            wall_s = files.wall_s(folder, time.monotonic() - began if ran else 0)
            made = made_with(edition, preset, wall_s, figures, figure_data, looks)

        click.echo(
            f"drawing {len(figures)} figures, judging {len(edition.claims)} claims", err=True
        )
        drawn = [
            draw(chosen, figure_data[chosen.name], output / files.PICTURES, edition.claims)
            for chosen in figures
        ]
        # All figures are judged together: a claim may have its verdict from several.
        judged = judge(drawn, edition.claims)
        page = files.write(output, edition, drawn, judged, made)

    show(page, judged, as_json)


@contextmanager
def claimed(output: Path) -> Iterator[None]:
    """Keep a report's folder from other reports that run meanwhile and would replace our page.

    Raises UsageError where another report has it.
    """
    output.mkdir(parents=True, exist_ok=True)
    with locked(output.resolve()) as is_ours:
        if not is_ours:
            raise click.UsageError(
                f"another report runs in {output}: choose another --output,"
                " or --draw-only draws what it has finished"
            )

        yield


def _edition(beyond: bool, kept: MadeWith | None) -> Edition:
    """Return the report that is asked for; data say themselves of which they are."""
    if kept and beyond and kept.edition != "beyond":
        raise click.UsageError("--beyond: that data is of the paper's report")

    return EDITIONS[kept.edition if kept else "beyond" if beyond else "paper"]


def _figures(edition: Edition, names: Sequence[str]) -> list[Figure]:
    """Return the figures of these names, all of the report without any."""
    strange = [name for name in names if name not in edition.figures]
    if strange:
        preposition = "without" if edition.slug == "beyond" else "with"
        raise click.UsageError(f"--figure {strange[0]} goes {preposition} --beyond")

    return [figure(name) for name in edition.figures if not names or name in names]


def tell_look(look: int, undecided: Sequence[str], runs: int) -> None:
    """Say that there is a further look, who wants it, and its runs."""
    claims = ", ".join(undecided)
    click.echo(f"look {look} of {LOOKS}, {runs:,} more runs to decide {claims}", err=True)


def simulate(figures: Sequence[Figure], asked: Asked, folder: Path, machines: Machines) -> int:
    """Run the scenarios that figures need and stores lack; return the number of runs."""
    # Compiled here, once: processes that start together would each compile the engine.
    if machines.scheduler is None:
        for form in (Form.PLAIN, Form.GENERAL):
            prepare(form)

    with reporting() as progress:
        return compute(batches(figures, asked, folder), machines, progress)


def made_with(
    edition: Edition,
    preset: Preset,
    wall_s: float,
    figures: Sequence[Figure],
    data_of_figures: Mapping[str, Data],
    looks: Mapping[str, tuple[int, int]],
) -> MadeWith:
    """Return a report's `MadeWith`; the cost of every run is counted once."""
    # Figures share runs under names of their own: runs are the same if their measure and the rest
    # of the scenario are.
    runs = {
        (
            chosen.measure_id,
            scenario.model_copy(update={"name": "run"}).model_dump_json(),
        ): record.cpu_s
        for chosen in figures
        for scenario, record in zip(
            data_of_figures[chosen.name].scenarios,
            data_of_figures[chosen.name].records,
            strict=True,
        )
    }

    seeds = {scenario.seed for data in data_of_figures.values() for scenario in data.scenarios}
    return MadeWith(
        preset,
        wall_s,
        cpu_s=sum(runs.values()),
        runs=len(runs),
        seeds=f"{min(seeds)} to {max(seeds)}" if seeds else "none",
        environment=surroundings(),
        missing={chosen.name: data_of_figures[chosen.name].missing for chosen in figures},
        edition=edition.slug,
        looks={claim: list(look) for claim, look in looks.items()},
    )


def show(page: Path, judged: Sequence[Judged], as_json: bool) -> None:
    """Write the verdicts to stdout, with where the page is."""
    if as_json:
        claims = [
            {
                "claim": claim.number,
                "verdict": claim.outcome,
                "ours": [verdict.ours for _, verdict in claim.verdicts],
            }
            for claim in judged
        ]

        click.echo(
            json.dumps({"page": str(page), "counts": counts(judged), "claims": claims}, indent=2)
        )
        return

    for outcome, number in counts(judged).items():
        listed = " ".join(claim.number for claim in judged if claim.outcome == outcome)
        click.echo(f"{outcome:14}{number:3}  {listed}")

    click.echo(f"page: {page}")
