"""The `ofan` command: one name for every tool of the project.

Each sub-command is imported when it is called.
"""

import importlib
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from signal import SIG_DFL, SIGINT, signal
from threading import current_thread, main_thread
from typing import Any, NamedTuple

from hostagent.isolation import clean_environment, python_command, shut_out_others


@contextmanager
def _without_last_words() -> Iterator[None]:
    """Let an interrupt end the process at once, while nothing is there to say or to clean."""
    # Signals are the main thread's; elsewhere `signal` would raise.
    if current_thread() is not main_thread():
        yield
        return

    before = signal(SIGINT, SIG_DFL)
    try:
        yield
    finally:
        signal(SIGINT, before)


# Most of the start-up time goes here, and a Ctrl-C in the middle of it would print a traceback.
# Python's own handler would print a traceback for a Ctrl-C during this import, the longest one.
with _without_last_words():
    import click

# A run that failed, and, as click has it, bad usage.
FAILED = 1
INPUT_ERROR = 2
# What shells give for a process that SIGINT has ended: 128 + 2.
INTERRUPTED = 130


class Lazy(NamedTuple):
    """Where a sub-command is, and the line that `ofan --help` shows without importing it."""

    module: str
    name: str
    help: str


COMMANDS = {
    "emulate": Lazy(
        "emulation.commands.emulate", "emulate", "Run an experiment file, packet by packet."
    ),
    "compare": Lazy(
        "emulation.commands.compare",
        "compare",
        "One experiment on several networks: where do they differ?",
    ),
    "results": Lazy(
        "emulation.commands.results", "results", "Compare results that are there: two folders."
    ),
    "link": Lazy(
        "emulation.held.cli", "link", "Break, mend and list the links of a held emulation."
    ),
    "status": Lazy(
        "emulation.held.cli", "status", "Show a held emulation and each of its switches."
    ),
    "schedule": Lazy("emulation.held.cli", "schedule", "Show the schedules that a switch holds."),
    "pointers": Lazy("emulation.held.cli", "pointers", "Show where a switch's pointers are."),
    "traffic": Lazy("emulation.held.cli", "traffic", "Start and stop traffic on a held emulation."),
    "shell": Lazy(
        "emulation.held.cli", "shell", "Open p4runtime-shell on a switch of a held emulation."
    ),
    "watch": Lazy(
        "emulation.live.cli",
        "watch",
        "Watch a held emulation, or a run in virtual time, in the terminal.",
    ),
    "serve": Lazy(
        "emulation.live.cli",
        "serve",
        "The same as a page on this machine: click a link to break it.",
    ),
    "pcap": Lazy("emulation.commands.pcap", "pcap", "Print the packets of a capture, decoded."),
    "demo": Lazy(
        "emulation.commands.demo",
        "demo",
        "Three load balancers, a link failure, one table, one picture.",
    ),
    "report": Lazy(
        "sim.report.cli", "report", "Reproduce the paper: every figure, every claim, one page."
    ),
    "experiments": Lazy(
        "emulation.commands.experiments",
        "experiments",
        "List, show and copy the experiments that come with Ofan.",
    ),
    "doctor": Lazy(
        "emulation.commands.doctor",
        "doctor",
        "Say what this machine can run, and how to get the rest.",
    ),
}
SIM_COMMANDS = {
    "run": Lazy(
        "emulation.commands.simulation", "run", "Simulate an experiment: a file, or options."
    ),
    "sweep": Lazy(
        "emulation.commands.simulation",
        "sweep_command",
        "Simulate every combination in a sweep file; resumable.",
    ),
    "results": Lazy("sim.cli", "results", "Show or export what a sweep has found so far."),
}
WORKLOAD_COMMANDS = {
    "from-model": Lazy(
        "emulation.commands.workload",
        "from_model",
        "One training step of a model (its config.json) on many GPUs.",
    ),
    "from-goal": Lazy(
        "emulation.commands.workload", "from_goal", "A GOAL schedule, as text or binary."
    ),
    "from-chakra": Lazy(
        "emulation.commands.workload", "from_chakra", "Chakra execution traces, a file a rank."
    ),
    "show": Lazy("emulation.commands.workload", "show", "Say what a workload is of."),
}
P4_COMMANDS = {
    "compile": Lazy(
        "emulation.commands.compile",
        "compile_command",
        "Compile P4_16 (v1model) to BMv2 JSON and P4Info.",
    ),
    "stf": Lazy(
        "emulation.stf.cli",
        "stf_command",
        "Run tests in the STF format on our compiler and switch.",
    ),
    "trace": Lazy(
        "emulation.stf.trace_command", "trace", "Show how packets walk through a program."
    ),
    "install-names": Lazy(
        "emulation.commands.install_names",
        "install_names",
        "Make p4c, simple_switch_grpc, simple_switch_CLI, ..., for Makefiles that call them.",
    ),
}

EXAMPLES = """
\b
Examples:
  ofan demo                            a first look, under a minute
  ofan experiments list                what comes with Ofan
  ofan emulate demo                    run one of them, or a file
  ofan emulate demo --k 8 --policies ofan,jsq --seeds 3 --jobs 2
  ofan sim run --k 8 --policies all --seeds 10   128 hosts, all load balancers
  ofan sim sweep sweep.toml --jobs 2   many runs; goes on where it stopped
  ofan emulate --program two_choices.p4 --policies ofan,jsq
  ofan compare demo --policies all     virtual time against the simulator
  ofan results compare results/near results/far --force   two runs
  ofan p4 compile p4src/ofan.p4 -o ofan.json   JSON for any BMv2 switch
  ofan p4 stf router.p4                test a program: packets, expectations
  ofan p4 trace router.p4 --entries router.stf   how packets walk through it
  ofan watch demo_failure              see it happen
  ofan serve demo_failure              the same as a page: click a link
  ofan report --quick                  the paper's figures and claims
  ofan doctor                          what runs here, what is missing
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def __init__(self, commands: dict[str, Lazy], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.lazy = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all sub-commands, in the order of the table."""
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a sub-command."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)

        lazy = self.lazy[cmd_name]
        command = getattr(importlib.import_module(lazy.module), lazy.name)
        assert isinstance(command, click.Command)

        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        A Ctrl-C starts a new line only where a terminal has shown ^C on this one.
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


cli = LazyGroup(
    COMMANDS,
    name="ofan",
    help="Load balancers for AI fabrics: "
    "as P4 programs on an emulated fat-tree, and in a simulator.",
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
click.version_option(package_name="ofan", message="ofan %(version)s")(cli)
cli.add_command(
    LazyGroup(
        SIM_COMMANDS, name="sim", help="The simulator: 2 to 524,288 hosts.", no_args_is_help=True
    )
)
cli.add_command(
    LazyGroup(
        WORKLOAD_COMMANDS,
        name="workload",
        help="Workloads: files of transfers and computations.",
        no_args_is_help=True,
    )
)
cli.add_command(LazyGroup(P4_COMMANDS, name="p4", help="The P4 compiler.", no_args_is_help=True))


def start() -> None:
    """Run `ofan` as a program of its own.

    As root it heeds nothing that the caller's variables or current folder say.
    """
    if os.geteuid() == 0 and not sys.flags.isolated:
        # What pip has installed is started with all that PYTHON variables and HOME name; what has
        # come with them goes, before anything of it is called.
        os.execve(sys.executable, python_command("ofan", *sys.argv[1:]), clean_environment())

    shut_out_others()
    main()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `ofan`.

    Bad input is one line on stderr and exit code 2, a failed run the same and exit code 1.
    """
    try:
        code = cli.main(args=arguments, prog_name="ofan", standalone_mode=False)
    # To call a group without a command is to ask what there is.
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 0
    except click.ClickException as error:
        click.echo(f"ofan: {error.format_message()}", err=True)
        code = INPUT_ERROR
    except (click.Abort, KeyboardInterrupt) as interrupt:
        words = ": ".join(["interrupted", *map(str, interrupt.args)])
        click.echo(f"ofan: {words}", err=True)
        code = INTERRUPTED
    # Whatever asks for memory next fails, wherever that is: libraries that draw are large.
    except (MemoryError, ImportError) as error:
        if not _is_out_of_memory(error):
            raise

        click.echo(f"ofan: {_out_of_memory()}", err=True)
        code = FAILED
    # `ofan ... | head` is no error. Python would flush stdout once more on its way out, into a pipe
    # that nobody reads.
    # As in `ofan ... | head`. Python flushes stdout once more at its end: to where nobody objects.
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0

    sys.exit(code if isinstance(code, int) else 0)


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that there is no memory, not even to load a library."""
    # The loader's own words, of which Python knows nothing further.
    words = ("failed to map segment", "cannot allocate memory")
    return isinstance(error, MemoryError) or any(each in str(error).lower() for each in words)


def _out_of_memory() -> str:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return "out of memory: this machine has no more"

    return f"out of memory: a process may have {limit >> 20:,} MiB here (ulimit -v); give it more"


if __name__ == "__main__":
    start()
