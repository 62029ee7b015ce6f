"""`ofan sim run` and `ofan sim sweep`: kernels, or P4 programs instead of them."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from emulation.command_line import (
    BAD_INPUT,
    Named,
    agent_packet_option,
    chosen,
    experiment_options,
    host_rule_option,
    say_misfits,
    say_odd,
    say_unread,
    say_warnings,
)
from emulation.commands.simulated_files import TABLES, claimed, keep, shown_at_least, write_flows
from emulation.option_groups import Asked, grouped
from emulation.programs.own_program import Loaded, refuse_unread
from emulation.programs.program_files import Files, packed
from emulation.shipped_file import ShippedFile
from fattree.experiment.model import BUILT_IN, OwnProgram, Scenario, Settings
from fattree.experiment.own import LIKE
from fattree.records.record import Record
from fattree.records.tables import STDOUT, write_csv
from fattree.texts.experiment_file import agent_packet_settings, host_rule_settings
from fattree.texts.sweep_file import load_sweep
from hostagent.own_rule import scenario_rule
from hostagent.rules import refuse_unable_hosts
from sim.arrays.network import form_of, refuse_unsupported
from sim.cli import (
    JOBS,
    PICTURES,
    THREADS,
    Exports,
    FilePath,
    csv_option,
    figure_option,
    in_a_folder,
    leave_out_option,
    one_line_errors,
    parquet_option,
    read_experiment,
    say_how_matrices_are_read,
    show,
)
from sim.runs.engine import prepare
from sim.sweeps.cost import are_short
from sim.sweeps.own_folder import own_folder
from sim.sweeps.progress import reporting
from sim.sweeps.sweeping import Run, simulate, sweep
from sim.sweeps.tables import csv_rows

RUN_EXAMPLES = """
\b
Examples:
  ofan sim run --k 8 --policies ofan,jsq --matrix permutation \\
      --message-bytes 1MiB --seeds 10
  ofan sim run demo --k 16 --policies all
  ofan sim run --k 32 --program two_choices.p4 --policies ofan,jsq --threads 2
  ofan sim run --k 16 --policies all --as p4
  ofan sim run --k 16 --host-rule fast_labels.py \\
      --policies host_pkt,host_pkt_ar
  ofan sim run --k 8 --policies ofan,jsq --seeds 10 \\
      --flows flows.parquet --cdf times.png
  ofan sim run llama_ring --policies ofan --flows step.pftrace
  ofan sim run --failure-rate 0.01 --convergence-rtt 2 --json \\
      | jq '.runs[] | {policy, seed, increase}'
"""
SWEEP_EXAMPLES = """
\b
Examples:
  ofan sim sweep sweep.toml --jobs 2 --figure sweep.png
  ofan sim sweep sweep.toml --program two_choices.p4 --like jsq
  ofan sim sweep sweep.toml --store sweep.sqlite \\
      --scheduler tcp://127.0.0.1:8786
"""

P4 = "p4"
DEFAULT_LIKE = str(OwnProgram.model_fields["like"].default)
program_option = click.option(
    "--program",
    "programs",
    multiple=True,
    type=ShippedFile(),
    metavar="FILE",
    help="Run your own P4 program (.p4, or BMv2 .json) in the switches; repeatable.",
)
like_option = click.option(
    "--like",
    type=Named(LIKE),
    metavar="POLICY",
    help="The load balancer whose groups and hosts your programs or rule get."
    f" [{DEFAULT_LIKE}; a rule alone: host_pkt_ar]",
)
output_folder_option = click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also keep a results folder: experiment, runs, flows, pictures.",
)
replace_option = click.option("--force", is_flag=True, help="Replace the results in --output.")
as_option = click.option(
    "--as",
    "form",
    type=click.Choice(["kernel", P4]),
    default="kernel",
    show_default=True,
    help="Run load balancers as kernels or as P4 programs; results are equal.",
)


def of(like: str | None) -> str:
    """Return the load balancer that gives a program its groups and hosts."""
    return like or DEFAULT_LIKE


def called(settings: Settings, file: Path | None) -> str:
    """Return the name of an experiment, or its file's where it has none."""
    is_named = settings.name != Settings.model_fields["name"].default
    return settings.name if is_named or file is None else file.stem


def with_programs(
    scenarios: Iterable[Scenario], alike: Iterable[Scenario], programs: Sequence[Path], form: str
) -> list[Scenario]:
    """Return scenarios, as P4 programs if requested, then those of the user's programs.

    Every program runs the scenarios of `alike`.
    """
    runs = list(scenarios)
    if form == P4:
        runs = [scenario.model_copy(update={"program": BUILT_IN}) for scenario in runs]

    bases = list(alike)
    return runs + [
        scenario.model_copy(update={"program": str(program)})
        for program in programs
        for scenario in bases
    ]


def heeding(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return scenarios, those of our load balancers without the macros that are swept, each once.

    Our programs read none of the user's macros: all values would give the same run.
    """
    shared = set.intersection(*(set(scenario.defines) for scenario in scenarios))
    return list(
        dict.fromkeys(
            scenario.model_copy(update={"defines": tuple(sorted(shared))})
            if scenario.program in (None, BUILT_IN)
            else scenario
            for scenario in scenarios
        )
    )


def ready(
    scenarios: Sequence[Scenario], threads: int, is_here: bool = True, flows: Path | None = None
) -> Run:
    """Return a function that runs a scenario; for runs on this machine, compile kernels first.

    Each run's flows are written to the folder `flows`, if given.

    Raises ExperimentError for a wrong host rule of the user's.
    """
    for scenario in scenarios:
        scenario_rule(scenario)
        # Features that hosts or kernels lack are refused before any run; for programs see below.
        if scenario.program is None:
            refuse_unsupported(scenario)
        else:
            refuse_unable_hosts(scenario)

    if is_here:
        prepare_kernels(scenarios)

    programmed = [scenario for scenario in scenarios if scenario.program is not None]
    if not programmed:
        return partial(simulate, threads=threads, flows=flows)

    # The compiler, P4Runtime and Scapy, which kernels do not need.
    from emulation.virtual import simulated

    # Errors in a program are reported before any run, once for every size of switches.
    try:
        needed = {_needed(entry): entry for entry in programmed}.values()
        for reason in {simulated.check(scenario) for scenario in needed} - {""}:
            click.echo(f"the P4 program runs as Python: {reason}", err=True)

        yours = [entry for entry in programmed if entry.program != BUILT_IN]
        owned = [simulated.own_of(entry) for entry in yours]
        refuse_unread(owned, programmed[0].defines)
    except BAD_INPUT as error:
        raise click.ClickException(str(error)) from None

    say_warnings(line for loaded in owned for line in loaded.program.warnings)
    say_misfits(entry for entry in programmed if entry.program == BUILT_IN)
    if is_here:
        simulated.prepare()
        return partial(simulated.simulate, threads=threads, flows=flows)

    # Workers on other machines cannot read the user's files.
    files = _files([str(entry.program) for entry in yours], owned)
    return partial(simulated.simulate, threads=threads, flows=flows, programs=files)


def _files(programs: Sequence[str], owned: Sequence[Loaded]) -> dict[str, Files]:
    """Return the files of programs; each may have been loaded with several sets of macros."""
    included: dict[str, list[str]] = {}
    for program, loaded in zip(programs, owned, strict=True):
        included.setdefault(program, []).extend(loaded.program.included)

    return {program: packed(Path(program), names) for program, names in included.items()}


def prepare_kernels(scenarios: Iterable[Scenario]) -> None:
    """Compile or load the kernels of the scenarios without a program."""
    for form in {form_of(scenario) for scenario in scenarios if scenario.program is None}:
        prepare(form)


def _needed(scenario: Scenario) -> tuple[object, ...]:
    """Return the settings that decide whether the simulator can run a program."""
    return (
        scenario.program,
        scenario.defines,
        scenario.tree,
        scenario.agent_packet,
        scenario.packets,
        scenario.load_balancer,
        scenario.controller,
        scenario.latencies_ps,
    )


@dataclass(frozen=True, slots=True)
class Running:
    """The user's programs, the form of our load balancers, the threads of a run."""

    programs: tuple[Path, ...]
    form: str
    threads: int


@dataclass(frozen=True, slots=True)
class Tables:
    """The forms in which finished runs are written."""

    as_json: bool
    csv: Path | None

    def write(self, runs: Sequence[tuple[Scenario, Record]]) -> None:
        """Write the CSV file, if requested."""
        if self.csv:
            write_csv(csv_rows(runs), self.csv)


def refuse_packets_without_bytes(asked: Asked, running: Running) -> None:
    """Raise UsageError for the user's packets if only kernels run, which have no bytes."""
    if asked.agent_packet and not running.programs and running.form != P4:
        raise click.UsageError(
            "--agent-packet needs --program or --as p4: kernels have no packet bytes"
        )


@click.command(epilog=RUN_EXAMPLES)
@click.argument("file", required=False, type=ShippedFile())
@experiment_options
@program_option
@host_rule_option
@agent_packet_option
@like_option
@as_option
@JOBS
@THREADS
@click.option("--json", "as_json", is_flag=True, help="Write the runs to stdout as JSON.")
@csv_option
@parquet_option
@figure_option
@leave_out_option
@output_folder_option
@replace_option
@click.option(
    "--flows",
    type=FilePath,
    callback=in_a_folder,
    help="Also write the flows to a file: .csv, .parquet, or .pftrace (for ui.perfetto.dev).",
)
@click.option(
    "--cdf",
    type=FilePath,
    callback=in_a_folder,
    help="Draw the distribution of the flows' times: .png, .svg or .pdf.",
)
@grouped(asked=Asked, running=Running, tables=Tables, exports=Exports)
def run(
    asked: Asked,
    running: Running,
    jobs: int,
    tables: Tables,
    exports: Exports,
    output: Path | None,
    force: bool,
    flows: Path | None,
    cdf: Path | None,
) -> None:
    """Simulate the experiment of FILE or of the options: every load balancer, every seed."""
    kept = own_folder("ofan-flows-") if flows or cdf or output else nullcontext()
    with one_line_errors(asked.file, asked.settings), kept as folder:
        for path, kinds in ((flows, TABLES), (cdf, PICTURES)):
            if path and path.suffix not in kinds:
                raise click.UsageError(f"{path}: its name must end in {' or '.join(kinds)}")

        refuse_packets_without_bytes(asked, running)
        if output and running.programs:
            raise click.UsageError(
                "--output keeps no programs: ofan emulate --program does, or write --parquet"
            )

        experiment = read_experiment(asked.file, _settings(asked, running))

        # A program runs instead of the default or of the file's load balancers. A host rule runs
        # with the programs, if there are any.
        named = not running.programs or bool(asked.policies)
        ours = experiment.without_rule() if running.programs else experiment
        scenarios = with_programs(
            ours.scenarios() if named else (),
            experiment.alone(of(asked.like)).scenarios(),
            running.programs,
            running.form,
        )
        exports.refuse_impossible(scenarios)
        say_how_matrices_are_read(scenarios)
        say_unread(scenarios)
        results = claimed(output, force) if output else None

        # Before the bar, which a line about compiling would break, and before the processes start,
        # as each would compile.
        run_one = ready(scenarios, running.threads, flows=folder)
        needed = 1 if jobs > 1 and are_short(scenarios) else jobs
        runs = _swept(scenarios, called(experiment, asked.file), jobs=needed, run=run_one)
        with shown_at_least(runs, tables.csv, as_json=tables.as_json):
            tables.write(runs)
            exports.write(runs)
            if folder:
                write_flows(scenarios, folder, flows, cdf)
                if results:
                    keep(experiment, runs, folder, results)

    # Last: files are written even if the reader of stdout stops early.
    if tables.as_json or tables.csv != STDOUT:
        show(runs, tables.as_json, **({"folder": str(results)} if results else {}))


def _swept(scenarios: list[Scenario], name: str, **options: Any) -> list[tuple[Scenario, Record]]:
    """Run all scenarios under a bar of progress with a name; say which failures came too late."""
    with reporting(name) as report:
        records = sweep(
            scenarios, report=report, watch=report.watch, expect=report.expect, **options
        )

    runs = list(zip(scenarios, records, strict=True))
    say_odd(runs)
    return runs


def _settings(asked: Asked, running: Running) -> list[str]:
    """Return all overrides of an experiment's keys, those of the user's own files first."""
    rule = host_rule_settings(asked.host_rule, None if running.programs else asked.like)
    packet = agent_packet_settings(asked.agent_packet)
    return [*rule, *packet, *chosen(asked.policies), *asked.settings]


@click.command("sweep", epilog=SWEEP_EXAMPLES)
@click.argument("file", type=ShippedFile())
@experiment_options
@program_option
@host_rule_option
@agent_packet_option
@like_option
@as_option
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes.  [one for each processor; 1 for short runs]"
)
@THREADS
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the workers of this Dask scheduler (tcp://host:port).",
)
@click.option(
    "--store", type=FilePath, help="SQLite file for finished runs.  [results/NAME.sqlite]"
)
@click.option("--json", "as_json", is_flag=True, help="Write the runs to stdout as JSON.")
@csv_option
@parquet_option
@figure_option
@leave_out_option
@grouped(asked=Asked, running=Running, tables=Tables, exports=Exports)
def sweep_command(
    asked: Asked,
    running: Running,
    jobs: int | None,
    scheduler: str | None,
    store: Path | None,
    tables: Tables,
    exports: Exports,
) -> None:
    """Simulate every combination of the sweep FILE.

    Runs that are already in the store are not computed again. Programs run together with the file's
    load balancers.
    """
    assert asked.file is not None
    programs = running.programs
    with one_line_errors(asked.file, asked.settings):
        refuse_packets_without_bytes(asked, running)
        swept = load_sweep(asked.file, _settings(asked, running))
        ruled = [scenario for scenario in swept if scenario.host_rule] if programs else []
        # For a program, scenarios that differ only in the load balancer are the same.
        alike = [
            scenario.model_copy(update={"policy": of(asked.like)}) for scenario in ruled or swept
        ]
        ours = [scenario for scenario in swept if scenario.host_rule is None] if ruled else swept
        combined = with_programs(ours, dict.fromkeys(alike), programs, running.form)
        say_how_matrices_are_read(combined)
        say_unread(combined)
        scenarios = heeding(combined)
        exports.refuse_impossible(scenarios)
        kept = store or Path("results") / f"{scenarios[0].name}.sqlite"

        # Workers on other machines compile for themselves.
        run_one = ready(scenarios, running.threads, is_here=scheduler is None)
        options = {"store": kept, "jobs": jobs, "scheduler": scheduler, "run": run_one}
        runs = _swept(scenarios, called(scenarios[0], asked.file), **options)
        tables.write(runs)
        exports.write(runs)

    if tables.as_json or tables.csv != STDOUT:
        written = {"csv": tables.csv, "parquet": exports.parquet, "figure": exports.figure}
        said = {name: str(path) for name, path in written.items() if path}
        show(runs, tables.as_json, store=str(kept), **said)
