"""Run an experiment, one scenario after the other, and leave its results in a folder."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from emulation.outcomes.folder import complete, record, write_folder
from emulation.outcomes.outcome import Outcome, label_of
from emulation.programs.switch_program import SwitchProgram
from emulation.taps import prefix_of, tap_named
from emulation.virtual.capture import capture_files
from emulation.virtual.fabric import VirtualFabric
from emulation.virtual.switch_state import state_of
from fattree.experiment.model import Experiment, Scenario
from fattree.records.record import Record
from fattree.units import time_unit
from sim.sweeps.cluster import connected
from sim.sweeps.progress import Lines

VIRTUAL = "virtual"
# Hosts of a network that takes more than seconds to build.
LARGE = 1_000
# Gets the share of the traffic that has arrived, from 0 to 1.
ProgressCall = Callable[[float], None]
Runner = Callable[[Scenario, ProgressCall], Outcome]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """An experiment's runs, in the order of its scenarios."""

    experiment: Experiment
    outcomes: tuple[Outcome, ...]
    records: tuple[Record, ...]

    @property
    def runs(self) -> tuple[tuple[Scenario, Record], ...]:
        """Return each run's scenario, which names its program, with its record."""
        scenarios = (
            outcome.scenario.model_copy(update={"program": outcome.own_program or None})
            for outcome in self.outcomes
        )
        return tuple(zip(scenarios, self.records, strict=True))


class Reporter:
    """Progress on stderr: a bar for the experiment and a bar for the present run.

    Without a terminal there are rare lines instead of bars.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lines: Lines | None = None
        self._total = 0
        self._all: TaskID | None = None
        self._run: TaskID | None = None
        self._done = 0

    @contextmanager
    def experiment(self, experiment: Experiment) -> Iterator[None]:
        """Show how many runs of an experiment are done."""
        self._total = total = experiment.runs
        self._done = 0
        if self._progress.disable:
            self._lines = Lines(experiment.name)
            self._lines(0, total)
            self._lines.watch(0.0)

        # The same bar serves all runs; it is hidden until the first run starts.
        self._all = self._progress.add_task(experiment.name, total=total)
        self._run = self._progress.add_task("", total=1, visible=False)
        yield
        self._progress.update(self._all, completed=total)
        self._progress.remove_task(self._run)

    def start(self, scenario: Scenario) -> None:
        """Show that a run starts."""
        assert self._run is not None
        description = f"{scenario.balancer_label}, seed {scenario.seed}"
        self._progress.reset(self._run, description=description, visible=True)
        # Of 8,192 hosts it takes two minutes, in which nothing else is there to report.
        if self._lines and scenario.tree.hosts >= LARGE:
            click.echo(f"{description}: filling the tables of switches first", err=True)

    def advance(self, fraction: float) -> None:
        """Show the share of the current run's traffic that has arrived."""
        assert self._run is not None and self._all is not None
        self._progress.update(self._run, completed=fraction)
        self._progress.update(self._all, completed=self._done + fraction)
        if self._lines:
            self._lines(self._done, self._total)
            self._lines.watch((self._done + fraction) / self._total)

    def finish(self, record: Record) -> None:
        """Print the result of a run."""
        self.advance(1.0)
        self._done += 1
        unit, unit_ps = time_unit([record.cct_ps])
        # A run of a packet or two may take no measurable time.
        self._progress.console.print(
            f"  {record.name} ({record.network}), {label_of(record.policy)}, seed {record.seed}:"
            f" CCT {record.cct_ps / unit_ps:.3f} {unit}; {record.packet_hops:,} packet-hops in"
            f" {record.cpu_s:.1f} s of CPU",
            soft_wrap=True,
        )


@contextmanager
def reporting() -> Iterator[Reporter]:
    """Yield a reporter that writes to stderr."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )

    # stdout is for results; without a terminal a bar would only cost time.
    console = Console(file=sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield Reporter(progress)


# The same line again would say nothing new.
@cache
def _say(line: str) -> None:
    click.echo(line, err=True)


def virtually(
    program: SwitchProgram | None = None,
    *,
    has_state: bool = False,
    has_digest: bool = True,
    ports: Sequence[str] = (),
    folder: Path = Path(),
) -> Runner:
    """Return a function that runs a scenario in virtual time.

    If machine code cannot run the program, the reason goes to stderr, once. With `has_state`,
    outcomes have the registers and counters at the end, with `has_digest` the hash of all events.
    Packets of `ports` go to files in `folder`; raises UnsupportedError for unknown ports.
    """

    def run(scenario: Scenario, on_progress: ProgressCall) -> Outcome:
        taps = [tap_named(scenario.tree, port) for port in ports]
        with capture_files(taps, folder, prefix_of(scenario, program is not None)) as files:
            network = VirtualFabric(scenario, program, has_digest=has_digest, files=files)
            if network.why_python:
                _say(f"the P4 program runs as Python: {network.why_python}")

            outcome = network.run(on_progress=on_progress)

        return replace(outcome, state=state_of(network)) if has_state else outcome

    return run


def run_experiment(
    experiment: Experiment,
    reporter: Reporter,
    run: Runner | None = None,
    network: str = VIRTUAL,
    *,
    jobs: int = 1,
) -> Finished:
    """Run all scenarios, in virtual time by default; raises the errors of `run`."""
    run = run or virtually()
    outcomes = []
    records = []

    with reporter.experiment(experiment):
        for outcome in in_order(run, list(experiment.scenarios()), reporter, jobs):
            outcomes.append(outcome)
            records.append(record(outcome, network))
            reporter.finish(records[-1])

    return Finished(experiment, tuple(outcomes), tuple(records))


def in_order(
    run: Callable[[Scenario, ProgressCall], Result],
    scenarios: Sequence[Scenario],
    reporter: Reporter,
    jobs: int,
) -> Iterator[Result]:
    """Yield the result of each scenario, in their order; raises the errors of `run`.

    With `jobs` above 1 so many processes run them, and report no progress during a run.
    """
    if jobs == 1 or len(scenarios) < 2:
        for scenario in scenarios:
            reporter.start(scenario)
            yield run(scenario, reporter.advance)

        return

    # Each process would compile the kernels. Importing them takes half a second.
    from emulation.virtual import simulated

    simulated.prepare()
    with connected(min(jobs, len(scenarios)), None) as client:
        # Not pure: Dask must not reuse an earlier result.
        futures = client.map(_unwatched, [run] * len(scenarios), scenarios, pure=False)
        for scenario, future in zip(scenarios, futures, strict=True):
            reporter.start(scenario)
            yield future.result()


def _unwatched(run: Callable[[Scenario, ProgressCall], Result], scenario: Scenario) -> Result:
    return run(scenario, lambda _fraction: None)


def keep(finished: Finished, folder: Path) -> Path | None:
    """Write the results folder with plots, completely or not at all; raises EmulationError.

    Return the first plot, None where nothing can be drawn.
    """
    from emulation.outcomes.plots import experiment_figures, save

    # If a figure cannot be drawn, the folder does not change.
    with complete(folder) as fresh:
        write_folder(fresh, finished.experiment, finished.outcomes, finished.records)
        drawn = [
            save(figure, fresh, stem)[0].name
            for stem, figure in experiment_figures(finished.outcomes, finished.records)
        ]

    return folder / drawn[0] if drawn else None
