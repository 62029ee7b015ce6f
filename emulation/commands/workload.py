"""`ofan workload`: files of transfers and computations, from models and from other people's traces.

`[collective] matrix = "workload"` runs them.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from fattree.demand.workloads.file import About, check, read_workload, write_workload
from fattree.demand.workloads.graph import Graph
from fattree.errors import TrafficError
from fattree.files.memory import Room, spare_bytes
from fattree.files.text_file import read_bytes
from fattree.generators.chakra import chakra_graph
from fattree.generators.chakra_file import read_chakra
from fattree.generators.chakra_ranks import stretched
from fattree.generators.goal import goal_graph, marks
from fattree.generators.goal_file import read_goal
from fattree.generators.model import read_model
from fattree.generators.training import computation_ps, training_graph
from fattree.generators.training_memory import fitting
from fattree.generators.training_stages import Step
from fattree.texts.shipped import found
from ofan_p4.finite import Finite
from sim.cli import FilePath, in_a_folder, one_line_errors

# What the simulator passes in about 20 s of CPU.
MOST_PACKETS = 12_500_000
PACKET_BYTES = 65_000
MOST_SHARE = 1e12
MODEL_EXAMPLES = """
\b
Examples:
  ofan workload from-model llama_405b.json step.parquet \\
      --gpus 1024 --tp 8 --pp 4 --batch 512
  ofan workload from-model deepseek_v3.json step.parquet \\
      --gpus 1024 --tp 8 --ep 8 --batch 512
  ofan workload from-model deepseek_v3.json step.parquet --gpus 512 --tp 1 \\
      --gpus-per-server 8 --ep 64 --token-servers 4 --dispatch-bytes 1
  ofan workload from-model llama_405b.json step.parquet --gpus 1024 --tp 8 \\
      --pp 16 --virtual-stages 8 --thin-ends --batch 256 --zero 2
  ofan workload from-model llama_405b.json step.parquet --gpus 1024 --tp 8 \\
      --cp 16 --pp 4 --batch 16 --sequence 131072 --zero-bubble
  ofan workload from-model deepseek_v3.json step.parquet --gpus 256 --tp 8 \\
      --ep 8 --by-layer --expert-skew 0.5 --jitter 0.02 --stragglers 1
  ofan sim run --k 16 --matrix workload \\
      --set collective.file=step.parquet --policies ofan,flow
"""
CHAKRA_EXAMPLES = """
\b
Examples:
  ofan workload from-chakra traces/step step.parquet
  ofan workload from-chakra traces/step step.parquet --ranks 64
"""


Command = Callable[..., None]


def _output(function: Command) -> Command:
    return click.argument("output", type=FilePath, callback=in_a_folder)(function)


def _counted(name: str, default: int, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=click.IntRange(1), default=default, show_default=True, help=text)


_forced = click.option(
    "--force", is_flag=True, help="Go on although it takes more memory than is free."
)


def _shares(_: click.Context, option: click.Parameter, value: str | None) -> tuple[float, ...]:
    """Read numbers between commas."""
    try:
        numbers = tuple(float(each) for each in value.split(",")) if value else ()
    except ValueError:
        raise click.BadParameter(
            f"{value!r:.40} are no numbers between commas, as in 3,1,1"
        ) from None

    if not all(0 <= number < MOST_SHARE for number in numbers):
        raise click.BadParameter("a share is a number from 0 on")

    return numbers


def _room(is_forced: bool) -> Room:
    return Room(None if is_forced else spare_bytes())


@click.command("from-model", epilog=MODEL_EXAMPLES)
@click.argument("config", type=FilePath)
@_output
@_counted("--gpus", 1024, "GPUs in all, a host each.")
@_counted("--tp", 8, "Tensor parallelism, inside a server.")
@click.option(
    "--gpus-per-server",
    "server",
    type=click.IntRange(1),
    metavar="G",
    help="GPUs of a server, of whole replicas: what stays inside takes NVLink's time.  [tp]",
)
@_counted("--pp", 1, "Pipeline stages.")
@click.option("--dp", type=click.IntRange(1), help="Data parallelism.  [the rest of the GPUs]")
@click.option(
    "--virtual-stages",
    "virtual",
    type=click.IntRange(1),
    metavar="V",
    default=1,
    show_default=True,
    help="Chunks of layers of a GPU, interleaved: a V-th of the bubble, V times the messages.",
)
@click.option(
    "--zero-bubble",
    is_flag=True,
    help="Gradients of weights fill the bubble (ZB-H1): a third of it is left.",
)
@click.option(
    "--thin-ends",
    is_flag=True,
    help="First and last stage have a layer less: embedding and vocabulary count as one each.",
)
@_counted("--cp", 1, "Context parallelism: a sequence's parts, whose keys and values go round.")
@_counted("--ep", 1, "Over how many replicas experts are spread.")
@click.option(
    "--token-servers",
    type=click.IntRange(1),
    metavar="M",
    help="A token's experts are on M servers, to each of which it goes once.  [any; once to each "
    "expert]",
)
@click.option(
    "--by-layer",
    is_flag=True,
    help="Each layer exchanges for itself (experts; keys and values), not all of a pass at once.",
)
@click.option(
    "--expert-skew",
    "skew",
    type=Finite(min=0, max=10),
    metavar="S",
    default=0,
    show_default=True,
    help="Tokens choose experts by Zipf's law: the r-th as often as 1 / r^S; which, by --seed.",
)
@click.option(
    "--expert-shares",
    "shares",
    callback=_shares,
    metavar="A,B,...",
    help="How often each expert, or each rank of --ep, is chosen.  [evenly]",
)
@click.option(
    "--dispatch-bytes",
    type=click.IntRange(1, 4),
    default=2,
    show_default=True,
    help="Of a number on its way to an expert; back it has 2.",
)
@click.option(
    "--gradient-bytes",
    type=click.IntRange(1, 4),
    default=2,
    show_default=True,
    help="Of a number of a gradient on its way.",
)
@_counted("--batch", 512, "Sequences of a step, of all replicas.")
@_counted("--microbatch", 1, "Sequences of a microbatch.")
@_counted("--sequence", 4096, "Tokens of a sequence.")
@click.option(
    "--teraflops",
    type=Finite(min=0.001),
    default=400,
    show_default=True,
    help="What a GPU makes of its peak.",
)
@click.option(
    "--nvlink-gbs",
    type=Finite(min=0.001),
    default=450,
    show_default=True,
    help="GB/s of NVLink in one direction.",
)
@_counted("--buckets", 4, "In how many parts gradients leave during the last backward pass.")
@click.option(
    "--zero",
    type=click.Choice(["1", "2", "3"]),
    default="1",
    show_default=True,
    help="ZeRO's stage: replicas share the optimizer's state; gradients, too; weights, too.",
)
@click.option(
    "--recompute", is_flag=True, help="Make each forward pass again before its backward pass."
)
@click.option(
    "--jitter",
    type=Finite(min=0, max=100),
    metavar="J",
    default=0,
    show_default=True,
    help="A computation takes longer by J of itself in the mean (exponential, by --seed).",
)
@click.option(
    "--stragglers",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="GPUs that are slow, drawn by --seed.",
)
@click.option(
    "--slowdown",
    type=Finite(min=1, max=1000),
    default=1.5,
    show_default=True,
    help="How many times as long as others these take.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**62),
    default=1,
    show_default=True,
    help="Of what is drawn: --expert-skew, --jitter, --stragglers.",
)
@click.option(
    "--gpu-memory-gb",
    type=Finite(min=0.001),
    metavar="GB",
    help="Refuse what does not fit into a GPU's memory.",
)
@click.option(
    "--scale",
    type=click.IntRange(1),
    metavar="N",
    help="Divide bytes and computations by N.  [the least power of two that leaves 12.5 million "
    "packets of 65,000 bytes]",
)
@_forced
def from_model(
    config: Path,
    output: Path,
    gpus: int,
    dp: int | None,
    scale: int | None,
    server: int | None,
    token_servers: int | None,
    gpu_memory_gb: float | None,
    force: bool,
    **options: Any,
) -> None:
    """Write one training step of the model of CONFIG, a published config.json, to OUTPUT.

    Formulas and their sources: docs/workloads.md. Computations and bytes are of the model; what is
    assumed of GPUs are --teraflops and --nvlink-gbs.
    """
    with one_line_errors():
        model = read_model(str(found(config)))
        tp, cp, pp = options.pop("tp"), options.pop("cp"), options.pop("pp")
        step = Step(
            tensor=tp,
            context=cp,
            pipeline=pp,
            data=dp or max(gpus // (tp * cp * pp), 1),
            experts=options.pop("ep"),
            scale=scale or 1,
            server=server or 0,
            token_servers=token_servers or 0,
            zero=int(options.pop("zero")),
            **options,
        )
        if step.ranks != gpus:
            spread = _spread(step)
            raise TrafficError(f"{spread} are not {gpus} GPUs")

        graph = training_graph(model, step, _room(force))
        needed = fitting(model, step, gpu_memory_gb)
        if scale is None:
            step = replace(step, scale=_scale(graph))
            graph = training_graph(model, step, _room(force))

        active = f", {model.active_parameters / 1e9:.1f} active" if model.experts else ""
        said = (
            f"one step of {model.name} ({model.parameters / 1e9:.1f} billion parameters{active}), "
            f"{_spread(step)}, ep {step.experts}, {step.batch} sequences of {step.sequence} tokens"
            f"{_said_of(step)}"
        )
        _keep(output, graph, About(said, gpus, step.gpus_per_server, step.scale))
        click.echo(needed)


def _spread(step: Step) -> str:
    context = f" x cp {step.context}" if step.context > 1 else ""
    return f"tp {step.tensor}{context} x pp {step.pipeline} x dp {step.data}"


def _said_of(step: Step) -> str:
    """Return what else of a step its file should say."""
    said = {
        f"{step.virtual} stages a GPU": step.virtual > 1,
        "zero bubble": step.zero_bubble,
        f"ZeRO {step.zero}": step.zero > 1,
        "recomputation": step.recompute,
        "exchanges by layer": step.by_layer,
        f"experts by Zipf's law ({step.skew:g})": step.skew > 0,
        "experts of given shares": bool(step.shares),
        f"jitter {step.jitter:g}": step.jitter > 0,
        f"{step.stragglers} GPUs {step.slowdown:g} times as slow": step.stragglers > 0,
        f"seed {step.seed}": bool(step.skew or step.jitter or step.stragglers),
    }
    return "".join(f", {text}" for text, is_so in said.items() if is_so)


def _scale(graph: Graph) -> int:
    """Return the least power of two that leaves no more than MOST_PACKETS."""
    packets = int(np.ceil(graph.size / PACKET_BYTES).sum())
    return 1 << max(-(-packets // MOST_PACKETS) - 1, 0).bit_length()


@click.command("from-goal")
@click.argument("schedule", type=FilePath)
@_output
@_forced
def from_goal(schedule: Path, output: Path, force: bool) -> None:
    """Write the GOAL schedule in SCHEDULE, text or LogGOPSim's binary form, to OUTPUT."""
    with one_line_errors():
        room = _room(force)
        read = read_goal(read_bytes(schedule, TrafficError), str(schedule), room)
        said = (
            f"GOAL schedule {schedule.name}: {len(read):,} operations, "
            f"{read.dependencies:,} dependencies, {read.total_bytes:,} bytes"
        )
        graph = goal_graph(read, room)
        if ignored := marks(read, graph):
            click.echo(f"{ignored:,} sends of no bytes that nobody receives take no time")

        _keep(output, graph, About(said, read.ranks))


@click.command("from-chakra", epilog=CHAKRA_EXAMPLES)
@click.argument("prefix", type=str)
@_output
@click.option(
    "--algorithm",
    type=click.Choice(["ring", "double_tree", "recursive"]),
    default="ring",
    show_default=True,
    help="Of the collectives in the traces.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1),
    metavar="M",
    help="Copy the trace's ranks until there are M; collectives of all are then of all M.  [as many"
    " as there are files]",
)
@_forced
def from_chakra(prefix: str, output: Path, algorithm: str, ranks: int | None, force: bool) -> None:
    """Write the Chakra traces PREFIX.0.et, PREFIX.1.et, ... to OUTPUT."""
    with one_line_errors():
        room = _room(force)
        trace = read_chakra(prefix, room)
        if trace.left_out:
            click.echo(
                f"{trace.left_out:,} control dependencies say who called whom, and name nodes that "
                "are not there, or themselves: they are left out, those of data are kept"
            )
        if ranks:
            trace = stretched(trace, ranks, room)
        elif len(trace.ranks) == 1:
            raise TrafficError(
                f"{prefix}.0.et is the trace of one rank, which has nobody to send to: "
                "--ranks M makes M of it"
            )

        said = (
            f"Chakra traces {Path(prefix).name}: {sum(map(len, trace.ranks)):,} nodes, "
            f"{trace.dependencies:,} dependencies, {trace.total_bytes:,} bytes"
        )
        _keep(output, chakra_graph(trace, algorithm, room), About(said, len(trace.ranks)))


@click.command("show")
@click.argument("file", type=FilePath)
def show(file: Path) -> None:
    """Say what the workload in FILE is of."""
    with one_line_errors():
        _say(*read_workload(str(file)))


def _keep(output: Path, graph: Graph, about: About) -> None:
    # What no network can run is told now, before there is a file.
    check(graph, about, str(output))
    write_workload(output, graph, about)
    _say(graph, about)


def _say(graph: Graph, about: About) -> None:
    sent = int((graph.size > 0).sum())
    click.echo(about.about)
    click.echo(
        f"{about.ranks:,} ranks, {sent:,} transfers of {int(graph.size.sum()):,} bytes, "
        f"{len(graph) - sent:,} computations, {len(graph.waiting):,} dependencies"
    )
    click.echo(f"computations alone: {computation_ps(graph) / 1e9:,.3f} ms")
    if about.scale > 1:
        click.echo(
            f"scale: bytes and computations are divided by {about.scale}, latencies are not;\n"
            f"times of the whole step are {about.scale} times those of a run"
        )
