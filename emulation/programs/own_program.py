"""A load balancer of the user's own: a P4 program in place of ours, and the parts that it needs.

The controller serves it as it serves the load balancer of ours that it is like (`--like`): that
decides its groups (next-hop sets, or destinations as for Ofan), their schedules and settings, and
the hosts' work. The controller fills the tables that it knows by name, and leaves all others alone.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulation.errors import ProgramError
from emulation.programs.program_files import content_digest
from emulation.programs.switch_program import (
    SwitchProgram,
    defines_for,
    has_host_pointers,
    load_program,
    size_of,
)
from fattree.experiment.model import Experiment, OwnProgram, Scenario
from fattree.shape.topology import FatTree
from ofan_p4.bounded import TooLargeError, read_bytes
from ofan_p4.diagnostics import CompileError
from p4src.parts import (
    idle_hook,
    is_whole,
    lacking_part,
    moves_header,
    undefined_macro,
    without_comments,
)

if TYPE_CHECKING:
    from controller.pipeline import Pipeline

# The actions that the controller uses, of the tables that it fills where a program has them.
ACTIONS = {
    "routes": ("to_port", "to_group"),
    "schedule": ("take_port",),
    "uplinks_of": ("weigh",),
    "ecn": ("mark_above", "mark_between"),
    "waypoint": ("unwrap",),
    "hashing": ("multiply_by",),
    "orders": ("reshuffle_after",),
    "quanta": ("set_quanta",),
    "edge_numbers": ("set_edge",),
}


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A user's program, ready to run, and the load balancer that gives it groups and hosts."""

    path: Path
    program: SwitchProgram
    like: str

    @property
    def folder_suffix(self) -> str:
        """Return its part of a results folder's name: its name, and its kind if it is no source."""
        # A .json beside the .p4 that it comes from must not share its folder.
        return self.path.stem if self.path.suffix == ".p4" else self.path.name.replace(".", "_")


def own_program(
    wanted: OwnProgram,
    tree: FatTree,
    macros: tuple[tuple[str, str], ...] = (),
    has_pointers_of_hosts: bool = False,
) -> Loaded:
    """Compile (or read) a program for the switches of a fabric, with macros of the user's.

    Raises CompileError, PlanError and EmulationError as `load_program`, ProgramError where it lacks
    a part that it needs.
    """
    path = Path(wanted.file)
    size = size_of(tree, has_pointers_of_hosts)
    # A notebook runs a program again that has been edited meanwhile.
    content = content_digest(path, defines_for(size, macros=macros))
    try:
        program = load_program(path, size, macros=macros, content=content)
    except CompileError as error:
        if lacking := _lacking(path, macros):
            raise ProgramError(f"{error}\n{path.name} {lacking}") from None

        raise

    check(path.name, program.pipeline)
    refuse_idle_hooks(path, program, {name for name, _ in macros})

    return Loaded(path, program, wanted.like)


def with_own(
    experiment: Experiment, file: Path | None, like: str | None, rivals: tuple[str, ...]
) -> Experiment:
    """Return the experiment with the command line's program in place of its policies, and rivals.

    Without a `file` on the command line, that of the experiment's `[program]` stays, and so does
    its host rule; raises ProgramError without any of them.
    """
    if experiment.host_rule:
        chosen = {"like": like} if like else {}
        rule = experiment.host_rule.model_copy(update=chosen)
        experiment = experiment.model_copy(update={"host_rule": rule})

    if file is not None:
        program = (
            OwnProgram(file=str(file)) if like is None else OwnProgram(file=str(file), like=like)
        )
        return experiment.model_copy(update={"program": program, "policies": rivals})

    if experiment.program is None:
        if like and not experiment.host_rule:
            raise ProgramError("--like needs --program or --host-rule")

        return experiment.model_copy(update={"policies": rivals or experiment.policies})

    program = OwnProgram(file=experiment.program.file, like=like or experiment.program.like)
    return experiment.model_copy(
        update={"program": program, "policies": rivals or experiment.policies}
    )


def program_of(experiment: Experiment) -> Loaded | None:
    """Return an experiment's program of the user's, ready to run, None without a program."""
    if experiment.program is None:
        return None

    loaded = own_program(
        experiment.program,
        experiment.fabric.tree,
        experiment.defines,
        has_host_pointers(experiment),
    )
    refuse_unread([loaded], experiment.defines)

    return loaded


def refuse_unread(programs: Sequence[Loaded], macros: tuple[tuple[str, str], ...]) -> None:
    """Raise ProgramError for a macro of the user's that none of the programs heeds."""
    for name, _ in macros:
        why = [_why_unread(loaded, name, {macro for macro, _ in macros}) for loaded in programs]
        if why and all(why):
            raise ProgramError(why[0])


def _why_unread(own: Loaded, name: str, given: set[str]) -> str:
    """Return why a program does not heed a macro, nothing where it does."""
    macros = own.program.macros
    if name in macros.replaced:
        return f"{own.path.name} defines {name} itself: put #ifndef {name} around it"
    if name not in macros.unread:
        return ""

    close = difflib.get_close_matches(name.upper(), sorted({*macros.known} - given), n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"{own.path.name} does not use {name}{meant}"


def _lacking(path: Path, macros: tuple[tuple[str, str], ...]) -> str:
    """Return which part a program that does not compile has not got, empty where it has all."""
    source = _source(path)
    # A file that cannot be read lacks nothing else.
    if not path.is_file() or is_whole(source):
        return ""

    defined = {name for name, _ in macros}
    return (
        lacking_part(source, defined)
        or idle_hook(source, defined)
        or undefined_macro(source, defined)
    )


def refuse_idle_hooks(path: Path, program: SwitchProgram, macros: set[str]) -> None:
    """Raise ProgramError where a program has a hook that is not announced, or moves the header.

    `macros` are those of the command line.
    """
    source = _source(path)
    if problem := idle_hook(source, macros):
        raise ProgramError(f"{path.name} {problem}")

    if program.edge_header_bytes and moves_header(source):
        raise ProgramError(
            f"{path.name} calls setValid or setInvalid of edge_header: the switch puts it on at the"
            " source's edge and takes it off at the destination's, so that links count its bytes"
        )


def _source(path: Path) -> str:
    """Return the text of a program without its comments, empty where it is no P4 source."""
    if path.suffix != ".p4":
        return ""

    try:
        return without_comments(read_bytes(path).decode(errors="replace"))
    except (OSError, TooLargeError):
        return ""


def check(name: str, pipeline: "Pipeline") -> None:
    """Raise ProgramError where a program lacks a table without which no packet finds its way."""
    tables = pipeline.tables
    if "routes" not in tables:
        raise ProgramError(
            f"{name} has no table routes, which the controller fills:"
            ' end it with #include "switch.p4"'
        )

    if not tables.keys() & {"schedule", "uplinks_of"}:
        raise ProgramError(
            f"{name} has neither a table schedule nor uplinks_of,"
            " so that it cannot know the ports of a group: its LoadBalancer must apply"
            " Schedule (schedule.p4) or Uplinks (uplinks.p4)"
        )

    # A table may be left out, but a table with the name of a table of ours is filled as ours is.
    for table, actions in ACTIONS.items():
        for action in actions:
            if table in tables and action not in tables[table].actions:
                raise ProgramError(
                    f"{name}: its table {table} has no action {action}, which the controller uses"
                )


def alone(experiment: Experiment, own: Loaded) -> Experiment:
    """Return the experiment with the program's plan as its only load balancer."""
    return experiment.alone(own.like)


def runs_alone(experiment: Experiment, own: Loaded) -> Iterator[Scenario]:
    """Yield the runs of the program, which name it."""
    for scenario in alone(experiment, own).scenarios():
        yield scenario.model_copy(update={"program": own.path.name})
