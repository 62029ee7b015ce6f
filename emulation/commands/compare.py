"""`ofan compare`: one experiment on several networks in one table and one picture."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

from emulation.command_line import (
    DEFAULT_LIKE,
    Named,
    agent_packet_option,
    csv_option,
    experiment_options,
    force_option,
    host_rule_option,
    jobs_option,
    names,
    one_line_errors,
    output_option,
    say_misfits,
    say_odd,
    say_unread,
    say_warnings,
)
from emulation.commands import on_mininet
from emulation.commands.emulate import MININET, read_experiment, refuse_unsupported
from emulation.commands.experiment_run import (
    VIRTUAL,
    ProgressCall,
    Reporter,
    in_order,
    reporting,
    run_experiment,
    virtually,
)
from emulation.commands.own_program import runs_of
from emulation.errors import FailedRunError
from emulation.mininet import limits
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.targets import SOFTSWITCH
from emulation.option_groups import Asked, Written, grouped
from emulation.outcomes.comparison import Row, compared, comparison_table, differences, verdicts
from emulation.outcomes.folder import (
    EXPERIMENT,
    RESULTS,
    complete,
    kept_toml,
    new_folder,
    write_parquet,
)
from emulation.programs.own_program import (
    Loaded,
    alone,
    own_program,
    refuse_unread,
    runs_alone,
)
from emulation.programs.switch_program import has_host_pointers
from emulation.shipped_file import ShippedFile
from emulation.virtual import refusals as virtual_refusals
from emulation.virtual.size import refuse_too_large
from fattree.experiment.model import Experiment, OwnProgram, Scenario
from fattree.experiment.own import LIKE
from fattree.records.record import Record, flat, row, table
from fattree.records.tables import terminal, write_csv
from fattree.texts.experiment_file import agent_packet_settings, host_rule_settings

SIM = "sim"
NETWORKS = (VIRTUAL, SIM, MININET)
PICTURE = "comparison"
LEGEND = (
    "over: CCT above the bound; queue: the longest of any switch port, in packets. "
    "Green: equal to the first network in every seed; red: different, and by how much."
)

REAL_PACKETS = "mininet_k4"
EXAMPLES = f"""
\b
Examples:
  ofan compare demo
  ofan compare demo --host-rule fast_labels.py --policies host_pkt,host_pkt_ar
  ofan compare demo_failure --policies ofan,simple_rr,host_dr \\
      --seeds 3 --jobs 2
  ofan compare demo --program two_choices.p4 --policies ofan,jsq
  sudo $(which ofan) compare {REAL_PACKETS} --policies all \\
      --networks {",".join(NETWORKS)}
"""


@dataclass(frozen=True, slots=True)
class Running:
    """The networks of `ofan compare`, and the options for their runs."""

    networks: tuple[str, ...]
    jobs: int


def refuse_contradictions(running: Running) -> None:
    """Raise UsageError for options that the networks do not take."""
    if running.jobs > 1 and MININET in running.networks:
        raise click.UsageError("--jobs is for the virtual network and the simulator")


def refuse_what_cannot_run(network: str, experiment: Experiment) -> None:
    """Raise the error of a network that refuses the experiment, before any network runs."""
    if network == MININET:
        refuse_if_unable()

    if network != SIM:
        refuse_unsupported(network, experiment)
        return

    # The simulator's kernels take half a second to import.
    from sim.arrays.network import refuse_unsupported as refuse_kernels  # noqa: PLC0415

    for scenario in experiment.scenarios():
        refuse_kernels(scenario)


def refuse_program(networks: Sequence[str], scenario: Scenario, chosen: Loaded) -> None:
    """Raise the error of a network that refuses the user's program; scenarios differ in seeds."""
    if VIRTUAL in networks:
        virtual_refusals.refuse_unsupported(scenario)

    if MININET in networks:
        limits.refuse_unsupported(scenario)

    if SIM in networks:
        # As in `_simulate`.
        from emulation.virtual.simulated import refuse

        refuse(scenario, chosen.program)


def run_on(
    network: str,
    experiment: Experiment,
    reporter: Reporter,
    folder: Path,
    *,
    jobs: int = 1,
) -> tuple[Record, ...]:
    """Run an experiment on a network of NETWORKS.

    Raises the network's errors, those of the simulator as FailedRunError.
    """
    if network == SIM:
        return simulated(experiment, reporter, jobs=jobs)

    if network == MININET:
        run = on_mininet.runner(on_mininet.setup(experiment, SOFTSWITCH, (), folder))
        return run_experiment(experiment, reporter, run, network).records

    return run_experiment(experiment, reporter, virtually(), jobs=jobs).records


def run_program_on(
    network: str,
    experiment: Experiment,
    chosen: Loaded,
    reporter: Reporter,
    folder: Path,
    *,
    jobs: int = 1,
) -> tuple[Record, ...]:
    """Run a user's program instead of an experiment's load balancers; raises as `run_on`."""
    mine = alone(experiment, chosen)
    if network == SIM:
        return simulated(mine, reporter, str(chosen.path), jobs=jobs)

    if network == MININET:
        build = on_mininet.setup(mine, SOFTSWITCH, (), folder, chosen.program)
        run = on_mininet.runner(build)
        return run_experiment(mine, reporter, runs_of(run, chosen), network).records

    run = runs_of(virtually(chosen.program), chosen)
    return run_experiment(mine, reporter, run, network, jobs=jobs).records


def simulated(
    experiment: Experiment, reporter: Reporter, program: str | None = None, *, jobs: int = 1
) -> tuple[Record, ...]:
    """Run an experiment in the simulator, with kernels or with the user's program."""
    scenarios = [
        scenario.model_copy(update={"program": program}) for scenario in experiment.scenarios()
    ]
    records = []
    with reporter.experiment(experiment):
        for record in in_order(_simulate, scenarios, reporter, jobs):
            records.append(record)
            reporter.finish(record)

    return tuple(records)


def _simulate(scenario: Scenario, _on_progress: ProgressCall) -> Record:
    # Importing the simulator loads its compiled kernels, which other networks do not need.
    from emulation.virtual.simulated import simulate
    from sim import SimulationError  # noqa: PLC0415

    # The simulator's errors do not name their run.
    try:
        return simulate(scenario)
    except SimulationError as error:
        label, seed = scenario.balancer_label, scenario.seed
        raise FailedRunError(f"{SIM}, {label}, seed {seed}: {error}") from None


def keep(
    folder: Path, experiment: Experiment, records: Sequence[Record], rows: Sequence[Row]
) -> Path:
    """Write records and picture; return the PNG."""
    from emulation.outcomes.comparison_plots import networks_figure
    from emulation.outcomes.plots import save

    # One table for all networks: each row names its network.
    with complete(folder) as fresh:
        (fresh / EXPERIMENT).write_text(kept_toml(experiment), encoding="utf-8")
        write_parquet(table(records), fresh / RESULTS)
        drawn = save(networks_figure(rows), fresh, PICTURE)[0].name

    return folder / drawn


def show(rows: Sequence[Row], picture: Path, scenarios: Iterable[Scenario]) -> None:
    """Print the table and its verdicts."""
    console = terminal()
    console.print(comparison_table(rows))
    console.print(*verdicts(rows), sep="\n")
    console.print(LEGEND, style="dim")
    console.print(f"Picture: {picture}")


@click.command(epilog=EXAMPLES)
@click.argument("file", type=ShippedFile())
@experiment_options
@click.option(
    "--program",
    "programs",
    multiple=True,
    type=ShippedFile(),
    metavar="FILE",
    help="Your own P4 program, beside --policies; repeatable.",
)
@click.option(
    "--like",
    type=Named(LIKE),
    metavar="POLICY",
    help="The load balancer whose groups and hosts your programs or rule get"
    f" [{DEFAULT_LIKE}; a rule alone: host_pkt_ar].",
)
@host_rule_option
@agent_packet_option
@click.option(
    "--networks",
    metavar="NETWORK,...",
    callback=names(NETWORKS, least=2),
    default=f"{VIRTUAL},{SIM}",
    show_default=True,
    help="Networks to compare; the first is the reference.",
)
@jobs_option
@output_option("NAME_compared")
@force_option
@click.option(
    "--json", "as_json", is_flag=True, help="Write records and differences to stdout as JSON."
)
@csv_option
@grouped(asked=Asked, running=Running, written=Written)
def compare(programs: tuple[Path, ...], asked: Asked, running: Running, written: Written) -> None:
    """Run the experiment in FILE on several networks and show where they differ."""
    assert asked.file is not None
    refuse_contradictions(running)
    with one_line_errors(asked.file, asked.settings):
        rule = host_rule_settings(asked.host_rule, None if programs else asked.like)
        packet = agent_packet_settings(asked.agent_packet)
        experiment = read_experiment(asked.file, (*rule, *packet, *asked.settings))
        is_checked = VIRTUAL in running.networks and not written.force
        # All scenarios of an experiment have the same fabric.
        for scenario in islice(experiment.scenarios(), int(is_checked)):
            refuse_too_large(scenario)

        # Compiled before anything runs.
        owned = [_own(experiment, program, asked.like) for program in programs]
        refuse_unread(owned, experiment.defines)
        say_warnings(line for loaded in owned for line in loaded.program.warnings)

        # Programs run in place of the file's load balancers, beside those of the command line.
        named = asked.policies or (() if owned else experiment.policies)
        experiment = experiment.model_copy(update={"policies": named})
        scenarios = _refused(experiment, owned, running.networks)
        usual = Path("results") / f"{experiment.name}_compared"
        folder = click.get_current_context().with_resource(
            new_folder(written.output, usual, written.force)
        )
        records = _records(experiment, owned, running, folder)
        say_odd(zip(scenarios * len(running.networks), records, strict=True))
        rows = compared(records)
        picture = keep(folder, experiment, records, rows)

    if written.csv:
        write_csv([flat(row(record)) for record in records], written.csv)

    if written.as_json:
        # Through JSON, which turns a record's numbers into plain ones.
        plain = [json.loads(record.model_dump_json()) for record in records]
        click.echo(
            json.dumps(
                {"folder": str(folder), "differences": differences(rows), "records": plain},
                indent=2,
            )
        )
    elif written.csv is None:
        show(rows, picture, scenarios)


def _own(experiment: Experiment, program: Path, like: str | None) -> Loaded:
    """Return a program of the user's, compiled for the experiment's switches."""
    return own_program(
        OwnProgram(file=str(program), like=like or DEFAULT_LIKE),
        experiment.fabric.tree,
        experiment.defines,
        has_host_pointers(experiment),
    )


def _ours(experiment: Experiment, owned: Sequence[Loaded]) -> Experiment:
    """Return the runs of our load balancers: a host rule runs with programs, if there are any."""
    return experiment.without_rule() if owned else experiment


def _refused(
    experiment: Experiment, owned: Sequence[Loaded], networks: Sequence[str]
) -> list[Scenario]:
    """Return all scenarios; raise the errors of networks that cannot run them."""
    ours = _ours(experiment, owned)
    for network in networks:
        refuse_what_cannot_run(network, ours)

    for loaded in owned:
        refuse_program(networks, next(alone(experiment, loaded).scenarios()), loaded)

    scenarios = [
        *ours.scenarios(),
        *(run for loaded in owned for run in runs_alone(experiment, loaded)),
    ]
    say_unread(scenarios)
    say_misfits(ours.scenarios() if {VIRTUAL, MININET} & {*networks} else ())
    return scenarios


def _records(
    experiment: Experiment, owned: Sequence[Loaded], running: Running, folder: Path
) -> list[Record]:
    """Run all scenarios on each network in turn."""
    ours = _ours(experiment, owned)
    with reporting() as reporter:
        return [
            record
            for network in running.networks
            for network_records in (
                run_on(network, ours, reporter, folder, jobs=running.jobs) if ours.runs else (),
                *(
                    run_program_on(network, experiment, loaded, reporter, folder, jobs=running.jobs)
                    for loaded in owned
                ),
            )
            for record in network_records
        ]
