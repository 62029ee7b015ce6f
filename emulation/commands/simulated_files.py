"""The files that `ofan sim run` writes beside its table: flows, and a results folder."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from emulation.errors import EmulationError
from emulation.outcomes.folder import (
    EXPERIMENT,
    FLOWS,
    RESULTS,
    complete,
    kept_toml,
    new_folder,
    write_parquet,
)
from fattree.experiment.model import Experiment, Scenario
from fattree.files.whole_file import write_whole
from fattree.records.perfetto import trace
from fattree.records.record import Record, table
from fattree.records.tables import STDOUT
from sim.cli import Exports, show
from sim.sweeps.sweeping import flow_file

TRACE = ".pftrace"
TABLES = (".csv", ".parquet", TRACE)


@contextmanager
def shown_at_least(
    runs: Sequence[tuple[Scenario, Record]], csv: Path | None, *, as_json: bool
) -> Iterator[None]:
    """Show runs before the error of a file that cannot be written: they may have taken hours."""
    try:
        yield
    except (OSError, click.ClickException):
        if csv != STDOUT:
            show(runs, as_json)

        raise


def write_flows(
    scenarios: Sequence[Scenario], folder: Path, flows: Path | None, cdf: Path | None
) -> None:
    """Write the flows that runs have left in a folder: a table, and a picture."""
    import polars as pl

    frame = pl.concat(pl.read_parquet(folder / flow_file(case)) for case in scenarios)
    data = io.BytesIO()
    if flows and flows.suffix == ".parquet":
        frame.write_parquet(data)
    elif flows and flows.suffix == TRACE:
        data.write(trace(frame))
    elif flows:
        frame.write_csv(data)

    if flows:
        write_whole(flows, data.getvalue())

    if cdf:
        # Matplotlib takes half a second to import.
        from emulation.outcomes.plots import cdf_figure, seeds_of

        times = {
            scenario.balancer: frame.filter(pl.col("policy") == scenario.balancer)["fct_ps"]
            for scenario in scenarios
        }
        seeds = [scenario.seed for scenario in scenarios]
        caption = f"all flows, {seeds_of(seeds, seeds)}"
        picture = io.BytesIO()
        figure = cdf_figure(
            {name: times_ps.to_numpy() for name, times_ps in times.items()}, caption
        )
        figure.savefig(picture, format=cdf.suffix[1:])
        write_whole(cdf, picture.getvalue())


def claimed(output: Path, force: bool) -> Path:
    """Claim a new results folder until the command ends; raises ClickException if it is taken."""
    try:
        claim = new_folder(output, output, force)
        return click.get_current_context().with_resource(claim)
    except EmulationError as error:
        raise click.ClickException(str(error)) from None


def keep(
    experiment: Experiment, runs: Sequence[tuple[Scenario, Record]], flows: Path, results: Path
) -> None:
    """Write a results folder as `ofan emulate` does, without ports and queues over time.

    The runs' flows are in the folder `flows`. Raises ClickException where nothing can be written.
    """
    try:
        with complete(results) as fresh:
            (fresh / EXPERIMENT).write_text(kept_toml(experiment), encoding="utf-8")
            write_parquet(table(record for _, record in runs), fresh / RESULTS)
            Exports(None, fresh / "cct.png", ()).write(runs)
            scenarios = [scenario for scenario, _ in runs]
            write_flows(scenarios, flows, fresh / FLOWS, fresh / "flow_times.png")
    except EmulationError as error:
        raise click.ClickException(str(error)) from None
