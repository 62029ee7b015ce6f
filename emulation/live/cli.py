"""`ofan watch` and `ofan serve`: watch a network, held or replayed, and break its links."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from emulation.command_line import (
    BAD_INPUT,
    DEMO,
    SEEDS,
    chosen,
    experiment_options,
    like_option,
    program_option,
    refuse_unused_policies,
    say_misfits,
    say_warnings,
)
from emulation.held.client import ControlError
from emulation.live.held_source import HeldSource
from emulation.live.model import Snapshot
from emulation.live.source import Source
from emulation.live.terminal import Terminal, summary_of
from emulation.live.virtual_source import VirtualSource, default_speed
from emulation.option_groups import grouped
from emulation.programs.own_program import Loaded, program_of, runs_alone, with_own
from emulation.shipped_file import ShippedFile
from emulation.virtual.size import refuse_too_large
from fattree.experiment.model import Experiment, Scenario
from fattree.records.tables import width_of_stdout
from fattree.texts.experiment_file import load_experiment
from fattree.texts.explanations import located
from fattree.units import PS_PER_US
from ofan_p4.finite import Finite

# One run of each load balancer is watched, with one seed.
one_seed_options = partial(experiment_options, without=(SEEDS,))
WATCH_SECONDS = 15.0
SERVE_SECONDS = 40.0
FRAMES_A_SECOND = 8
LINGER_SECONDS = 2.0
# Without a terminal the width is unknown: two panels fit side by side.
WIDTH_OF_PIPES = 120

WATCH_EXAMPLES = """
\b
Examples:
  ofan watch demo_failure           15 seconds per load balancer
  ofan watch demo_failure --policies ofan --speed 1e-6
  ofan watch demo_failure --policies ofan --once --at-us 9
  ofan watch ring --json | jq .progress
  ofan watch --program two_choices.p4 --policies jsq
  sudo $(which ofan) watch          the held Mininet network
"""
SERVE_EXAMPLES = """
\b
Examples:
  ofan serve demo_failure
  ofan serve demo --policies ofan --k 8 --port 8000
  ofan serve demo_failure --program two_choices.p4
  sudo $(which ofan) serve          the held Mininet network
"""


def _scenarios(experiment: Experiment, loaded: Loaded | None) -> list[Scenario]:
    """Return the runs of an experiment's first seed, those of the user's program in front."""
    first = experiment.model_copy(update={"seeds": 1})
    ours = list((first.without_rule() if loaded else first).scenarios())
    say_misfits(ours)

    return [*(runs_alone(first, loaded) if loaded else ()), *ours]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The subject of the command line: an experiment, or None for the held network."""

    file: Path | None
    settings: tuple[str, ...]
    policies: tuple[str, ...]
    program: Path | None
    like: str | None
    speed: float | None

    @property
    def experiment(self) -> Path | None:
        """Return the experiment's file: by default the demo's where there is a program."""
        return self.file or (DEMO if self.program else None)

    def sources(self, seconds: float) -> Iterator[Source]:
        """Yield the sources: the held network, or one run after the other."""
        if self.experiment is None:
            if self.settings or self.policies or self.like or self.speed:
                raise click.UsageError(
                    "keys, --like and --speed need an experiment file: a held network runs in"
                    " real time"
                )

            yield HeldSource()
            return

        if self.program:
            refuse_unused_policies(self.settings)

        settings = (*chosen(self.policies), *self.settings)
        read = load_experiment(self.experiment, settings, takes_program=True)
        experiment = with_own(read, self.program, self.like, self.policies)
        program = program_of(experiment)
        say_warnings(program.program.warnings if program else ())
        scenarios = _scenarios(experiment, program)
        refuse_too_large(scenarios[0], advice="")

        for scenario in scenarios:
            speed = self.speed or default_speed(scenario, seconds)
            yield VirtualSource(scenario, speed, program)


@contextmanager
def _ended_in_one_line(subject: Wanted) -> Iterator[None]:
    """Turn an error into a click error, with its line in the experiment's file."""
    try:
        yield
    except ControlError as error:
        raise click.ClickException(
            f"{error}; or name an experiment to replay in virtual time"
        ) from None
    except BAD_INPUT as error:
        file = subject.experiment
        message = located(str(error), file, subject.settings) if file else str(error)
        raise click.ClickException(message) from None


def _is_over(snapshot: Snapshot) -> bool:
    """Return whether there is nothing more to see: virtual runs end, held networks go on."""
    return snapshot.header.speed is not None and snapshot.header.state == "complete"


def _frames(source: Source, clock: Callable[[], float] = time.monotonic) -> Iterator[Snapshot]:
    """Yield snapshots at an even pace, until a little after the end of a virtual run."""
    end_s = None
    while end_s is None or clock() < end_s:
        began_s = clock()
        snapshot = source.poll()
        yield snapshot

        if end_s is None and _is_over(snapshot):
            end_s = clock() + LINGER_SECONDS

        # From the beginning of the frame: polling a virtual run takes most of the time there is.
        time.sleep(max(0.0, began_s + 1 / FRAMES_A_SECOND - clock()))


def _look(source: Source, console: Console) -> None:
    """Show a source until it ends or Ctrl-C; one line stays on the terminal."""
    terminal = Terminal()
    last: Snapshot | None = None
    try:
        with Live(
            console=console, screen=True, auto_refresh=False, vertical_overflow="crop"
        ) as live:
            for last in _frames(source):
                terminal.remember(last)
                live.update(terminal.draw(last, console.width), refresh=True)
    finally:
        if last is not None:
            console.print(summary_of(last), highlight=False)


def _up_to(source: Source, at_us: float | None) -> Iterator[Snapshot]:
    """Yield snapshots up to a virtual instant (by default the end), or of the present moment."""
    if isinstance(source, VirtualSource):
        yield from source.replay(None if at_us is None else round(at_us * PS_PER_US))
        return

    if at_us is not None:
        raise click.UsageError("--at-us needs an experiment file: a held network runs in real time")

    # A load is a difference of two readings of counters.
    yield source.poll()
    time.sleep(1.0)
    yield source.poll()


def _print_once(source: Source, at_us: float | None, as_json: bool) -> None:
    terminal = Terminal()
    for snapshot in _up_to(source, at_us):
        terminal.remember(snapshot)

    if as_json:
        click.echo(json.dumps(snapshot.as_json()))
        return

    console = Console(width=width_of_stdout(WIDTH_OF_PIPES))
    console.print(terminal.draw(snapshot, console.width))


@click.command(epilog=WATCH_EXAMPLES)
@click.argument("file", type=ShippedFile(), required=False)
@one_seed_options
@program_option
@like_option
@click.option(
    "--speed",
    type=Finite(0, min_open=True),
    help="Virtual seconds per second [a run takes some 15 s].",
)
@click.option(
    "--once", is_flag=True, help="Print one view and exit: of now, or of the end of a virtual run."
)
@click.option(
    "--at-us",
    type=Finite(0),
    metavar="T",
    help="With --once: the view at virtual time T, in microseconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Write snapshots as lines of JSON.")
@grouped(subject=Wanted)
def watch(subject: Wanted, once: bool, at_us: float | None, as_json: bool) -> None:
    """Watch the held network, or FILE replayed slowly: loads, queues, failures, progress."""
    if at_us is not None and not once:
        raise click.UsageError("--at-us needs --once")

    console = Console()
    with _ended_in_one_line(subject), suppress(KeyboardInterrupt):
        for source in subject.sources(WATCH_SECONDS):
            if once:
                _print_once(source, at_us, as_json)
            elif as_json or not console.is_terminal:
                _write_frames(source, as_json)
            else:
                _look(source, console)


def _write_frames(source: Source, as_json: bool) -> None:
    """Write snapshots into a pipe: all as JSON, or a line a second, and the last snapshot."""
    for number, snapshot in enumerate(_frames(source)):
        if as_json:
            click.echo(json.dumps(snapshot.as_json()))
            continue

        is_over = _is_over(snapshot)
        if is_over or number % FRAMES_A_SECOND == 0:
            click.echo(summary_of(snapshot))
        if is_over:
            return


@click.command(epilog=SERVE_EXAMPLES)
@click.argument("file", type=ShippedFile(), required=False)
@one_seed_options
@program_option
@like_option
@click.option(
    "--speed",
    type=Finite(0, min_open=True),
    help="Virtual seconds per second [a run takes some 40 s].",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="TCP port on 127.0.0.1 [a free one]."
)
@grouped(subject=Wanted)
def serve(subject: Wanted, port: int) -> None:
    """Serve a page on loopback: the held network, or the experiment in FILE replayed slowly.

    Click a link to break it.

    The address has a random token: only people who have the address can look and break links.
    """
    # `ofan watch` needs no Tornado and no page.
    from emulation.live import web

    with _ended_in_one_line(subject), suppress(KeyboardInterrupt):
        # The first load balancer's run; the page can start the others.
        source = next(subject.sources(SERVE_SECONDS))
        ended = asyncio.run(web.serve(source, port, _tell))
        raise click.ClickException(ended or "the source has ended")


def _tell(address: str) -> None:
    click.echo(f"{address}\nOpen it in a browser on this machine; Ctrl-C ends it.")
