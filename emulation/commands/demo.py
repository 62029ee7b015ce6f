"""`ofan demo`: a collective on three load balancers, a link failure, a step of a real model."""

from collections.abc import Sequence
from pathlib import Path

import click

from emulation.command_line import csv_option, json_option, one_line_errors, output_option
from emulation.commands.emulate import legend, write
from emulation.commands.experiment_run import (
    Finished,
    Reporter,
    keep,
    reporting,
    run_experiment,
    virtually,
)
from emulation.commands.mininet_demo import run_twins
from emulation.errors import EmulationError
from emulation.mininet.kernel import ELSE, refuse_if_unable
from emulation.option_groups import Written, grouped
from emulation.outcomes.folder import new_folder
from emulation.outcomes.outcome import label_of
from emulation.outcomes.tables import results_table
from emulation.remedies import IS_CHECKOUT
from fattree.records.record import Record
from fattree.records.tables import terminal
from fattree.texts.experiment_file import load_experiment
from fattree.texts.shipped import EXPERIMENTS

PARTS = (
    ("demo.toml", "16 hosts, a permutation of 256 packets each, all links up"),
    (
        "demo_failure.toml",
        "the same, a core link fails after 5 µs, routes change 2 round trips later",
    ),
    ("llama_ring.toml", "a training step of Llama 3.2 1B on 16 GPUs: one ring step of one layer"),
)
PICTURE = "demo"
MININET_FILE = "mininet_k4.toml"
# A wheel has no docs.
FAULTS = " (docs/faults.md)" if IS_CHECKOUT else ""


def run_parts(folder: Path, reporter: Reporter) -> list[Finished]:
    """Run the demo's experiments and write each into a separate folder."""
    done = []
    for name, _ in PARTS:
        experiment = load_experiment(EXPERIMENTS / name)
        # Hashing all events would take ten times as long as the runs.
        done.append(run_experiment(experiment, reporter, virtually(has_digest=False)))
        keep(done[-1], folder / experiment.name)

    return done


def draw(folder: Path, done: Sequence[Finished]) -> Path:
    """Write the demo's picture; return the PNG."""
    from emulation.outcomes.plots import demo_figure, save

    return save(demo_figure(done[0].outcomes, done[1].outcomes), folder, PICTURE)[0]


@click.command(epilog="\b\nExamples:\n  ofan demo\n  ofan demo --output /tmp/demo")
@output_option("demo")
@click.option("--force", is_flag=True, help="Replace the results in --output.")
@json_option
@csv_option
@grouped(written=Written)
def demo(written: Written) -> None:
    """Run one collective on three load balancers, without and with a failing link, and a step of a
    real model.

    Every switch runs a P4 program, every packet is real bytes, every table entry comes over
    P4Runtime; time is virtual.
    """
    with one_line_errors(), reporting() as reporter:
        output = click.get_current_context().with_resource(
            new_folder(written.output, Path("results") / "demo", written.force)
        )
        done = run_parts(output, reporter)
        picture = draw(output, done)

    records = [record for finished in done for record in finished.records]
    if write(records, output, written):
        return

    console = terminal()
    titles = (title for _, title in PARTS)
    console.print(
        results_table(list(zip(titles, (finished.records for finished in done), strict=True)))
    )
    console.print(legend(records))

    console.print()
    for sentence in story(*(finished.records for finished in done[:2])):
        console.print(sentence)

    console.print(f"Picture: {picture} (loads of every link, queues over time). Data: {output}")
    console.print(real_packets(EXPERIMENTS / MININET_FILE))


def story(whole: Sequence[Record], failing: Sequence[Record]) -> list[str]:
    """Return the explanation of the first two tables, a sentence each."""
    first, *_, last = whole
    lost = failing[-1]

    return [
        "How to read the tables: CCT is the time until the last packet has arrived; no load"
        " balancer can be faster than the bound, as each host's link needs so long for its bytes.",
        f"All links up: {label_of(first.policy)}'s longest queue is {first.max_queue_packets:.0f}"
        f" packets, and the run ends {first.increase:.0%} over the bound;"
        f" {label_of(last.policy)}'s longest queue is {last.max_queue_packets:.0f} packets, and the"
        f" run ends {last.increase:.1%} over the bound.",
        f"A link fails: for two round trips {label_of(lost.policy)}'s switches do not know it and"
        f" send {lost.lost_to_failure:,} packets into the dead link; hosts have to send as many"
        f" again, and the collective ends {lost.increase:.0%} over the bound. No load balancer can"
        f" avoid that; only a faster detection can{FAULTS}.",
    ]


def real_packets(file: Path) -> str:
    """Run Ofan over real veths while a command breaks a link, and the same run in virtual time.

    Return a line about the result, or the reason why Mininet cannot run.
    """
    # Without Mininet the demo goes on.
    try:
        refuse_if_unable()
        click.echo(
            "Now the same with real packets: 20 switch processes, 16 hosts in namespaces"
            " (half a minute) ...",
            err=True,
        )

        return run_twins(file).words()
    except EmulationError as error:
        # The demo was virtual, so the virtual network is no way out.
        reason = str(error).removesuffix(f", {ELSE}")
        return f"The run with real packets on Mininet is left out: {reason}"
