"""Runs of the user's own load balancer and of Ofan's (`--program`, `--policies`).

The stored experiment names the program in a table `[program]`, and the results folder has its
files, so that `ofan emulate results/NAME/experiment.toml` runs it again.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from emulation.commands.experiment_run import (
    Finished,
    ProgressCall,
    Reporter,
    Runner,
    run_experiment,
)
from emulation.outcomes.outcome import Outcome
from emulation.programs.own_program import Loaded, alone
from emulation.programs.program_files import files_of
from emulation.programs.switch_program import SwitchProgram
from fattree.experiment.model import Experiment, OwnProgram, Scenario

Runners = Callable[[SwitchProgram | None], Runner]


def folder_suffixes(experiment: Experiment, loaded: Loaded | None) -> Iterator[str]:
    """Yield the parts of the results folder's name that stand for the user's files."""
    if loaded:
        yield loaded.folder_suffix
        for name, value in experiment.defines:
            yield re.sub(r"\W", "_", f"{name}_{value}")

    if experiment.host_rule:
        yield Path(experiment.host_rule.file).stem

    if experiment.agent_packet:
        yield Path(experiment.agent_packet.file).stem


def runs_of(runner: Runner, loaded: Loaded) -> Runner:
    """Return a runner that gives its outcomes the program's file name."""

    def run(scenario: Scenario, on_progress: ProgressCall) -> Outcome:
        mine = scenario.model_copy(update={"program": loaded.path.name})
        return replace(runner(scenario, on_progress), own_program=mine.own_name)

    return run


def run_beside(
    experiment: Experiment,
    loaded: Loaded,
    runners: Runners,
    reporter: Reporter,
    network: str,
    *,
    jobs: int = 1,
) -> Finished:
    """Run a user's program, then the experiment's load balancers; raises the network's errors.

    The returned experiment names the program by its file's name, as in the results folder.
    """
    # The file's path on this machine means nothing on another machine.
    kept = experiment.model_copy(
        update={"program": OwnProgram(file=loaded.path.name, like=loaded.like)}
    )
    mine = run_experiment(
        alone(experiment, loaded),
        reporter,
        runs_of(runners(loaded.program), loaded),
        network,
        jobs=jobs,
    )
    if not experiment.policies:
        return replace(mine, experiment=kept)

    ours = run_experiment(experiment.without_rule(), reporter, runners(None), network, jobs=jobs)
    return Finished(kept, mine.outcomes + ours.outcomes, mine.records + ours.records)


def keep_beside(finished: Finished, loaded: Loaded, folder: Path) -> Path:
    """Write the program and the picture of the comparison into a results folder; return the PNG."""
    from emulation.outcomes.comparison_plots import program_figure
    from emulation.outcomes.plots import save

    for name in files_of(loaded.path, loaded.program.included):
        source = loaded.path.parent / name
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)

        # The program may already be in the results folder: an experiment that runs again.
        if not (copy.exists() and copy.samefile(source)):
            shutil.copyfile(source, copy)

    return save(program_figure(finished.outcomes, finished.records), folder, "comparison")[0]
