"""Run an experiment, one scenario after the other, and leave its results in a folder."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from emulation.outcome import Outcome
from emulation.programs import SwitchProgram
from emulation.results import record, write_folder
from emulation.virtual_fabric import VirtualFabric
from fabric.experiment import Experiment, Scenario
from fabric.record import Record

NETWORK = "virtual"
PS_PER_US = 10**6


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """An experiment's runs, in the order of its scenarios."""

    experiment: Experiment
    outcomes: tuple[Outcome, ...]
    records: tuple[Record, ...]


class Reporter:
    """Says on stderr what runs: a bar for the experiment and one for the present run; nothing where nobody looks."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._run: TaskID | None = None

    @contextmanager
    def experiment(self, experiment: Experiment) -> Iterator[None]:
        """Show how many runs of an experiment are done."""
        total = len(experiment.policies) * experiment.seeds
        task = self._progress.add_task(experiment.name, total=total)
        self._run = self._progress.add_task("", total=1, visible=False)
        yield
        self._progress.update(task, completed=total)
        self._progress.remove_task(self._run)

    def start(self, scenario: Scenario) -> None:
        """Show that a run starts."""
        assert self._run is not None
        self._progress.reset(self._run, description=f"{scenario.scheme.label}, seed {scenario.seed}", visible=True)

    def advance(self, fraction: float) -> None:
        """Show how much of the present run's traffic has arrived."""
        assert self._run is not None
        self._progress.update(self._run, completed=fraction)

    def finish(self, outcome: Outcome) -> None:
        """Say how a run ended."""
        self._progress.advance(self._progress.task_ids[0])
        rate = outcome.hops / max(outcome.cpu_seconds, 1e-9)
        self._progress.console.print(
            f"  {outcome.scenario.scheme.label}, seed {outcome.scenario.seed}: CCT {outcome.cct_ps / PS_PER_US:.3f} µs; "
            f"{outcome.hops:,} switch-packets, {rate:,.0f} a second"
        )


@contextmanager
def reporting() -> Iterator[Reporter]:
    """Yield a reporter that writes to stderr."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Reporter(progress)


def run_experiment(experiment: Experiment, reporter: Reporter, program: SwitchProgram | None = None) -> Finished:
    """Run all scenarios; raises what `VirtualFabric` raises, before anything has run where it can be known."""
    outcomes = []
    with reporter.experiment(experiment):
        for scenario in experiment.scenarios():
            reporter.start(scenario)
            outcomes.append(VirtualFabric(scenario, program).run(on_progress=reporter.advance))
            reporter.finish(outcomes[-1])
    return Finished(experiment, tuple(outcomes), tuple(record(outcome, NETWORK) for outcome in outcomes))


def keep(finished: Finished, folder: Path) -> None:
    """Write the results folder, plots included."""
    from emulation.plots import experiment_figures, save

    write_folder(folder, finished.experiment, finished.outcomes, finished.records)
    for stem, figure in experiment_figures(finished.outcomes, finished.records):
        save(figure, folder, stem)
