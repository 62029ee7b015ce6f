"""Bring your own load balancer: a P4 program of the user's in place of ours, and what it must offer to run at all.

The controller serves it as it serves one of ours that it is like (`--like`): that decides its groups (next-hop sets, or
destinations as for Ofan), their schedules and settings, and what the hosts do. The controller fills the tables that it
knows by name, and leaves all others alone.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from controller.pipeline import Pipeline
from emulation.errors import ProgramError
from emulation.experiment_run import Finished, Reporter, Runner, run_experiment
from emulation.programs import SwitchProgram, load_program
from fabric.experiment import Experiment
from fabric.policies import POLICIES, Chooser

LIKE = tuple(slug for slug, row in POLICIES.items() if row.chooser is not Chooser.WAYPOINT)
DEFAULT_LIKE = "simple_rr"
Runners = Callable[[SwitchProgram | None], Runner]
ACTIONS = {
    "routes": ("to_port", "to_group"),
    "schedule": ("take_port",),
    "uplinks_of": ("weigh",),
    "ecn": ("mark_above",),
    "waypoint": ("unwrap",),
    "hashing": ("multiply_by",),
    "orders": ("reshuffle_after",),
    "quanta": ("set_quanta",),
}


@dataclass(frozen=True, slots=True, eq=False)
class OwnProgram:
    """A user's program, ready to run, and the load balancer whose groups and hosts it gets."""

    path: Path
    program: SwitchProgram
    like: str


def own_program(path: Path, like: str, uplinks: int) -> OwnProgram:
    """Compile (or read) a program for switches of so many uplinks.

    Raises CompileError, PlanError and EmulationError as `load_program`, ProgramError where it lacks what it needs.
    """
    program = load_program(path, uplinks)
    check(path.name, program.pipeline)
    return OwnProgram(path, program, like)


def check(name: str, pipeline: Pipeline) -> None:
    """Raise ProgramError where a program has not the tables without which no packet can find its way."""
    tables = pipeline.tables
    if "routes" not in tables:
        raise ProgramError(f'{name} has no table routes, which the controller fills: end it with #include "switch.p4"')
    if not tables.keys() & {"schedule", "uplinks_of"}:
        raise ProgramError(
            f"{name} has neither a table schedule nor uplinks_of, so that it cannot know the ports of a group:"
            " its LoadBalancer must apply Schedule (schedule.p4) or Uplinks (uplinks.p4)"
        )
    for table, actions in ACTIONS.items():
        for action in actions:
            if table in tables and action not in tables[table].actions:
                raise ProgramError(f"{name}: its table {table} has no action {action}, which the controller uses")


def runs_of(runner: Runner, own: OwnProgram) -> Runner:
    """Return a runner whose outcomes are called by the program's file name."""
    return lambda scenario, on_progress: replace(runner(scenario, on_progress), own_program=own.path.name)


def run_beside(
    experiment: Experiment, own: OwnProgram, rivals: tuple[str, ...], runners: Runners, reporter: Reporter, network: str
) -> Finished:
    """Run a user's program, then load balancers of ours, on one experiment; raises what the network raises."""
    mine = run_experiment(alone(experiment, own), reporter, runs_of(runners(own.program), own), network)
    if not rivals:
        return mine
    ours = run_experiment(experiment.model_copy(update={"policies": rivals}), reporter, runners(None), network)
    return Finished(ours.experiment, mine.outcomes + ours.outcomes, mine.records + ours.records)


def alone(experiment: Experiment, own: OwnProgram) -> Experiment:
    """Return the experiment with the program's plan as its only load balancer."""
    return experiment.model_copy(update={"policies": (own.like,)})


def keep_beside(finished: Finished, own: OwnProgram, folder: Path) -> Path:
    """Write the program and the picture of the comparison into a results folder; return the PNG."""
    from emulation.comparison_plots import program_figure
    from emulation.plots import save

    copy = folder / own.path.name
    if not (copy.exists() and copy.samefile(own.path)):
        shutil.copyfile(own.path, copy)
    return save(program_figure(finished.outcomes, finished.records), folder, "comparison")[0]
