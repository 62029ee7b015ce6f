"""The shared parts of the commands `ofan` and `ofan-p4`: sub-commands that are imported when
called, and one line for every error that ends them.
"""

import difflib
import errno
import importlib
import mmap
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from ofan_p4.standard_output import StdoutError, guarded_stdout

# A run that failed, and, as click has it, bad usage.
FAILED = 1
INPUT_ERROR = 2
# The shells' exit code for a process that SIGINT has ended: 128 + 2.
INTERRUPTED = 130
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class Lazy(NamedTuple):
    """Where a sub-command is, and the line that the group's help shows without importing it."""

    module: str
    name: str
    help: str


class LazyGroup(click.Group):
    """A group that imports its commands when they are called.

    Its commands' libraries may map `room_bytes` of memory. A limit below them is an error before
    the import: native libraries abort the process instead of raising.
    """

    def __init__(
        self, commands: dict[str, Lazy], *, room_bytes: int = 0, **settings: object
    ) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.lazy = commands
        self.room_bytes = room_bytes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all sub-commands, in the order of the table."""
        return [*self.lazy, *super().list_commands(ctx)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name the probable command for a mistyped name.

        `help COMMAND` is `COMMAND --help`.
        """
        if args == ["help"]:
            click.echo(ctx.get_help())
            ctx.exit()

        if args[0] == "help":
            args = [*args[1:], "--help"]

        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # A group's command of exactly this name is more likely than a similar name.
            inner = [
                f"{name} {args[0]}"
                for name, group in self.commands.items()
                if isinstance(group, click.Group) and args[0] in group.list_commands(ctx)
            ]
            close = inner or difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            unknown = f"No such command {args[0]!r}."
            raise click.UsageError(f"{unknown}{meant}", error.ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a sub-command."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)

        lazy = self.lazy[cmd_name]
        _check_room(self.room_bytes)
        command = getattr(importlib.import_module(lazy.module), lazy.name)
        assert isinstance(command, click.Command)

        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a sub-command, without importing any."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)

        helps = {name: lazy.help for name, lazy in self.lazy.items()} | {
            name: command.get_short_help_str() for name, command in self.commands.items()
        }
        return [
            CompletionItem(name, help=sentence)
            for name, sentence in helps.items()
            if name.startswith(incomplete)
        ]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        A Ctrl-C starts a new line only where a terminal has shown ^C on the current line.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            if sys.stderr.isatty():
                click.echo(err=True)

            raise click.Abort(*interrupt.args) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of sub-commands without importing any."""
        rows = [(name, lazy.help) for name, lazy in self.lazy.items()]
        rows += [
            (name, command.get_short_help_str(limit=100)) for name, command in self.commands.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _check_room(room_bytes: int) -> None:
    """Raise MemoryError where a limit of this process leaves less memory to map."""
    if room_bytes and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        try:
            mmap.mmap(-1, room_bytes).close()
        except OSError as error:
            raise MemoryError from error


def run(group: click.Group, name: str, arguments: Sequence[str] | None = None) -> None:
    """Run a group of commands as the program `name`, by default with the process's arguments.

    Bad input is one line on stderr and exit code 2, a failed run the same and exit code 1. SIGTERM
    ends a command as Ctrl-C does.
    """
    try:
        with _terminated_as_interrupted(), guarded_stdout():
            code = _called(group, name, arguments)
    except StdoutError as error:
        click.echo(f"{name}: {error}", err=True)
        code = FAILED
    except click.ClickException as error:
        click.echo(f"{name}: {error.format_message()}", err=True)
        code = INPUT_ERROR
    except (click.Abort, KeyboardInterrupt) as interrupt:
        message = ": ".join(["interrupted", *map(str, interrupt.args)])
        click.echo(f"{name}: {message}", err=True)
        code = INTERRUPTED
    # `... | head` is no error.
    except BrokenPipeError:
        code = 0
    # Whatever asks for memory or a file next fails, wherever that is: libraries are large.
    except (MemoryError, ImportError, SystemError, OSError) as error:
        message = _exhausted(error)
        if not message:
            raise

        click.echo(f"{name}: {message}", err=True)
        code = FAILED

    sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM interrupt, so that files and processes are taken away."""
    # Signals are the main thread's; elsewhere `signal` would raise.
    if current_thread() is not main_thread():
        yield
        return

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _called(group: click.Group, name: str, arguments: Sequence[str] | None) -> Any:
    try:
        return group.main(args=arguments, prog_name=name, standalone_mode=False)
    # A group that is called without a command shows its help.
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0


def _exhausted(error: BaseException) -> str:
    """Return a line about the exhausted resource, empty for any other error."""
    # Libraries raise an error of their own while they handle the loader's.
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            return (
                f"out of file descriptors: a process may have {limit} here (ulimit -n); allow more"
            )

        if _is_out_of_memory(cause):
            return _out_of_memory()

    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that it was raised from or while handling."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that there is no memory, not even to load a library."""
    # The loader's own messages, which Python does not classify, and the error after C code of
    # libraries that does not check its allocations.
    messages = (
        "failed to map segment",
        "cannot allocate memory",
        "error return without exception set",
        "without setting an exception",
    )
    return isinstance(error, MemoryError) or any(
        message in str(error).lower() for message in messages
    )


def _out_of_memory() -> str:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return "out of memory: this machine has no more"

    return f"out of memory: a process may have {limit >> 20:,} MiB here (ulimit -v); give it more"
