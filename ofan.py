"""The `ofan` command: one name for every tool of the project.

Each sub-command is imported when it is called.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from signal import SIG_DFL, SIGINT, signal
from threading import current_thread, main_thread

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


# Python's own handler would print a traceback for a Ctrl-C during this import, the longest one.
with _without_last_words():
    import click

    from ofan_p4.cli import COMMANDS as P4_TOOLS
    from ofan_p4.command import SETTINGS, Lazy, LazyGroup, run

COMMANDS = {
    "choose": Lazy(
        "emulation.commands.choose",
        "choose_command",
        "Say which load balancer a fabric should run, and why.",
    ),
    "emulate": Lazy(
        "emulation.commands.emulate", "emulate", "Run an experiment file, packet by packet."
    ),
    "compare": Lazy(
        "emulation.commands.compare",
        "compare",
        "Run one experiment on several networks and compare them.",
    ),
    "results": Lazy("emulation.commands.results", "results", "Compare two results folders."),
    "link": Lazy(
        "emulation.held.cli", "link", "Break, repair and list the links of a held emulation."
    ),
    "status": Lazy(
        "emulation.held.cli", "status", "Show a held emulation and each of its switches."
    ),
    "schedule": Lazy("emulation.held.cli", "schedule", "Show the schedules of a switch."),
    "pointers": Lazy("emulation.held.cli", "pointers", "Show a switch's pointers."),
    "registers": Lazy("emulation.held.cli", "registers", "Show a switch's registers and counters."),
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
        "Like watch, as a page on this machine: click a link to break it.",
    ),
    "pcap": Lazy("emulation.commands.pcap", "pcap", "Print the packets of a capture, decoded."),
    "demo": Lazy(
        "emulation.commands.demo",
        "demo",
        "Compare three load balancers and a link failure: a table, a picture.",
    ),
    "bgp": Lazy(
        "emulation.commands.bgp",
        "bgp",
        "Run BGP (FRR) on a fabric's switches: its weights and times after failures.",
    ),
    "report": Lazy(
        "reproduction.report.cli",
        "report",
        "Reproduce the paper: every figure, every claim, one page.",
    ),
    "experiments": Lazy(
        "emulation.commands.experiments",
        "experiments",
        "List, show and copy the experiments that come with Ofan.",
    ),
    "doctor": Lazy(
        "emulation.commands.doctor",
        "doctor",
        "Show what this machine can run, and how to install the rest.",
    ),
}
SIM_COMMANDS = {
    "run": Lazy(
        "emulation.commands.simulation", "run", "Simulate an experiment, from a file or options."
    ),
    "sweep": Lazy(
        "emulation.commands.simulation",
        "sweep_command",
        "Simulate every combination of a sweep file; can be resumed.",
    ),
    "results": Lazy("sim.cli", "results", "Show or export the finished runs of a sweep."),
}
WORKLOAD_COMMANDS = {
    "from-model": Lazy(
        "emulation.commands.models",
        "from_model",
        "Write one training step of a model (its config.json) on many GPUs.",
    ),
    "serve-model": Lazy(
        "emulation.commands.models",
        "serve_model",
        "Write a served model: prefill, transfer of keys and values, decode.",
    ),
    "from-goal": Lazy(
        "emulation.commands.workload", "from_goal", "Convert a GOAL schedule, text or binary."
    ),
    "from-chakra": Lazy(
        "emulation.commands.workload",
        "from_chakra",
        "Convert Chakra execution traces, a file per rank.",
    ),
    "show": Lazy("emulation.commands.workload", "show", "Describe a workload."),
}
# The P4 tools' commands, but these also find files that come with Ofan.
OVERLAID = {
    "compile": "emulation.commands.compile",
    "stf": "emulation.commands.stf",
    "trace": "emulation.commands.stf",
}
P4_COMMANDS = {
    name: lazy._replace(module=OVERLAID.get(name, lazy.module)) for name, lazy in P4_TOOLS.items()
}

EXAMPLES = """
\b
Examples:
  ofan choose --hosts 512 --oversubscription 4   which one to run
  ofan demo                            a first look, under a minute
  ofan experiments list                the experiments of Ofan
  ofan emulate demo                    run an experiment, or your own file
  ofan emulate demo --k 8 --policies ofan,jsq --seeds 3 --jobs 2
  ofan sim run --k 8 --policies all --seeds 10   128 hosts, all load balancers
  ofan sim sweep sweep.toml --jobs 2   many runs; can be resumed
  ofan emulate --program two_choices.p4 --policies ofan,jsq
  ofan compare demo --policies all     virtual time against the simulator
  ofan results compare results/near results/far --force   two runs
  ofan p4 compile p4src/ofan.p4 -o ofan.json   JSON for any BMv2 switch
  ofan p4 stf router.p4                test a program: packets, expectations
  ofan p4 trace router.p4 --entries router.stf   the path of packets in it
  ofan watch demo_failure              watch a run in the terminal
  ofan serve demo_failure              the same as a page: click a link
  ofan report --quick                  the paper's figures and claims
  ofan doctor                          what this machine can run
"""

# NumPy, polars, LLVM and a small run map 728 MiB, whatever the number of threads.
ROOM_BYTES = 740 << 20

cli = LazyGroup(
    COMMANDS,
    room_bytes=ROOM_BYTES,
    name="ofan",
    help="Load balancers for AI fabrics, "
    "as P4 programs on an emulated fat-tree and in a simulator.",
    epilog=EXAMPLES,
    context_settings=SETTINGS,
)
click.version_option(package_name="ofan", message="ofan %(version)s")(cli)
cli.add_command(
    LazyGroup(
        SIM_COMMANDS,
        room_bytes=ROOM_BYTES,
        name="sim",
        help="The simulator: 2 to 524,288 hosts.",
        no_args_is_help=True,
    )
)
cli.add_command(
    LazyGroup(
        WORKLOAD_COMMANDS,
        room_bytes=ROOM_BYTES,
        name="workload",
        help="Workloads: files of transfers and computations.",
        no_args_is_help=True,
    )
)
cli.add_command(LazyGroup(P4_COMMANDS, name="p4", help="The P4 compiler.", no_args_is_help=True))


def start() -> None:
    """Run `ofan` as a separate program.

    As root it ignores the caller's variables and current folder.
    """
    if os.geteuid() == 0 and not sys.flags.isolated:
        # The start script of pip reads PYTHON variables and HOME: start again without them, before
        # any code from there is called.
        os.execve(sys.executable, python_command("ofan", *sys.argv[1:]), clean_environment())

    shut_out_others()
    if "_OFAN_COMPLETE" in os.environ:
        # A shell asks seldom.
        from emulation.completion import complete_at_once  # noqa: PLC0415

        if complete_at_once():
            return

    main()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `ofan`; bad input and failed runs are one line each (`ofan_p4.command`)."""
    run(cli, "ofan", arguments)


if __name__ == "__main__":
    start()
