"""What can be wrong with the user's input, whichever package finds it."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from controller.errors import ControllerError
from emulation.compiler import CompileError
from emulation.errors import EmulationError
from emulation.softswitch.errors import SoftswitchError
from fattree.errors import FabricError

BAD_INPUT = (FabricError, CompileError, ControllerError, EmulationError, SoftswitchError)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what is wrong with the user's input into a click error: one line, exit code 2."""
    try:
        yield
    except BAD_INPUT as error:
        raise click.ClickException(str(error)) from None
