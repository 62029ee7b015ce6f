"""Commands for a held emulation: links, the state of switches, traffic, a P4Runtime shell."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from emulation.held.client import ControlError, NotHeldError, ask
from emulation.held.messages import (
    ConvergenceState,
    GetAddress,
    GetPointers,
    GetRegisters,
    GetSchedule,
    GetStatus,
    Installed,
    LinkState,
    ListLinks,
    Request,
    SetLink,
    SetRate,
    StartTraffic,
    StopTraffic,
)
from emulation.outcomes.switch_state import in_words, short_name
from emulation.remedies import SHELL
from fattree.errors import ExperimentError
from fattree.experiment.failures import LEAST_SHARE
from fattree.experiment.sizes import size_in_bytes
from fattree.records.csv_option import CsvOption
from fattree.records.tables import Folding, terminal, write_csv
from fattree.routes.slow_links import at_rate
from hostagent.isolation import clean_environment, shell_python

WITHOUT_ROOT = (
    "without root, `ofan serve FILE` shows a network in virtual time, with links to break"
)
# BMv2 does not report drops at full queues.
NOT_REPORTED = "not reported"
AnswerT = TypeVar("AnswerT")

as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
as_csv = click.option(
    "--csv",
    cls=CsvOption,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the rows to a CSV file (-: stdout).",
)


def answer(request: Request[AnswerT]) -> AnswerT:
    """Return the emulation's answer; raises ClickException with its one line."""
    try:
        return ask(request)
    except NotHeldError as error:
        raise click.ClickException(f"{error}; {WITHOUT_ROOT}") from error
    except ControlError as error:
        raise click.ClickException(str(error)) from error


def show(columns: Sequence[str], rows: Iterable[Iterable[object]], keys: int = 1) -> None:
    """Print a table."""
    table = Folding(*columns, keys=keys, texts=range(len(columns)), box=None)
    for row in rows:
        table.add_row(*map(str, row))

    terminal().print(table)


def write(value: Any, rows: Sequence[Any], as_json: bool, csv: Path | None) -> bool:
    """Write an answer as JSON, or its rows as CSV, if requested; return whether."""
    if csv:
        write_csv([asdict(row) for row in rows], csv)
    if as_json:
        click.echo(json.dumps(value, indent=2, default=asdict))

    return as_json or csv is not None


@click.group(no_args_is_help=True)
def link() -> None:
    """Break, repair and list the links of the held emulation."""


@link.command(epilog="\b\nExample:\n  ofan link down edge0_0-agg0_1")
@click.argument("name")
def down(name: str) -> None:
    """Fail a link: both of its ends go down, and the controller learns of it."""
    _set_link(name, False)


@link.command(epilog="\b\nExample:\n  ofan link up edge0_0-agg0_1")
@click.argument("name")
def up(name: str) -> None:
    """Bring a failed link back."""
    _set_link(name, True)


@link.command(epilog="\b\nExample:\n  ofan link degrade agg0_0-core0_1 --rate 0.25")
@click.argument("name")
@click.option(
    "--rate",
    type=click.FloatRange(LEAST_SHARE, 1, max_open=True),
    required=True,
    metavar="SHARE",
    help="The share of its rate at which the link then sends, in both directions.",
)
def degrade(name: str, rate: float) -> None:
    """Slow a link down; the controller learns of it and plans for it."""
    _set_rate(name, rate)


@link.command(epilog="\b\nExample:\n  ofan link restore agg0_0-core0_1")
@click.argument("name")
def restore(name: str) -> None:
    """Give a slow link its full rate again."""
    _set_rate(name, 1)


def _set_rate(name: str, rate: float) -> None:
    change = answer(SetRate(name, rate))
    follow = "routes do not change in this experiment (convergence_rtt = inf, or detection)"
    then = follow if change.installed_ms is None else _installed(change)
    click.echo(f"{change.link} is {at_rate(rate)}; {then}")


def _set_link(name: str, is_up: bool) -> None:
    change = answer(SetLink(name, is_up))
    click.echo(f"{change.link} is {'up' if is_up else 'down'}; {_installed(change)}")


def _installed(change: Installed) -> str:
    if change.installed_ms is None:
        return "routes never change in this experiment (convergence_rtt = inf)"

    writes = f"{change.updates} updates on {change.switches} switches"
    return f"new schedules installed after {change.installed_ms:.1f} ms ({writes})"


@link.command("list")
@as_json
@as_csv
def list_links(as_json: bool, csv: Path | None) -> None:
    """List the inter-switch links and their state."""
    links = answer(ListLinks())
    if write(links, links, as_json, csv):
        return

    show(
        ("link", "state", "lost"),
        ((row.link, _state(row), row.lost_to_failure) for row in links),
    )


def _state(row: LinkState) -> str:
    if not row.up:
        return "DOWN"

    return "up" if row.rate == 1 else f"up, {at_rate(row.rate)}"


@click.command(
    epilog="\b\nExamples:\n  ofan status\n  ofan status --json | jq '.switches[].dropped'"
)
@as_json
@as_csv
def status(as_json: bool, csv: Path | None) -> None:
    """Show the held emulation, and every switch's pipeline, entries, failed links and drops."""
    state = answer(GetStatus())
    if write(state, state.switches, as_json, csv):
        return

    click.echo(
        f"{state.name}: {state.fabric}, {state.policy}, seed {state.seed},"
        f" {state.switch} switches, process {state.process}"
    )
    click.echo(f"traffic: {state.traffic}")
    click.echo(f"failed links: {', '.join(state.failed) or 'none'}")
    if state.slow:
        slow = (f"{name} {at_rate(rate)}" for name, rate in state.slow.items())
        click.echo(f"slow links: {', '.join(slow)}")

    avoided = ", ".join(state.avoided) or "nothing"
    spared = f", and spare: {', '.join(state.spared)}" if state.spared else ""
    click.echo(f"detection: {state.detection}; routes avoid: {avoided}{spared}")

    for change in state.convergences[-1:]:
        click.echo(f"last change: {_converged(change)}")

    for switch in state.switches:
        if switch.lost_contact:
            click.echo(f"no contact: {switch.lost_contact}")

    columns = (
        "switch",
        "pipeline",
        "entries",
        "received",
        "sent",
        "queue drops",
        "lost on links",
        "max queue B",
        "failed",
    )

    show(
        columns,
        (
            (
                row.name,
                row.pipeline,
                row.entries,
                row.received,
                row.sent,
                NOT_REPORTED if row.dropped is None else row.dropped,
                row.lost_to_failure,
                NOT_REPORTED if row.max_queue_bytes is None else row.max_queue_bytes,
                ", ".join(row.failed) or "-",
            )
            for row in state.switches
        ),
    )


def _converged(change: ConvergenceState) -> str:
    """Return a convergence in one line: the changed links, and each stage's time."""
    links = [f"{link} down" for link in change.links_down]
    links += [f"{link} up" for link in change.links_up]
    links += [f"{link} {at_rate(rate)}" for link, rate in change.rates.items()]
    few = ", ".join(links[:3]) + (f" and {len(links) - 3} more" if len(links) > 3 else "")

    # A probing controller does not know when a link failed; an installation under way has no end
    # yet.
    marks = {
        "failed": change.failed_ms,
        "detected": change.detected_ms,
        "planned": change.planned_ms,
        "installed": change.installed_ms,
    }
    dated = [(stage, at_ms) for stage, at_ms in marks.items() if at_ms is not None]
    stages = [
        f"{stage} after {at_ms - before:.0f} ms" for (_, before), (stage, at_ms) in pairwise(dated)
    ]

    return f"{few}: {', '.join(stages)} ({change.updates} updates on {change.switches} switches)"


@click.command(epilog="\b\nExample:\n  ofan schedule edge0_1")
@click.argument("switch")
@as_json
@as_csv
def schedule(switch: str, as_json: bool, csv: Path | None) -> None:
    """Show the schedules that a switch holds: per group its uplinks in order, and where data and
    ACKs start.
    """
    groups = answer(GetSchedule(switch))
    if write(groups, groups, as_json, csv):
        return

    columns = ("group", "destinations", "schedule", "uplinks", "data starts", "ACKs start")
    show(
        columns,
        (
            (
                row.group,
                " ".join(row.destinations),
                row.schedule,
                " ".join(row.uplinks),
                row.data_start,
                row.ack_start,
            )
            for row in groups
        ),
    )


@click.command(epilog="\b\nExample:\n  ofan pointers edge0_1")
@click.argument("switch")
@as_json
@as_csv
def pointers(switch: str, as_json: bool, csv: Path | None) -> None:
    """Show a switch's pointers (only on our switch: BMv2 refuses to read registers)."""
    rows = answer(GetPointers(switch))
    if write(rows, rows, as_json, csv):
        return

    # One pointer for both classes is shown once.
    show(
        ("group", "data", "ACKs"),
        ((row.group, row.data, row.acks or "with data") for row in rows),
    )


@click.command(epilog="\b\nExamples:\n  ofan registers edge0_1\n  ofan registers edge0_1 --json")
@click.argument("switch")
@as_json
@as_csv
def registers(switch: str, as_json: bool, csv: Path | None) -> None:
    """Show the registers and counters of a switch's program (only on our switch: BMv2 refuses to
    read registers).
    """
    rows = answer(GetRegisters(switch))
    if write(rows, rows, as_json, csv):
        return

    show(
        ("register or counter", "size", "cells that are not zero, by number"),
        (
            (short_name(row.array), f"{row.size:,}", in_words(row.cells.items()) or "none")
            for row in rows
        ),
    )


@click.group(no_args_is_help=True)
def traffic() -> None:
    """Start and stop traffic on the held network."""


def _size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    try:
        size = size_in_bytes(text) if text is not None else None
    except ExperimentError as error:
        raise click.BadParameter(str(error)) from None

    if size == 0:
        raise click.BadParameter("a message has at least one byte")

    return size


@traffic.command(epilog="\b\nExample:\n  ofan traffic start --message-bytes 1MiB --wait")
@click.option(
    "--message-bytes",
    callback=_size,
    metavar="SIZE",
    help="Size of every message, as in 65536, 64KiB, 1MiB.  [the experiment's]",
)
@click.option(
    "--wait", is_flag=True, help="Wait until the traffic is complete, and print its result."
)
def start(message_bytes: int | None, wait: bool) -> None:
    """Run the experiment's collective once more."""
    click.echo(answer(StartTraffic(message_bytes, wait)))


@traffic.command()
def stop() -> None:
    """Stop the running traffic."""
    click.echo(answer(StopTraffic()))


@click.command(epilog="\b\nExample:\n  ofan shell edge0_1\n  ofan shell edge0_1 --primary")
@click.argument("switch")
@click.option(
    "--primary", is_flag=True, help="Take the switch over from the controller, with write access."
)
def shell(switch: str, primary: bool) -> None:
    """Open p4runtime-shell on a switch, with read access unless --primary is given."""
    target = answer(GetAddress(switch))
    python = shell_python()
    if python is None:
        raise click.ClickException(f"no p4runtime-shell: {SHELL}")

    # The controller's id is between them (`emulation.mininet.fabric`): the lower one reads only,
    # the higher one takes the switch over (P4Runtime, 5.1).
    election = "1,0" if primary else "0,1"
    arguments = [
        "--grpc-addr",
        target.address,
        "--device-id",
        str(target.device_id),
        "--election-id",
        election,
    ]

    become_shell(python, arguments)


def become_shell(python: Path, arguments: Sequence[str]) -> NoReturn:
    """Run p4runtime-shell in the place of this process."""
    # It lives in an environment of its own, which must not see this one's modules, and as root it
    # must not see modules that lie about here either: IPython looks for them where it stands.
    os.chdir("/")
    os.execve(python, [str(python), "-I", "-m", "p4runtime_sh", *arguments], clean_environment())
