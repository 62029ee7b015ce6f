"""`ofan results compare`: two results folders side by side, and their differences."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
from pydantic import ValidationError

from emulation.command_line import csv_option, one_line_errors
from emulation.errors import EmulationError
from emulation.outcomes.folder import EXPERIMENT, RESULTS
from emulation.outcomes.outcome import label_of
from fattree.errors import ExperimentError
from fattree.experiment.model import Experiment
from fattree.files.parquet import ParquetError, read_parquet
from fattree.files.text_file import read_bytes
from fattree.records.record import FLOW_TIMES, PERCENTILES, Record
from fattree.records.tables import Folding, terminal, write_csv
from fattree.texts.experiment_file import load_experiment
from fattree.units import PS_PER_US, time_unit

EXAMPLES = """
\b
Examples:
  ofan results compare results/demo results/demo_2
  ofan results compare results/near results/far --force   (they differ)
"""
MICROSECONDS = "(µs)"
# A column of a record, its name for people, and the unit of this name in the record's unit.
METRICS = (
    ("cct_ps", f"CCT {MICROSECONDS}", PS_PER_US),
    ("increase", "over bound (%)", 0.01),
    *(
        (name, f"{text} {MICROSECONDS}", PS_PER_US)
        for name, text in zip(PERCENTILES, FLOW_TIMES, strict=True)
    ),
    ("max_queue_packets", "longest queue (packets)", 1),
    ("mean_queue_packets", "mean queue (packets)", 1),
    ("dropped", "drops", 1),
    ("lost_to_failure", "lost", 1),
    ("transmissions", "transmissions", 1),
)
COUNTS = ("drops", "lost", "transmissions")
# Rows are matched by load balancer and seed.
NO_SETTING = {"name", "policies", "program", "host_rule", "seeds", "seed"}
MANY = 12
# Ten load balancers with ten thousand seeds; a hostile file may claim millions.
MOST_ROWS = 100_000
LONGEST_NAME = 200
# The largest number of other folders that an error suggests.
MOST_HINTS = 5


@dataclass(frozen=True, slots=True)
class Kept:
    """A results folder: its experiment, and its records by load balancer and network."""

    folder: Path
    experiment: Experiment
    records: Mapping[str, Mapping[str, Sequence[Record]]]


@dataclass(frozen=True, slots=True)
class Compared:
    """Means of one metric over the seeds that both folders have; None: not reported."""

    network: str
    policy: str
    seeds: int
    metric: str
    first: float | None
    second: float | None
    difference: float | None


def read(folder: Path) -> Kept:
    """Read a results folder; raises EmulationError, one line, for another folder."""
    for name in (RESULTS, EXPERIMENT):
        # A pipe of this name would block the read.
        if not (folder / name).is_file():
            inner = sorted(path.parent.name for path in folder.glob(f"*/{RESULTS}"))[:MOST_HINTS]
            hint = f" (results are in {', '.join(inner)} below it)" if inner else ""
            raise EmulationError(f"{folder} is no results folder: there is no file {name}{hint}")

    try:
        ((frame, _),) = read_parquet([read_bytes(folder / RESULTS, ParquetError)])
        if len(frame) > MOST_ROWS:
            raise ParquetError(f"{len(frame):,} runs, more than {MOST_ROWS:,}")

        experiment = load_experiment(folder / EXPERIMENT, takes_program=True)
        records = [Record.model_validate(row) for row in frame.iter_rows(named=True)]
    except ValidationError as error:
        wrong = error.errors()[0]
        raise EmulationError(f"{folder}: {wrong['loc'][0]}: {wrong['msg']}") from None
    except (ExperimentError, ParquetError) as error:
        raise EmulationError(f"{folder}: {str(error).splitlines()[0]}") from None

    by_policy: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        _refuse_odd(record, folder)
        by_policy.setdefault(record.policy, {}).setdefault(record.network, []).append(record)

    return Kept(folder, experiment, by_policy)


def _refuse_odd(record: Record, folder: Path) -> None:
    """Raise EmulationError for a run that none of our networks has written."""
    values = [getattr(record, name) for name, _, _ in METRICS]
    if not all(math.isfinite(value) for value in values if value is not None):
        raise EmulationError(f"{folder}: a run has a value that is no finite number")

    for name in (record.policy, record.network):
        if not (name.isprintable() and 0 < len(name) <= LONGEST_NAME):
            raise EmulationError(f"{folder}: a run has no valid name: {name[:LONGEST_NAME]!r}")


def settings(experiment: Experiment) -> dict[str, str]:
    """Return an experiment's keys with dots, without the keys that name runs."""

    def flat(table: dict[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield prefix + key, json.dumps(value)

    return dict(flat(experiment.model_dump(mode="json", exclude=NO_SETTING)))


def different_settings(first: Experiment, second: Experiment) -> list[str]:
    """Return the differences of two experiments: `fabric.k: 4, 8`."""
    first_settings, second_settings = settings(first), settings(second)
    return [
        f"{key}: {first_settings.get(key, 'none')}, {second_settings.get(key, 'none')}"
        for key in dict.fromkeys((*first_settings, *second_settings))
        if first_settings.get(key) != second_settings.get(key)
    ]


def compared(first: Kept, second: Kept) -> list[Compared]:
    """Return every metric of the load balancers and seeds that both folders have.

    Raises EmulationError if they have no run in common.
    """
    rows = [
        row
        for policy, networks in first.records.items()
        for network in networks
        for row in _rows(first, second, network, policy)
    ]
    if not rows:
        raise EmulationError(
            f"{first.folder} and {second.folder} have no load balancer and seed in common"
        )

    return rows


def _rows(first: Kept, second: Kept, network: str, policy: str) -> Iterator[Compared]:
    # If each folder has one network, the same load balancer is compared across networks.
    networks = second.records.get(policy, {})
    second_network = network if network in networks else next(iter(networks), network)
    both = first.records[policy][network], networks.get(second_network, ())
    first_seeds, second_seeds = ({record.seed for record in runs} for runs in both)
    seeds = first_seeds & second_seeds
    ours, theirs = ([record for record in runs if record.seed in seeds] for runs in both)
    if not seeds:
        return

    for name, text, scale in METRICS:
        a, b = (_mean(runs, name, scale) for runs in (ours, theirs))
        difference = None if a is None or b is None else b - a
        where = network if second_network == network else f"{network}, {second_network}"
        yield Compared(where, policy, len(seeds), text, a, b, difference)


def _mean(runs: Sequence[Record], name: str, unit: float) -> float | None:
    # Without layers nothing measured the queues, and 0 is no result.
    if name == "max_queue_packets" and not all(run.max_queue_layers for run in runs):
        return None

    values = [getattr(run, name) for run in runs]
    return None if None in values else sum(values) / len(values) / unit


def in_one_unit(rows: Sequence[Compared]) -> list[Compared]:
    """Return rows with all times in the unit of other tables (`time_unit`)."""
    unit, unit_ps = time_unit(
        value * PS_PER_US
        for row in rows
        if row.metric.endswith(MICROSECONDS)
        for value in (row.first, row.second)
        if value is not None
    )

    def told(row: Compared) -> Compared:
        scale = unit_ps / PS_PER_US
        first, second, difference = (
            None if value is None else value / scale
            for value in (row.first, row.second, row.difference)
        )
        metric = row.metric.replace(MICROSECONDS, f"({unit})")
        return replace(row, metric=metric, first=first, second=second, difference=difference)

    return [told(row) if row.metric.endswith(MICROSECONDS) else row for row in rows]


def table(first: Kept, second: Kept, rows: Sequence[Compared]) -> Folding:
    """Return the table: a row per metric, a column per folder."""
    names = (str(first.folder), str(second.folder))
    columns = ("load balancer", "metric", *names, "difference", "in %", "seeds")
    folding = Folding(*columns, keys=2, texts=(0, 1))
    shown = in_one_unit(rows)
    for before, row in zip((None, *shown), shown, strict=False):
        is_first = before is None or (before.network, before.policy) != (row.network, row.policy)
        share = f"{100 * row.difference / row.first:+.1f}" if row.difference and row.first else "-"
        folding.add_row(
            f"{label_of(row.policy)} ({row.network})" if is_first else "",
            row.metric,
            _number(row, row.first),
            _number(row, row.second),
            "equal" if row.difference == 0 else _number(row, row.difference, "+"),
            share,
            str(row.seeds) if is_first else "",
        )

    return folding


def alone(first: Kept, second: Kept) -> Iterator[str]:
    """Yield the load balancers that only one folder has."""
    for kept, peer in ((first, second), (second, first)):
        if missing := [label_of(name) for name in kept.records if name not in peer.records]:
            yield f"only in {kept.folder}: {', '.join(missing)}"


def _number(row: Compared, value: float | None, sign: str = "") -> str:
    # Counts of one seed are whole numbers; their means over seeds may not be.
    places = 0 if row.metric in COUNTS and row.seeds == 1 else 2
    return "not reported" if value is None else f"{value:{sign},.{places}f}"


@click.group(no_args_is_help=True)
def results() -> None:
    """Compare existing results."""


@results.command(epilog=EXAMPLES)
@click.argument("first", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("second", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--force", is_flag=True, help="Compare experiments that differ, and list the differences."
)
@click.option("--json", "as_json", is_flag=True, help="Write the rows to stdout as JSON.")
@csv_option
def compare(first: Path, second: Path, force: bool, as_json: bool, csv: Path | None) -> None:
    """Show two results folders side by side, metric by metric."""
    with one_line_errors():
        kept_first, kept_second = read(first), read(second)
        differing = different_settings(kept_first.experiment, kept_second.experiment)
        if differing and not force:
            raise EmulationError(
                f"{first} and {second} are different experiments ({'; '.join(differing[:MANY])}):"
                " --force compares them anyway"
            )

        rows = compared(kept_first, kept_second)

    if csv:
        write_csv([asdict(row) for row in rows], csv)
    if as_json:
        plain = [asdict(row) for row in rows]
        click.echo(json.dumps({"settings": differing, "rows": plain}, indent=2))
    if as_json or csv:
        return

    for line in differing:
        click.echo(f"different: {line}")

    terminal().print(table(kept_first, kept_second, rows))
    for line in alone(kept_first, kept_second):
        click.echo(line)
