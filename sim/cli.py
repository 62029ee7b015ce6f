"""`ofan sim results`, and the files of `ofan sim run` and `sweep`
(`emulation.commands.simulation`).
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from fattree.errors import FabricError, MatrixError, PhysicsError
from fattree.experiment.model import Experiment, Scenario
from fattree.files.connection_matrix import describe, parse_connection_matrix
from fattree.files.text_file import read_text
from fattree.files.whole_file import write_whole
from fattree.records.csv_option import CsvOption, refuse_ending
from fattree.records.tables import STDOUT, terminal, write_csv
from fattree.texts.experiment_file import load_experiment, parse_experiment
from fattree.texts.explanations import located
from sim.errors import FailedRunsError, SimulationError, UnfinishedError
from sim.sweeps.store import Store
from sim.sweeps.tables import (
    Runs,
    csv_rows,
    fitting,
    json_rows,
    left_out,
    legend,
    workload_lines,
    write_parquet,
)

# Usage has 2: scripts distinguish them.
RUN_FAILED = 1
# \b keeps click from rewrapping the lines.
RESULTS_EXAMPLES = """
\b
Examples:
  ofan sim sweep sweep.toml            fills results/message_size.sqlite
  ofan sim results results/message_size.sqlite
  ofan sim results results/message_size.sqlite --parquet message_size.parquet
  ofan sim results results/message_size.sqlite --figure message_size.png
"""

FilePath = click.Path(path_type=Path, dir_okay=False)
PICTURES = (".png", ".svg", ".pdf")


def in_a_folder(_context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse an output file in a folder that does not exist, before anything runs."""
    if path is not None and path != STDOUT and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}", param=option)

    return path


def a_picture(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a picture of another kind than those that help names, before anything runs."""
    if path is not None and path.suffix not in PICTURES:
        raise click.BadParameter(f"its name must end in {' or '.join(PICTURES)}", param=option)

    return in_a_folder(context, option, path)


def a_parquet(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a name that stands for another format than Parquet, before anything runs."""
    if path is not None:
        refuse_ending(path, (".parquet", ".pq", ""), "Parquet", context, option)

    return in_a_folder(context, option, path)


csv_option = click.option(
    "--csv",
    cls=CsvOption,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    callback=in_a_folder,
    metavar="FILE",
    help="Also write the runs to a CSV file (-: to stdout, without the table).",
)
parquet_option = click.option(
    "--parquet",
    type=FilePath,
    callback=a_parquet,
    help="Also write the runs to a Parquet file.",
)
figure_option = click.option(
    "--figure",
    type=FilePath,
    callback=a_picture,
    help="Draw the distance from the bound, over swept keys if any (.png, .svg or .pdf).",
)
leave_out_option = click.option(
    "--leave-out",
    metavar="A,B",
    default="",
    callback=lambda _context, _option, text: tuple(filter(None, map(str.strip, text.split(",")))),
    help="Load balancers that the figure leaves out, or programs by their file's name.",
)
THREADS = click.option(
    "--threads",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Threads for each run; useful from k = 16 on.",
)
JOBS = click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes; short runs take 1.",
)


@contextmanager
def one_line_errors(file: Path | None = None, settings: Sequence[str] = ()) -> Iterator[None]:
    """Turn an error in the user's input into a click error: one line, exit code 2.

    The error of a key in an experiment's `file` or in `settings` starts with its place. A failed
    run is also one line, with exit code 1.
    """
    try:
        yield
    except BrokenPipeError:
        # `... | head` is no error (`ofan_p4.command.run`).
        raise
    except (FailedRunsError, PhysicsError, UnfinishedError) as error:
        click.echo(f"ofan: {error}", err=True)
        raise click.exceptions.Exit(RUN_FAILED) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{where}{error.strerror or error}") from None
    except (FabricError, SimulationError) as error:
        message = located(str(error), file, settings) if file else str(error)
        raise click.ClickException(message) from None


def say_how_matrices_are_read(scenarios: Iterable[Scenario]) -> None:
    """Say on stderr how each connection matrix was read.

    Files do not name the unit of their start times, and a wrong unit changes the experiment.
    """
    collectives = dict.fromkeys(
        (scenario.collective.file, scenario.collective.start_unit)
        for scenario in scenarios
        if scenario.collective.matrix == "file"
    )

    for file, unit in collectives:
        assert file is not None
        click.echo(
            describe(parse_connection_matrix(read_text(file, MatrixError), file), unit), err=True
        )


def read_experiment(file: Path | None, settings: Sequence[str]) -> Experiment:
    """Read the file, if any, with the command line's overrides; raises ExperimentError."""
    if file:
        return load_experiment(file, settings)

    return parse_experiment("", "command line", settings)


def show(runs: Runs, as_json: bool, balancers: Sequence[str] = (), **extra: str) -> None:
    """Write runs to stdout as a table, or as JSON (`sim.sweeps.tables.fitting`)."""
    if as_json:
        click.echo(json.dumps({**extra, "runs": json_rows(runs)}, indent=2))
        return

    console = terminal()
    table, cases = fitting(runs, balancers, console.width)
    console.print(table)
    for line in cases:
        console.print(line, highlight=False, soft_wrap=True)

    console.print(legend(runs), style="dim", highlight=False)
    for line in workload_lines(runs):
        console.print(line, highlight=False, soft_wrap=True)

    for key, value in extra.items():
        console.print(f"{key}: {value}", highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Exports:
    """The files beside the table: Parquet, and a figure without some load balancers."""

    parquet: Path | None
    figure: Path | None
    leave_out: tuple[str, ...]

    def refuse_impossible(self, scenarios: Iterable[Scenario]) -> None:
        """Raise ClickException before anything runs (`left_out`)."""
        if self.leave_out and not self.figure:
            raise click.UsageError("--leave-out needs --figure: tables have all load balancers")

        with one_line_errors():
            left_out((scenario.balancer for scenario in scenarios), self.leave_out)

    def write(self, runs: Runs) -> None:
        """Write runs to the requested files."""
        if self.parquet:
            write_parquet(runs, self.parquet)

        if self.figure:
            # The import takes half a second: only with --figure.
            from sim.sweeps.pictures import sweep_figure

            data = io.BytesIO()
            with one_line_errors():
                drawn = sweep_figure(runs, self.leave_out)

            drawn.savefig(data, format=self.figure.suffix[1:], dpi=150)
            write_whole(self.figure, data.getvalue())


@click.command(epilog=RESULTS_EXAMPLES)
@click.argument("store", type=FilePath)
@click.option("--json", "as_json", is_flag=True, help="Write the runs to stdout as JSON.")
@csv_option
@parquet_option
@figure_option
@leave_out_option
def results(
    store: Path,
    as_json: bool,
    csv: Path | None,
    parquet: Path | None,
    figure: Path | None,
    leave_out: tuple[str, ...],
) -> None:
    """Show the finished runs in STORE, also while a sweep is running."""
    exports = Exports(parquet, figure, leave_out)
    with one_line_errors():
        with Store(store, create=False) as kept:
            runs, balancers = kept.runs(), kept.balancers()

        if not runs and not as_json:
            raise click.ClickException(f"{store}: no run has finished yet")

        exports.refuse_impossible(scenario for scenario, _ in runs)
        if csv:
            write_csv(csv_rows(runs), csv)

        exports.write(runs)

    # With a file the table is left out; --json still writes to stdout.
    if as_json or not (csv or parquet or figure):
        show(runs, as_json, balancers)
