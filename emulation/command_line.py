"""What command lines share: options, and what can be wrong with input, whoever finds it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from controller.errors import ControllerError
from emulation.compiler import CompileError
from emulation.errors import EmulationError, FailedRunError
from emulation.softswitch.errors import SoftswitchError
from fattree.errors import FabricError

# The roots of all hierarchies of errors; anything else that is raised is a bug of ours.
BAD_INPUT = (FabricError, CompileError, ControllerError, EmulationError, SoftswitchError)
ALL = "all"
# Usage has 2: a script can tell one from the other.
RUN_FAILED = 1
Names = tuple[str, ...]

settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the file; repeatable.",
)
csv_option = click.option(
    "--csv",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the rows to a CSV file (-: stdout).",
)
seeds_option = click.option(
    "--seeds", type=click.IntRange(1), help="How many seeds to run, from the file's on."
)
host_rule_option = click.option(
    "--host-rule",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Run your own host rule (.py).",
)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what is wrong with the user's input into a click error: one line, exit code 2.

    A run that has failed is one line, too, and exit code 1.
    """
    try:
        yield
    except FailedRunError as error:
        click.echo(f"ofan: {error}", err=True)
        raise click.exceptions.Exit(RUN_FAILED) from None
    except BAD_INPUT as error:
        raise click.ClickException(str(error)) from None


def names(
    known: Sequence[str], least: int = 1
) -> Callable[[click.Context, click.Parameter, str | None], Names]:
    """Return the callback of an option that takes names separated by commas, each one of `known`.

    `all` is every one.

    The value is the names in their order, none where the option is not given; a name given twice is
    refused.
    """

    def convert(_: click.Context, __: click.Parameter, text: str | None) -> Names:
        if text is None:
            return ()

        wanted = tuple(known) if text == ALL else tuple(part.strip() for part in text.split(","))
        for name in wanted:
            if name not in known:
                raise click.BadParameter(f"{name!r} is not one of {', '.join(known)}")
            if wanted.count(name) > 1:
                raise click.BadParameter(f"{name} is named twice")

        if len(wanted) < least:
            raise click.BadParameter(
                f"{text!r}: at least {least} are needed, of {', '.join(known)}"
            )

        return wanted

    return convert
