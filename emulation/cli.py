"""`ofan emulate`: run an experiment file on an emulated network."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from controller.errors import ControllerError
from emulation import mininet_run
from emulation.compiler import CompileError
from emulation.errors import EmulationError
from emulation.experiment_run import VIRTUAL, Finished, keep, reporting, run_experiment, virtually
from emulation.programs import load_program
from emulation.softswitch.errors import SoftswitchError
from emulation.switch_processes import SwitchKind
from emulation.tables import results_table
from fabric.errors import FabricError
from fabric.experiment import Experiment
from fabric.experiment_file import load_experiment

BAD_INPUT = (FabricError, CompileError, ControllerError, EmulationError, SoftswitchError)
TABLE_WIDTH = 132
MININET = "mininet"
LEGEND = (
    "E>A to E>H: the longest queue of the layer in packets (E edge, A aggregation, C core, H host); "
    "lost: packets sent into a failed link."
)

EXAMPLES = """
\b
Examples:
  ofan emulate experiments/demo.toml
  ofan emulate experiments/demo.toml --set fabric.k=8 --set policies=ofan,host_pkt --seeds 3
  ofan emulate experiments/demo_failure.toml --json | jq '.records[] | {policy, cct_ps}'
  sudo .venv/bin/ofan emulate experiments/mininet_k4.toml --network mininet --set policies=ofan --hold
  ofan emulate experiments/demo.toml --p4 my_balancer.p4 --set policies=simple_rr
"""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what is wrong with the user's input into a click error: one line, exit code 2."""
    try:
        yield
    except BAD_INPUT as error:
        raise click.ClickException(str(error)) from None


def read_experiment(file: Path, settings: tuple[str, ...], seeds: int | None) -> Experiment:
    """Read an experiment file with the overrides of the command line; raises ExperimentError."""
    return load_experiment(file, [*settings, *([f"seeds={seeds}"] if seeds is not None else [])])


def show(finished: Finished, folder: Path, as_json: bool) -> None:
    """Write the table, or JSON, to stdout."""
    if as_json:
        records = [json.loads(record.model_dump_json()) for record in finished.records]
        click.echo(json.dumps({"folder": str(folder), "records": records}, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else TABLE_WIDTH)
    console.print(results_table([("", finished.records)]))
    console.print(LEGEND)
    console.print(f"Results: {folder}")


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the file; repeatable.")
@click.option("--seeds", type=click.IntRange(1), help="How many seeds to run, from the file's on.")
@click.option("--network", type=click.Choice([VIRTUAL, MININET]), default=VIRTUAL, show_default=True, help="Where to run.")
@click.option("--p4", type=click.Path(path_type=Path, dir_okay=False), help="Run this program (.p4, or BMv2 .json).")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Results folder [results/NAME].")
@click.option("--json", "as_json", is_flag=True, help="Write the records to stdout as JSON.")
@click.option("--switch", type=click.Choice(["softswitch", "bmv2"]), help="Mininet: which switch [softswitch].")
@click.option("--hold", is_flag=True, help="Mininet: keep the network for commands (ofan status, link, traffic, ...).")
@click.option("--pcap", "ports", multiple=True, metavar="PORT", help="Mininet: capture edge0_1:3 or h0_1_0; repeatable.")
def emulate(
    file: Path,
    settings: tuple[str, ...],
    seeds: int | None,
    network: str,
    p4: Path | None,
    output: Path | None,
    as_json: bool,
    switch: SwitchKind | None,
    hold: bool,
    ports: tuple[str, ...],
) -> None:
    """Run the experiment in FILE, packet by packet, and keep its results in a folder."""
    if network != MININET and (switch or hold or ports):
        raise click.UsageError("--switch, --hold and --pcap need --network mininet")
    with one_line_errors():
        experiment = read_experiment(file, settings, seeds)
        program = load_program(p4, experiment.fabric.k // 2) if p4 else None
        folder = output or Path("results") / experiment.name
        run = virtually(program)
        if network == MININET:
            setup = mininet_run.setup(experiment, switch or "softswitch", ports, folder, program)
            run = mininet_run.runner(setup)
            if hold:
                mininet_run.hold_on_mininet(experiment, setup, click.echo)
                return
        with reporting() as reporter:
            finished = run_experiment(experiment, reporter, run, network)
        keep(finished, folder)
    show(finished, folder, as_json)
