"""`ofan emulate`: run an experiment file on an emulated network."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import get_args

import click

from emulation.command_line import (
    DEMO,
    Named,
    agent_packet_option,
    csv_option,
    experiment_options,
    force_option,
    host_rule_option,
    jobs_option,
    json_option,
    like_option,
    one_line_errors,
    output_option,
    program_option,
    refuse_unused_policies,
    say_misfits,
    say_odd,
    say_unread,
    say_warnings,
)
from emulation.commands import on_mininet
from emulation.commands.experiment_run import (
    VIRTUAL,
    Finished,
    keep,
    reporting,
    run_experiment,
    virtually,
)
from emulation.commands.own_program import (
    Runners,
    folder_suffixes,
    keep_beside,
    run_beside,
)
from emulation.errors import EmulationError
from emulation.mininet import limits
from emulation.mininet.building import Setup
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.targets import SOFTSWITCH, TARGETS
from emulation.option_groups import Asked, Written, grouped
from emulation.outcomes.folder import new_folder, writing
from emulation.outcomes.switch_state import state_table
from emulation.outcomes.tables import results_table
from emulation.programs.own_program import Loaded, alone, program_of, runs_alone, with_own
from emulation.programs.switch_program import Compiler, SwitchProgram
from emulation.shipped_file import ShippedFile
from emulation.taps import tap_named
from emulation.virtual import refusals as virtual_refusals
from emulation.virtual.fabric import FEW_PACKETS
from emulation.virtual.size import refuse_too_large
from fattree.experiment.failures import Detection
from fattree.experiment.model import Experiment
from fattree.experiment.own import LIKE
from fattree.records.record import Record, flat, rare_legend, row
from fattree.records.tables import STDOUT, terminal, write_csv
from fattree.texts.experiment_file import agent_packet_settings, host_rule_settings, load_experiment
from hostagent.own_packet import scenario_packets
from hostagent.own_rule import own_rule
from sim.cli import Exports, figure_option, leave_out_option, parquet_option
from sim.sweeps.cost import processors

MININET = "mininet"
UNHASHED = (
    "run.log has no hash of events (events_sha256) for runs of more than"
    f" {FEW_PACKETS:,} packets through switches, which hashing would slow down tenfold"
)
LEGEND = (
    "p50 to p99.9: flows' times, each from its earliest possible start. E>A to E>H: the longest"
    " queue of the layer, over all seeds, in packets, its bytes over a data packet's (E edge, A"
    " aggregation, C core, H host{unreported}). drops: packets at full queues, or without a port to"
    " go to. lost: packets sent into a failed link or a dead switch, or lost at random."
)

ON_MININET = f"sudo $(which ofan) emulate mininet_k4 --network {MININET} --policies ofan"
EXAMPLES = f"""
\b
Examples:
  ofan emulate demo                            (ofan experiments list: more)
  ofan emulate demo --set fabric.queue_bytes=0   (queues without a limit)
  ofan emulate demo --k 8 --policies ofan,host_pkt --seeds 3 --jobs 2
  ofan emulate demo_failure --json | jq '.records[] | {{policy, cct_ps}}'
  {ON_MININET} \\
      --hold
  {ON_MININET} \\
      --hold --detection netlink
  ofan emulate --host-rule fast_labels.py --policies host_pkt,host_pkt_ar
  ofan emulate --program two_choices.p4 --policies ofan,jsq
  ofan emulate --program by_path.p4 --agent-packet my_packet.py \\
      --set packets.header_bytes=66
  ofan emulate --program two_choices.p4 --like ofan demo_failure
"""


def read_experiment(
    file: Path, settings: tuple[str, ...], takes_program: bool = False
) -> Experiment:
    """Read an experiment file with the overrides of the command line; raises ExperimentError."""
    experiment = load_experiment(file, settings, takes_program)
    if experiment.host_rule:
        own_rule(experiment.host_rule.text, experiment.host_rule.file)

    if experiment.agent_packet:
        scenario_packets(next(experiment.alone(LIKE[0]).scenarios()))

    return experiment


def refuse_unsupported(network: str, *experiments: Experiment) -> None:
    """Raise the error of a network that cannot run a load balancer, before the first run.

    It also checks the network's needs of this machine.
    """
    for scenario in chain.from_iterable(experiment.scenarios() for experiment in experiments):
        if network == MININET:
            limits.refuse_unsupported(scenario)
        else:
            virtual_refusals.refuse_unsupported(scenario)

    if network == MININET:
        refuse_if_unable()


def say_strain(experiment: Experiment) -> None:
    """Say on stderr if hosts send more than this machine's processes can carry."""
    # All scenarios of an experiment have the same fabric.
    scenario = next(experiment.model_copy(update={"policies": LIKE[:1]}).scenarios())
    line = limits.strain(scenario, processors())
    if line:
        click.echo(line, err=True)


def legend(records: Sequence[Record]) -> str:
    """Return the meaning of the columns of a table of records."""
    is_silent = not all(record.max_queue_layers for record in records)
    unreported = "; n. r.: not reported by BMv2" if is_silent else ""
    return LEGEND.format(unreported=unreported) + rare_legend(records)


def write(records: Sequence[Record], folder: Path | None, written: Written) -> bool:
    """Write records as JSON, with their folder, or as CSV, if requested; return whether."""
    if written.csv:
        write_csv([flat(row(record)) for record in records], written.csv)

    if written.as_json:
        rows = [json.loads(record.model_dump_json()) for record in records]
        click.echo(json.dumps({"folder": folder and str(folder), "records": rows}, indent=2))

    return written.as_json or written.csv == STDOUT


def show(
    finished: Finished,
    folder: Path | None,
    written: Written,
    picture: Path | None = None,
) -> None:
    """Write the table, or JSON or CSV; `folder` is None if the results are not stored."""
    hashed = [bool(outcome.digest) for outcome in finished.outcomes]
    if any(record.network == VIRTUAL for record in finished.records) and not all(hashed):
        click.echo(UNHASHED, err=True)

    if write(finished.records, folder, written):
        return

    console = terminal()
    console.print(results_table([("", finished.records)]))
    console.print(legend(finished.records))
    if any(outcome.state for outcome in finished.outcomes):
        console.print(state_table(finished.outcomes))
    if picture:
        console.print(f"Picture: {picture}")

    console.print(f"Results: {folder or 'not kept'}")


@dataclass(frozen=True, slots=True)
class Running:
    """The network of `ofan emulate`, and the options for its runs."""

    network: str
    switch: str | None
    compiler: Compiler | None
    detection: str | None
    hold: bool
    ports: tuple[str, ...]
    jobs: int
    show_registers: bool

    @property
    def is_real(self) -> bool:
        """Return whether the network is Mininet."""
        return self.network == MININET


def refuse_contradictions(asked: Asked, program: Path | None, running: Running) -> None:
    """Raise UsageError for options that need other options, or have no effect with them."""
    # An error, not ignored: the user expects an effect.
    if (running.switch or running.compiler or running.hold) and not running.is_real:
        raise click.UsageError("--switch, --compiler and --hold need --network mininet")

    has_own = bool(program or asked.host_rule)
    if not has_own and asked.file is None:
        raise click.UsageError(
            "no experiment given: name a file, or an experiment of Ofan, as in ofan emulate demo"
        )

    if has_own:
        refuse_unused_policies(asked.settings)

    if running.is_real and (running.jobs > 1 or running.show_registers):
        raise click.UsageError("--jobs and --show-registers need --network virtual")

    if running.hold and asked.policies and has_own:
        raise click.UsageError("--hold keeps one network: leave out --policies")


@click.command(epilog=EXAMPLES)
@click.argument("file", type=ShippedFile(), required=False)
@experiment_options
@click.option(
    "--network",
    type=Named([VIRTUAL, MININET], {"sim": "the simulator is ofan sim run"}),
    default=VIRTUAL,
    show_default=True,
    help="The network to run on.",
)
@program_option
@host_rule_option
@agent_packet_option
@like_option
@output_option("NAME")
@json_option
@csv_option
@parquet_option
@figure_option
@leave_out_option
@click.option(
    "--switch",
    type=click.Choice(tuple(TARGETS)),
    help=f"Mininet: the switch software [{SOFTSWITCH.name}].",
)
@click.option(
    "--compiler",
    type=click.Choice(get_args(Compiler)),
    help="Mininet: the compiler of Ofan's programs [ofan].",
)
@click.option(
    "--detection",
    type=click.Choice(get_args(Detection)),
    help="How the controller learns of failures [announced].",
)
@click.option(
    "--hold",
    is_flag=True,
    help="Mininet: keep the network for commands (ofan status, link, traffic, ...).",
)
@jobs_option
@click.option(
    "--show-registers",
    is_flag=True,
    help="Show registers and counters at the end; registers.json has all of them.",
)
@force_option
@click.option(
    "--pcap",
    "ports",
    multiple=True,
    metavar="PORT",
    help="Capture the packets of a port, edge0_1:3 or h0_1_0; repeatable.",
)
@grouped(asked=Asked, running=Running, written=Written, exports=Exports)
def emulate(
    program: Path | None, asked: Asked, running: Running, written: Written, exports: Exports
) -> None:
    """Run the experiment in FILE (with --program: by default the demo's), packet by packet.

    The results go into a folder. Your program or rule runs instead of the file's load balancers,
    together with those of --policies.
    """
    refuse_contradictions(asked, program, running)
    settings = asked.settings
    if running.detection:
        settings = (*settings, f"controller.detection={running.detection}")

    with one_line_errors(asked.file, settings):
        rule = host_rule_settings(asked.host_rule, None)
        packet = agent_packet_settings(asked.agent_packet)
        experiment = with_own(
            read_experiment(asked.file or DEMO, (*rule, *packet, *settings), True),
            program,
            asked.like,
            asked.policies,
        )
        loaded = _loaded(experiment, running, exports, written.force)
        name = "_".join([experiment.name, *folder_suffixes(experiment, loaded)])
        folder = click.get_current_context().with_resource(
            new_folder(written.output, Path("results") / name, written.force)
        )
        if loaded and running.compiler:
            raise click.UsageError(
                "--compiler is for Ofan's programs:"
                " for your own, give --program the JSON that p4c has written"
            )

        if running.hold:
            held = alone(experiment, loaded) if loaded else experiment
            network = _set_up(experiment, running, folder)(loaded.program if loaded else None)
            on_mininet.hold_on_mininet(held, network, click.echo)
            return

        finished = _finished(experiment, loaded, running, folder)
        say_odd(finished.runs)
        picture = _kept_or_shown(finished, folder, loaded, written)
        exports.write(finished.runs)

    show(finished, folder, written, picture)


def _loaded(
    experiment: Experiment, running: Running, exports: Exports, force: bool
) -> Loaded | None:
    """Return the user's program; raise the errors of all that cannot run, before the first run."""
    # All scenarios of an experiment have the same fabric. There are none if only a program runs,
    # instead of the file's load balancers.
    for scenario in islice(experiment.scenarios(), int(not running.is_real and not force)):
        refuse_too_large(scenario)

    # Compile before anything is built or written: a program with errors leaves no files.
    loaded = program_of(experiment)
    say_warnings(loaded.program.warnings if loaded else ())

    ours = experiment.without_rule() if loaded else experiment
    refuse_unsupported(running.network, *([alone(experiment, loaded)] if loaded else []), ours)
    say_misfits(ours.scenarios())
    scenarios = [*ours.scenarios(), *(runs_alone(experiment, loaded) if loaded else ())]
    exports.refuse_impossible(scenarios)
    say_unread(scenarios)
    return loaded


def _set_up(
    experiment: Experiment, running: Running, folder: Path
) -> Callable[[SwitchProgram | None], Setup]:
    """Return the function that starts a Mininet network with a program in its switches."""
    say_strain(experiment)
    return partial(
        on_mininet.setup,
        experiment,
        TARGETS[running.switch] if running.switch else SOFTSWITCH,
        running.ports,
        folder,
        compiler=running.compiler or "ofan",
    )


def _ports_of(experiment: Experiment, ports: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return the ports to capture; make their folder.

    Raises UnsupportedError for ports that the fabric lacks.
    """
    for port in ports:
        tap_named(experiment.fabric.tree, port)

    if ports:
        folder.mkdir(parents=True, exist_ok=True)

    return ports


def _finished(
    experiment: Experiment, loaded: Loaded | None, running: Running, folder: Path
) -> Finished:
    """Run all scenarios; the network decides the runner of a program (None: the policy's)."""
    runners: Runners
    if running.is_real:
        set_up = _set_up(experiment, running, folder)
        runners = lambda program: on_mininet.runner(set_up(program))  # noqa: E731
    else:
        runners = partial(
            virtually,
            has_state=running.show_registers,
            ports=_ports_of(experiment, running.ports, folder),
            folder=folder,
        )

    network, jobs = running.network, running.jobs
    with reporting() as reporter:
        if loaded:
            return run_beside(experiment, loaded, runners, reporter, network, jobs=jobs)

        return run_experiment(experiment, reporter, runners(None), network, jobs=jobs)


def _kept_or_shown(
    finished: Finished, folder: Path, program: Loaded | None, written: Written
) -> Path | None:
    """Write the results folder.

    If that fails, show the results before the error is raised.
    """
    try:
        with writing(folder):
            first = keep(finished, folder)
            return keep_beside(finished, program, folder) if program else first
    # A run may have taken hours: show its results if they cannot be written.
    except EmulationError:
        show(finished, None, written)
        raise
