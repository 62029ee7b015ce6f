"""Options and errors that all command lines share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import click

from controller.errors import ControllerError
from emulation.completion import complete_key, complete_policies
from emulation.errors import EmulationError, FailedRunError
from emulation.shipped_file import ShippedFile
from fattree.errors import FabricError, PhysicsError, nearest
from fattree.experiment.collective import Matrix
from fattree.experiment.model import Scenario
from fattree.experiment.own import LIKE, OwnProgram
from fattree.policies import POLICIES, POLICY_SETS, PUBLISHED
from fattree.records.csv_option import CsvOption
from fattree.records.record import Record
from fattree.texts.explanations import located
from fattree.texts.portless import portless
from fattree.texts.shipped import EXPERIMENTS
from fattree.texts.storms import storms_asked
from fattree.texts.without_effect import late, punished, unread
from ofan_p4.diagnostics import CompileError
from ofan_p4.softswitch.base.errors import SoftswitchError

# The base classes of all errors in input; any other exception is our bug.
BAD_INPUT = (FabricError, CompileError, ControllerError, EmulationError, SoftswitchError)
ALL = "all"
# The experiment of --program if none is named.
DEMO = EXPERIMENTS / "demo.toml"
DEFAULT_LIKE = str(OwnProgram.model_fields["like"].default)
# Usage has 2: scripts distinguish them.
RUN_FAILED = 1
Names = tuple[str, ...]
Option = Callable[[Callable[..., None]], Callable[..., None]]

# Options that set a key of an experiment, with and without a file.
KEYS = {
    "k": "fabric.k",
    "matrix": "collective.matrix",
    "message_bytes": "collective.message_bytes",
    "seeds": "seeds",
    "seed": "seed",
    "failure_rate": "failures.rate",
    "convergence_rtt": "failures.convergence_rtt",
}

# The keys that each option sets, also for options that do more than set a key.
OWN_KEYS = {name: (key,) for name, key in KEYS.items()} | {
    "policies": ("policies",),
    "detection": ("controller.detection",),
    "host_rule": ("host_rule.file",),
    "agent_packet": ("agent_packet.file",),
    "program": ("program.file",),
    "programs": ("program.file",),
    "like": ("host_rule.like", "program.like"),
}


class Named(click.Choice[str]):
    """A choice of names that suggests the nearest name for a wrong one.

    `elsewhere`: the hint for a name that another command takes.
    """

    def __init__(self, commands: Sequence[str], elsewhere: Mapping[str, str] | None = None) -> None:
        super().__init__(commands)
        self._elsewhere = elsewhere or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; raises BadParameter for an unknown name."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            said = self._elsewhere.get(value)
            meant = (
                f" ({said})" if said else nearest(value, [str(choice) for choice in self.choices])
            )
            if not meant:
                raise

            told = f"{error.message.rstrip('.')}{meant}"
            raise click.BadParameter(told, ctx=ctx, param=param) from None


def only_one(
    elsewhere: str = "",
) -> Callable[[click.Context, click.Parameter, tuple[Path, ...]], Path | None]:
    """Return the callback of an option that a command takes only once.

    click itself would take the last value without an error; `elsewhere` names commands that take
    several.
    """

    def taken(_: click.Context, param: click.Parameter, files: tuple[Path, ...]) -> Path | None:
        if len(files) > 1:
            raise click.UsageError(f"{param.opts[0]} takes one file here{elsewhere}")

        return files[0] if files else None

    return taken


settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_key,
    help="Set any key of the experiment; repeatable.",
)
csv_option = click.option(
    "--csv",
    cls=CsvOption,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the rows to a CSV file (-: stdout).",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Write the records to stdout as JSON."
)
force_option = click.option(
    "--force", is_flag=True, help="Run even with too little memory; replace existing results."
)


def output_option(folder: str) -> Option:
    """Return the option for a results folder, which has this name by default."""
    return click.option(
        "--output",
        type=click.Path(path_type=Path, file_okay=False),
        help=f"Results folder [results/{folder}, or the next free number].",
    )


jobs_option = click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes."
)
host_rule_option = click.option(
    "--host-rule",
    type=ShippedFile(),
    multiple=True,
    callback=only_one('; a sweep takes several ("host_rule.file" = [...])'),
    metavar="FILE",
    help="Run your own host rule (.py).",
)
program_option = click.option(
    "--program",
    type=ShippedFile(),
    multiple=True,
    callback=only_one("; ofan sim run and ofan compare take several"),
    help="Run your own program (.p4, or BMv2 .json).",
)
like_option = click.option(
    "--like",
    type=Named(LIKE),
    metavar="POLICY",
    help="The load balancer whose groups and hosts your program or rule gets"
    f" [{DEFAULT_LIKE}; a rule alone: host_pkt_ar].",
)
agent_packet_option = click.option(
    "--agent-packet",
    type=ShippedFile(),
    multiple=True,
    callback=only_one(),
    metavar="FILE",
    help="Let hosts send your own packets (.py).",
)


@contextmanager
def one_line_errors(file: Path | None = None, settings: Sequence[str] = ()) -> Iterator[None]:
    """Turn an error in the user's input into a click error: one line, exit code 2.

    The error of a key in an experiment's `file` or in `settings` starts with its place. A failed
    run is also one line, with exit code 1.
    """
    try:
        yield
    except (FailedRunError, PhysicsError) as error:
        click.echo(f"ofan: {error}", err=True)
        raise click.exceptions.Exit(RUN_FAILED) from None
    except BAD_INPUT as error:
        message = located(str(error), file, settings) if file else str(error)
        raise click.ClickException(message) from None


def names(
    choices: Sequence[str],
    least: int = 1,
    sets: Mapping[str, Names] | None = None,
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[click.Context, click.Parameter, str | None], Names]:
    """Return the callback of an option that takes names of `choices`, separated by commas.

    `all` means every name, unless there are named `sets` of names; `aliases` lead to names.

    The value is the names in their order, empty without the option; a repeated name is refused.
    """

    def convert(_: click.Context, __: click.Parameter, text: str | None) -> Names:
        if text is None:
            return ()

        whole = (sets or {ALL: tuple(choices)}).get(text)
        typed = [part.strip() for part in text.split(",")]
        chosen_names = whole or tuple(aliases.get(name, name) for name in typed)
        for name in chosen_names:
            if name not in choices:
                meant = nearest(name, choices)
                raise click.BadParameter(f"{name!r} is not one of {', '.join(choices)}{meant}")
            if chosen_names.count(name) > 1:
                raise click.BadParameter(f"{name} is given twice")

        if len(chosen_names) < least:
            raise click.BadParameter(f"{text!r}: give at least {least} of {', '.join(choices)}")

        return chosen_names

    return convert


def chosen(policies: Sequence[str]) -> list[str]:
    """Return the override that sets load balancers, empty if none are given."""
    return [f"policies={','.join(policies)}"] if policies else []


def say_misfits(scenarios: Iterable[Scenario]) -> None:
    """Say on stderr which of our load balancers work differently with the user's packets.

    The scenarios' switches run our P4 programs.
    """
    from hostagent.form_fit import misfits

    for line in misfits(scenarios):
        click.echo(line, err=True)


def say_warnings(lines: Iterable[str]) -> None:
    """Say on stderr the compiler's warnings about the user's programs, each once."""
    for line in dict.fromkeys(lines):
        click.echo(line, err=True)


def say_unread(scenarios: Iterable[Scenario]) -> None:
    """Say on stderr which settings have no effect on any run, and which do not go together."""
    all_scenarios = list(scenarios)
    for line in (*unread(all_scenarios), *punished(all_scenarios)):
        click.echo(line, err=True)


def say_odd(runs: Iterable[tuple[Scenario, Record]]) -> None:
    """Say on stderr which failures came after the end of runs, and which packets had no port.

    And which hosts paused their links.
    """
    all_runs = list(runs)
    for line in (*late(all_runs), *portless(all_runs), *storms_asked(all_runs)):
        click.echo(line, err=True)


SEEDS = click.option("--seeds", metavar="N", help="Number of seeds.  [the file's; 1]")
EXPERIMENT_OPTIONS = (
    click.option(
        "--policies",
        metavar="A,B|all|everything",
        callback=names(tuple(POLICIES), sets=POLICY_SETS, aliases=PUBLISHED),
        shell_complete=complete_policies,
        help=f"Load balancers: {', '.join(POLICIES)} (`everything`); `all`: the paper's."
        "  [the file's; ofan]",
    ),
    click.option("--k", metavar="K", help="Ports of a switch; k*k*k/4 hosts.  [the file's; 8]"),
    click.option(
        "--matrix",
        metavar="NAME",
        help=f"{', '.join(get_args(Matrix))}.  [the file's; permutation]",
    ),
    click.option(
        "--message-bytes", metavar="SIZE", help="As in 65536, 64KiB, 1MiB.  [the file's; 1MiB]"
    ),
    SEEDS,
    click.option("--seed", metavar="N", help="The first seed.  [the file's; 1]"),
    click.option(
        "--failure-rate",
        metavar="P",
        help="The probability that a link has failed.  [the file's; 0]",
    ),
    click.option(
        "--convergence-rtt",
        metavar="G",
        help="Zero-load RTTs until routes change (inf: never).  [the file's; 0]",
    ),
    click.option(
        "-D",
        "defines",
        multiple=True,
        metavar="NAME=VALUE",
        help="Define a macro for your own program; repeatable.",
    ),
    settings_option,
)


def refuse_twice(settings: Sequence[str], options: Iterable[str]) -> None:
    """Raise UsageError for a key that both an option and --set give."""
    for name in options:
        for setting in settings:
            key = setting.partition("=")[0].strip()
            for own_key in OWN_KEYS.get(name, ()):
                # A table in --set sets all of its keys.
                if f"{own_key}.".startswith(f"{key}."):
                    option = name.removesuffix("s") if name == "programs" else name
                    raise click.UsageError(
                        f"--{option.replace('_', '-')} and --set {key} both set {own_key}:"
                        " give only one"
                    )


def refuse_unused_policies(settings: Sequence[str]) -> None:
    """Raise UsageError if --set names policies, which the user's program or rule replaces."""
    if any(setting.partition("=")[0].strip() == "policies" for setting in settings):
        raise click.UsageError(
            "your program or rule runs instead of the experiment's policies:"
            " use --like and --policies"
        )


def experiment_options(
    command: Callable[..., None], without: Sequence[Option] = ()
) -> Callable[..., None]:
    """Add the options for load balancers and keys, the same for every command.

    Those of `without` have no effect on the command.

    `command` gets the load balancers as `policies`, empty if not given, and all other keys as
    `settings`, KEY=VALUE, short options before those of `--set`.
    """

    @wraps(command)
    def with_settings(settings: tuple[str, ...], defines: tuple[str, ...], **options: Any) -> None:
        # As in the preprocessor: a name without a value is 1.
        macros = [f"defines.{define}{'' if '=' in define else '=1'}" for define in defines]
        settings = (*macros, *settings)
        refuse_twice(settings, [name for name, value in options.items() if value])
        keyed = {key: options.pop(name, None) for name, key in KEYS.items()}
        short = {key: value for key, value in keyed.items() if value is not None}
        try:
            command(settings=(*(f"{key}={short[key]}" for key in short), *settings), **options)
        # Errors name the option that the user typed.
        except click.ClickException as error:
            message = error.message
            for macro in macros:
                key = macro.partition("=")[0]
                message = message.replace(f"--set {key}:", f"-D {key.removeprefix('defines.')}:")

            for name, key in KEYS.items():
                if key in short:
                    message = message.replace(f"--set {key}:", f"--{name.replace('_', '-')}:")

            raise (error if message == error.message else click.ClickException(message)) from None

    for option in reversed(EXPERIMENT_OPTIONS):
        if option not in without:
            with_settings = option(with_settings)

    return with_settings
