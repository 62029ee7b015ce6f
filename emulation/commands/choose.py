"""`ofan choose`: the load balancer for a fabric, with its reason."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console

from emulation.command_line import (
    DEFAULT_LIKE,
    Named,
    host_rule_option,
    like_option,
    names,
    refuse_twice,
    settings_option,
)
from emulation.commands.simulation import program_option, ready
from emulation.completion import complete_policies
from emulation.shipped_file import ShippedFile
from fattree.experiment.model import HostRule, Settings
from fattree.policies import POLICIES, POLICY_SETS, PUBLISHED
from fattree.records.tables import terminal
from fattree.texts.experiment_file import host_rule_settings
from sim.choice.answer import LEGEND, Answer
from sim.choice.candidates import Candidate, Change, own_program, own_rule
from sim.choice.choosing import MINUTES, choose
from sim.choice.conditions import CONDITIONS, OWN
from sim.choice.questions import Nics, Question, in_words
from sim.choice.ranking import MARGIN
from sim.choice.rounds import Plan
from sim.choice.workloads import OWN as OWN_WORKLOAD
from sim.choice.workloads import WORKLOADS
from sim.cli import one_line_errors, read_experiment
from sim.sweeps.cost import processors
from sim.sweeps.estimates import LOOKS
from sim.sweeps.sweeping import Run

EXAMPLES = """
\b
Examples:
  ofan choose --hosts 512 --oversubscription 4
  ofan choose --hosts 512 --oversubscription 4 --lossless --nics in-order
  ofan choose --hosts 512 --rails 8 --change hosts
  ofan choose --hosts 128 --tiers 3 --without slow-unknown --weigh reboot=0.5
  ofan choose leaf_spine --minutes 10 --output results/ours
  ofan choose --hosts 128 --program two_choices.p4 --like jsq
"""
SIGN_SECONDS = 10
RESULTS = Path("results") / "choose"
ALL_CONDITIONS = (*CONDITIONS, OWN.name)
ALL_WORKLOADS = (*WORKLOADS, OWN_WORKLOAD)
# Options that describe a fabric, and their values where they are not given.
FABRIC = {
    "hosts": None,
    "tiers": 2,
    "oversubscription": 1,
    "rails": 1,
    "rate": 400.0,
    "lossless": False,
}


@dataclass(slots=True)
class Sign:
    """Progress on stderr: the first table, a line for each look and each ten seconds."""

    minutes: float
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    printed: float = field(init=False)
    is_first: bool = True

    def __post_init__(self) -> None:
        self.began = self.printed = self.clock()

    def watch(self, finished: int, total: int, share: float) -> None:
        """Take in how many runs of a batch are done, and which share of its work."""
        if self.clock() - self.printed >= SIGN_SECONDS:
            self._say(f"{finished:,} of {total:,} runs of this batch, {share:.0%} of its work")

    def looked(self, answer: Answer) -> None:
        """Take in the answer so far."""
        places = answer.places
        shown = ", ".join(
            f"{answer.ground.label(row.name)} {row.worst.mean:.1f} %" for row in places[:3]
        )
        runs = f"{len(answer.progress.runs):,} runs ({answer.basis})"
        self._say(f"{runs}; at worst: {shown}")
        if self.is_first:
            self.is_first = False
            console = Console(stderr=True, highlight=False, markup=False)
            console.print(answer.short_table())
            console.print(LEGEND, soft_wrap=True)

    def _say(self, text: str) -> None:
        self.printed = self.clock()
        passed = self.printed - self.began
        click.echo(f"choose: {passed:.0f} s of {60 * self.minutes:.0f} s: {text}", err=True)


def weighed(_: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, float]:
    """Read NAME=WEIGHT; raises BadParameter."""
    weights: dict[str, float] = {}
    for pair in pairs:
        name, _sign, text = pair.partition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0

        if name not in ALL_CONDITIONS or not 0 <= weight <= 1000:
            raise click.BadParameter(
                f"{pair!r}: expected NAME=WEIGHT, a weight from 0 to 1000 and a name of"
                f" {', '.join(ALL_CONDITIONS)}",
                param=option,
            )

        weights[name] = weight

    return weights


@click.command(epilog=EXAMPLES)
@click.argument("file", required=False, type=ShippedFile())
@click.option(
    "--hosts",
    type=click.IntRange(4, 65_536),
    help="Number of GPUs (NICs); FILE has your own counts of switches.",
)
@click.option(
    "--tiers", type=click.IntRange(2, 3), default=2, show_default=True, help="2: leaf-spine."
)
@click.option(
    "--oversubscription",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Hosts for each uplink of a leaf, N:1.",
)
@click.option(
    "--rails",
    type=click.IntRange(1, 16),
    default=1,
    show_default=True,
    help="Separate fabrics, a NIC of every machine in each.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0.001, 10_000),
    default=400,
    show_default=True,
    help="Gbit/s of a link.",
)
@click.option("--lossless", is_flag=True, help="Switches pause links (PFC) and drop nothing.")
@click.option(
    "--nics",
    type=click.Choice(get_args(Nics)),
    default="any",
    show_default=True,
    help="in-order: NICs take a flow's packets in order only, so nothing may reorder them.",
)
@click.option(
    "--change",
    type=click.Choice(get_args(Change)),
    default="both",
    show_default=True,
    help="What may be changed.",
)
@click.option(
    "--policies",
    metavar="A,B|all|everything",
    callback=names(tuple(POLICIES), sets=POLICY_SETS, aliases=PUBLISHED),
    shell_complete=complete_policies,
    help="Candidates, by name.  [all that fit]",
)
@program_option
@host_rule_option
@like_option
@click.option(
    "--without",
    multiple=True,
    type=Named(ALL_CONDITIONS),
    help="Leave a condition out; repeatable.",
)
@click.option(
    "--weigh",
    "weights",
    multiple=True,
    metavar="NAME=WEIGHT",
    callback=weighed,
    help="Multiply the time of a condition; repeatable.  [1]",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    type=Named(ALL_WORKLOADS),
    help="A workload; repeatable.  [FILE's, else all four]",
)
@click.option(
    "--margin",
    type=click.FloatRange(0.01, 1000),
    default=MARGIN,
    show_default=True,
    help="Differences below so many points of the bound are none.",
)
@click.option(
    "--looks",
    type=click.IntRange(1, LOOKS),
    default=LOOKS,
    show_default=True,
    help="How often the seeds of what is not decided are doubled at most.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0.01, 10_000),
    default=MINUTES,
    show_default=True,
    help="Time for the runs.",
)
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, show_default=True, help="First.")
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [one for each processor]")
@settings_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where runs and answer are kept.  [results/choose/NAME]",
)
@click.option("--json", "as_json", is_flag=True, help="Write the answer to stdout as JSON.")
@click.pass_context
def choose_command(
    context: click.Context,
    /,
    file: Path | None,
    policies: tuple[str, ...],
    programs: tuple[Path, ...],
    host_rule: Path | None,
    like: str | None,
    without: tuple[str, ...],
    weights: Mapping[str, float],
    workloads: tuple[str, ...],
    settings: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    jobs: int | None,
    **options: Any,
) -> None:
    """Say which load balancer a fabric should run, and why.

    The fabric is that of FILE, an experiment, or of --hosts. All load balancers that fit run in
    several conditions (links that fail or are slow, known to routes or not) and are ranked by their
    worst one. The same command goes on where it was stopped.
    """
    with one_line_errors(file, settings):
        refuse_twice(settings, ["policies"] if policies else [])
        fabric_options = [
            name
            for name in FABRIC
            if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        ]
        asked = _settings(file, settings, fabric_options, options)
        click.echo(f"choose: {in_words(asked.fabric)}", err=True)
        sign = Sign(options["minutes"])
        folder = output or RESULTS / _name(file, options, without, workloads)
        answer = choose(
            asked,
            change=options["change"],
            nics=options["nics"],
            policies=policies,
            own=_own(programs, host_rule, like),
            without=without,
            weights=weights,
            workloads=workloads or ((OWN_WORKLOAD,) if file else ()),
            margin=options["margin"],
            looks=options["looks"],
            minutes=options["minutes"],
            seed=options["seed"],
            jobs=jobs or processors(),
            folder=folder,
            ready=_ready,
            looked=sign.looked,
            watch=sign.watch,
        )
        answer.write(folder)

    show(answer, folder, as_json)


def show(answer: Answer, folder: Path, as_json: bool) -> None:
    """Write an answer to stdout."""
    if as_json:
        click.echo(json.dumps(answer.json(), indent=1))
        return

    console = terminal()
    console.print(answer.table())
    console.print(answer.text(), highlight=False, soft_wrap=True)
    console.print(
        f"{len(answer.progress.runs):,} runs, {answer.seconds:.0f} s: {folder} has them, the table"
        " as JSON and a picture (answer.png)",
        highlight=False,
        soft_wrap=True,
    )


def _ready(plan: Plan) -> Run:
    return ready(plan.examples(), threads=1)


def _own(programs: Sequence[Path], rule: Path | None, like: str | None) -> list[Candidate]:
    # Refuses --like alone.
    if not programs:
        host_rule_settings(rule, like)

    candidates = [own_program(str(path), like or DEFAULT_LIKE, path.name) for path in programs]
    if rule is None:
        return candidates

    host_rule = HostRule.model_validate({"file": str(rule)})
    return [*candidates, own_rule(host_rule, like if like and not programs else "host_pkt_ar")]


def _settings(
    file: Path | None,
    settings: Sequence[str],
    flags: Sequence[str],
    options: Mapping[str, Any],
) -> Settings:
    """Return the settings of the file or of the options; raises UsageError for both."""
    if file:
        if flags:
            raise click.UsageError(
                f"FILE describes the fabric: leave out {', '.join(f'--{name}' for name in flags)}"
            )

        experiment = read_experiment(file, settings)
        unused = sorted({"policies", "seed", "seeds"} & experiment.model_fields_set)
        if unused:
            click.echo(
                f"choose: {', '.join(unused)} of {file.name} are not used: candidates are all that"
                " fit (or --policies), and seeds are added from --seed on",
                err=True,
            )

        return Settings.model_validate(
            {name: getattr(experiment, name) for name in Settings.model_fields}
        )

    if options["hosts"] is None:
        raise click.UsageError("which fabric? Give FILE, an experiment, or --hosts")

    tables = Question(
        hosts=options["hosts"],
        tiers=options["tiers"],
        oversubscription=options["oversubscription"],
        rails=options["rails"],
        rate_gbps=options["rate"],
        is_lossless=options["lossless"],
        nics=options["nics"],
    ).tables()
    flat = [
        f"{table}.{key}={json.dumps(value)}"
        for table, values in tables.items()
        for key, value in values.items()
    ]
    experiment = read_experiment(None, [*flat, *settings])
    if experiment.fabric.tree.hosts != options["hosts"]:
        raise click.UsageError(
            f"--set makes a fabric of {experiment.fabric.tree.hosts} hosts, and --hosts is"
            f" {options['hosts']}: give FILE, an experiment with all counts of its [fabric]"
        )

    return Settings.model_validate(
        {name: getattr(experiment, name) for name in Settings.model_fields}
    )


def _name(
    file: Path | None, options: Mapping[str, Any], without: Sequence[str], workloads: Sequence[str]
) -> str:
    """Return the name of the folder: that of the file, or the fabric in short.

    Another question has another folder, so that no answer replaces another.
    """
    narrower = [f"without-{name}" for name in sorted(without)]
    narrower += [re.sub(r"\W+", "-", name) for name in sorted(workloads)]
    narrower += [f"change-{options['change']}"] if options["change"] != "both" else []
    if file:
        return "-".join([file.stem, *narrower])

    parts = [
        f"{options['hosts']}-hosts",
        f"{options['tiers']}-tiers",
        f"{options['oversubscription']}-to-1",
        f"{options['rate']:g}-gbps",
    ]
    parts += [f"{options['rails']}-rails"] if options["rails"] > 1 else []
    parts += ["lossless"] if options["lossless"] else []
    parts += ["in-order"] if options["nics"] == "in-order" else []
    return "-".join([*parts, *narrower])
