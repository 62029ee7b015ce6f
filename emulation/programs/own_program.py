"""A load balancer of the user's own: a P4 program in place of ours, and the parts that it needs.

The controller serves it as it serves the load balancer of ours that it is like (`--like`): that
decides its groups (next-hop sets, or destinations as for Ofan), their schedules and settings, and
the hosts' work. The controller fills the tables that it knows by name, and leaves all others alone.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.pipeline import Pipeline
from emulation.errors import ProgramError
from emulation.programs.switch_program import (
    SwitchProgram,
    has_host_pointers,
    load_program,
    size_of,
)
from fattree.experiment.model import Experiment, OwnProgram, Scenario
from fattree.shape.topology import FatTree
from ofan_p4.bounded import TooLargeError, read_bytes
from ofan_p4.diagnostics import CompileError

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
    try:
        program = load_program(path, size_of(tree, has_pointers_of_hosts), macros=macros)
    except CompileError as error:
        if lacking := _lacking(path):
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


# The parts of a user's program (docs/your-own-load-balancer.md), and the purpose of each.
PARTS = {
    r'#\s*include\s*[<"]fabric\.p4[>"]': 'lacks #include "fabric.p4": headers and metadata',
    r"\bcontrol\s+LoadBalancer\b": "has no control LoadBalancer, which chooses the port",
    r'#\s*include\s*[<"]switch\.p4[>"]': 'lacks #include "switch.p4" at its end: all the rest',
}


# The hooks of programs with a header between edges: the macro that announces a control, and the
# control's purpose.
HOOKS = {
    "EDGE_HEADER": ("Feedback", "reads the header at the destination's edge"),
    "EACH_LINK": ("EachLink", "changes the header at each switch before that"),
}


def _lacking(path: Path) -> str:
    """Return which part a program that does not compile has not got, empty where it has all."""
    source = _source(path)

    # A program that instantiates a switch is a whole program, without parts of ours.
    if re.search(r"\bV1Switch\b", source):
        return ""

    for macro, (control, purpose) in HOOKS.items():
        if _defines(macro, source) and not _declares(control, source):
            return f"defines {macro}, but has no control {control}, which {purpose}"

    return next((said for part, said in PARTS.items() if not re.search(part, source)), "")


def refuse_idle_hooks(path: Path, program: SwitchProgram, macros: set[str]) -> None:
    """Raise ProgramError where a program has a hook that is not announced, or moves the header.

    `macros` are those of the command line.
    """
    source = _source(path)
    for macro, (control, purpose) in HOOKS.items():
        # A program may have a control of that name for itself: it applies an instance of it.
        is_applied = re.search(rf"\b{control}\s*\(\s*\)\s*\w+\s*;", source)
        is_announced = macro in macros or _defines(macro, source)
        if _declares(control, source) and not (is_applied or is_announced):
            raise ProgramError(
                f"{path.name} has a control {control}, which {purpose}, but no {macro}:"
                f' write #define {macro} before #include "fabric.p4"'
            )

    if program.edge_header_bytes and re.search(r"\bedge_header\s*\.\s*set(Inv|V)alid\b", source):
        raise ProgramError(
            f"{path.name} calls setValid or setInvalid of edge_header: the switch puts it on at the"
            " source's edge and takes it off at the destination's, so that links count its bytes"
        )


def _source(path: Path) -> str:
    """Return the text of a program without its comments, empty where it is no P4 source."""
    if path.suffix != ".p4":
        return ""

    try:
        source = read_bytes(path).decode(errors="replace")
    except (OSError, TooLargeError):
        return ""

    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)


def _defines(macro: str, source: str) -> bool:
    return bool(re.search(rf"^\s*#\s*define\s+{macro}\b", source, re.MULTILINE))


def _declares(control: str, source: str) -> bool:
    return bool(re.search(rf"\bcontrol\s+{control}\b", source))


def check(name: str, pipeline: Pipeline) -> None:
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
