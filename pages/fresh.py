"""Check of a kept report against the model of today: some of its runs, run again.

    python -m pages.fresh docs/report/data docs/beyond/data --runs 20

A report's data name the model that made them. Another model makes them stale, and the same model
must give every number again, to the last digit. The seed chooses the runs, so that a test may take
others for every commit.

    python -m pages.fresh docs/report/data docs/beyond/data --runs 150 --keep

After a change of the model's code that alters no result: where all drawn runs are equal, the code
keeps the model's name (`sim.sweeps.model_version`).
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import click

from fattree.experiment.model import Scenario
from fattree.records.record import Record
from fattree.texts.shipped import EXPERIMENTS
from ofan_p4.standard_output import StdoutError, guarded_stdout
from reproduction.report.contents import EDITIONS, figure
from reproduction.report.figure import Figure, Measured
from reproduction.report.stored import MadeWith, stored
from sim.sweeps.cost import packet_hops
from sim.sweeps.model_version import keep_model, model_version
from sim.sweeps.sweeping import simulate

# The cost of a run is no result of it.
COSTS = {"cpu_s", "max_rss_bytes"}
# A run of a tenth of a second: a permutation of 1 MiB on 128 hosts has 0.4 million.
CHEAP = 2_000_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A run of a kept report."""

    figure: Figure
    scenario: Scenario
    record: Record

    def __str__(self) -> str:
        return f"{self.figure.name}, {self.scenario.name}, {self.scenario.policy}, seed " + str(
            self.scenario.seed
        )


def model_of(folder: Path) -> str:
    """Return the model that a report's data name."""
    return MadeWith.read(folder).environment.get("model", "none")


def stale(folder: Path) -> str | None:
    """Return how a report's data name another model than today's, None where they name it."""
    made = model_of(folder)
    now = model_version()[: len(made)]
    return None if made == now else f"{folder}: made with model {made}, which is {now} by now"


def kept_runs(folder: Path) -> list[Kept]:
    """Return the runs of a report's data; raises StoreError."""
    made = MadeWith.read(folder)
    figures = [figure(name) for name in EDITIONS[made.edition].figures]
    figure_data = stored(figures, made, folder)
    return [
        Kept(shown, _found(scenario), record)
        for shown in figures
        for scenario, record in zip(
            figure_data[shown.name].scenarios, figure_data[shown.name].records, strict=True
        )
    ]


def _found(scenario: Scenario) -> Scenario:
    """Return the scenario with the path of its file, of which data have the name only."""
    if not scenario.collective.file:
        return scenario

    file = str(EXPERIMENTS / scenario.collective.file)
    collective = scenario.collective.model_copy(update={"file": file})
    return scenario.model_copy(update={"collective": collective})


def drawn(runs: Sequence[Kept], count: int, seed: int, most_hops: int = CHEAP) -> list[Kept]:
    """Return some of the runs that cost little.

    They are as many of each figure as of any other, as far as that goes.
    """
    rng = Random(seed)
    by_figure: dict[str, list[Kept]] = {}
    for run in runs:
        by_figure.setdefault(run.figure.name, []).append(run)

    names = sorted(by_figure)
    rng.shuffle(names)
    # A run's cost is asked when its turn comes: to ask of all would cost more than to run some.
    cheap = [
        (
            run
            for run in rng.sample(figure_runs, len(figure_runs))
            if packet_hops(run.scenario) <= most_hops
        )
        for figure_runs in (by_figure[name] for name in names)
    ]
    return list(islice(_in_turn(cheap), count))


def _in_turn(sequences: Sequence[Iterator[Kept]]) -> Iterator[Kept]:
    """Return the first of each, the second of each, and so on, as far as each goes."""
    while sequences:
        rest = []
        for runs in sequences:
            if (run := next(runs, None)) is not None:
                yield run
                rest.append(runs)

        sequences = rest


def again(run: Kept) -> Iterator[str]:
    """Run it again; return every value that is another one now."""
    today = run.figure.measure(run.scenario) if run.figure.measure else simulate(run.scenario)
    # Fields that are counted only since the run was kept have no value of then.
    for name in Record.model_fields.keys() & run.record.model_fields_set:
        before, now = getattr(run.record, name), getattr(today, name)
        if name not in COSTS | {"name"} and before != now:
            yield f"{run}: {name} is {now}, was {before}"

    if isinstance(today, Measured) and isinstance(run.record, Measured):
        for name, values in today.values.items():
            if run.record.values.get(name) != values:
                yield f"{run}: {name} is not what it was"


@click.command()
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path, file_okay=False)
)
@click.option("--runs", default=20, show_default=True, help="How many, of each report.")
@click.option("--seed", default=1, show_default=True, help="Which are drawn.")
@click.option("--keep", is_flag=True, help="Where all are equal, today's code keeps the model.")
def main(folders: Sequence[Path], runs: int, seed: int, keep: bool) -> None:
    """Compare some runs of kept reports with the same runs of today."""
    wrong = [line for line in map(stale, folders) if line and not keep]
    chosen = [run for folder in folders for run in drawn(kept_runs(folder), runs, seed)]
    for run in chosen:
        wrong += list(again(run))

    click.echo(f"{len(chosen)} runs again, {len(wrong)} differences", err=True)
    if keep and not wrong:
        wrong += _kept_name(folders, len(chosen))

    for line in wrong:
        click.echo(line)

    sys.exit(1 if wrong else 0)


def _kept_name(folders: Sequence[Path], runs: int) -> list[str]:
    """Let today's code keep the model of reports; return why it cannot."""
    model, *more_models = sorted({model_of(folder) for folder in folders})
    if more_models:
        return [f"the reports name several models: {', '.join((model, *more_models))}"]
    if not runs:
        return ["no run to compare"]

    try:
        keep_model(model, runs)
    except ValueError as error:
        return [str(error)]

    return []


if __name__ == "__main__":
    try:
        with guarded_stdout():
            main()
    except StdoutError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
