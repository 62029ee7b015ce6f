"""`ofan workload from-model` and `serve-model`: a model's training step, or its service, as files.

`[collective] matrix = "workload"` runs them.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from emulation.commands.workload_files import (
    counted,
    forced,
    keep,
    output_argument,
    room_for,
    scale_for,
)
from fattree.demand.workloads.file import About
from fattree.errors import TrafficError
from fattree.generators.model import read_model
from fattree.generators.serving import Serving, kept_bytes, reduced_bytes, serving_graph
from fattree.generators.training import training_graph
from fattree.generators.training_memory import fitting
from fattree.generators.training_stages import Step
from fattree.signs_of_life import signs_of_life
from fattree.texts.shipped import found
from ofan_p4.finite import Finite
from sim.cli import FilePath, one_line_errors

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
  ofan workload from-model llama_405b.json step.parquet --gpus 256 --tp 8 \\
      --pp 16 --virtual-stages 8 --thin-ends --batch 64 --zero 2
  ofan workload from-model llama_405b.json step.parquet --gpus 1024 --tp 8 \\
      --cp 16 --pp 4 --batch 16 --sequence 131072 --zero-bubble
  ofan workload from-model deepseek_v3.json step.parquet --gpus 128 --tp 8 \\
      --pp 4 --ep 4 --batch 64 --dual-pipe
  ofan workload from-model deepseek_v3.json step.parquet --gpus 64 --tp 8 \\
      --ep 8 --by-layer --expert-skew 0.5 --jitter 0.02 --batch 16
  ofan sim run --k 16 --matrix workload \\
      --set collective.file=step.parquet --policies ofan,flow
"""
SERVING_EXAMPLES = """
\b
Examples:
  ofan workload serve-model llama_405b.json serve.parquet \\
      --prefill 4 --decode 4 --requests 32 --prompt 8192 --tokens 64
  ofan workload serve-model deepseek_v3.json serve.parquet --tp 8 \\
      --decode-tp 16 --prefill 4 --decode 2 --requests 16 --kv-bytes 1
  ofan sim run --k 8 --matrix workload \\
      --set collective.file=serve.parquet --policies ofan,flow
"""
_teraflops = click.option(
    "--teraflops",
    type=Finite(min=0.001),
    default=400,
    show_default=True,
    help="Teraflops that a GPU reaches.",
)
_nvlink_gbs = click.option(
    "--nvlink-gbs",
    type=Finite(min=0.001),
    default=450,
    show_default=True,
    help="NVLink's GB/s in one direction.",
)
_scaled = click.option(
    "--scale",
    type=click.IntRange(1),
    metavar="N",
    help="Divide bytes and computations by N.  [the least power of two that leaves 12.5 million "
    "packets of 65,000 bytes]",
)


def _shares(_: click.Context, option: click.Parameter, value: str | None) -> tuple[float, ...]:
    """Read numbers between commas."""
    try:
        numbers = tuple(float(text) for text in value.split(",")) if value else ()
    except ValueError:
        raise click.BadParameter(
            f"{value!r:.40}: must be numbers with commas between them, as in 3,1,1"
        ) from None

    if not all(0 <= number < MOST_SHARE for number in numbers):
        raise click.BadParameter("a share must be 0 or more")

    return numbers


@click.command("from-model", epilog=MODEL_EXAMPLES)
@click.argument("config", type=FilePath)
@output_argument
@counted("--gpus", 1024, "Number of GPUs; each is a host.")
@counted("--tp", 8, "Tensor parallelism, within a server.")
@click.option(
    "--gpus-per-server",
    "server",
    type=click.IntRange(1),
    metavar="G",
    help="GPUs per server, with whole replicas: traffic inside a server uses NVLink.  [tp]",
)
@counted("--pp", 1, "Pipeline stages.")
@click.option("--dp", type=click.IntRange(1), help="Data parallelism.  [all other GPUs]")
@click.option(
    "--virtual-stages",
    "virtual",
    type=click.IntRange(1),
    metavar="V",
    default=1,
    show_default=True,
    help="Interleaved chunks of layers per GPU: the bubble divided by V, V times the messages.",
)
@click.option(
    "--zero-bubble",
    is_flag=True,
    help="Gradients of weights fill the bubble (ZB-H1): a third of the bubble is left.",
)
@click.option(
    "--dual-pipe",
    is_flag=True,
    help="Microbatches from both ends (DualPipe): exchanges of one direction while the other one "
    "computes; twice the weights.",
)
@click.option(
    "--thin-ends",
    is_flag=True,
    help="First and last stage have one layer less: embedding and vocabulary count as a layer.",
)
@counted("--cp", 1, "Context parallelism: parts of a sequence; keys and values go round a ring.")
@counted("--ep", 1, "Expert parallelism: number of replicas that share the experts.")
@click.option(
    "--token-servers",
    type=click.IntRange(1),
    metavar="M",
    help="A token's experts are on M servers; the token is sent once to each.  [any number; "
    "once to each expert]",
)
@click.option(
    "--by-layer",
    is_flag=True,
    help="Each layer has its own exchange (experts; keys and values), instead of one per pass.",
)
@click.option(
    "--expert-skew",
    "skew",
    type=Finite(min=0, max=10),
    metavar="S",
    default=0,
    show_default=True,
    help="Tokens choose experts by Zipf's law: the r-th in proportion to 1 / r^S, order by --seed.",
)
@click.option(
    "--expert-shares",
    "shares",
    callback=_shares,
    metavar="A,B,...",
    help="Relative frequency of each expert, or of each rank of --ep.  [equal]",
)
@click.option(
    "--dispatch-bytes",
    type=click.IntRange(1, 4),
    default=2,
    show_default=True,
    help="Bytes per number on the way to an expert; on the way back 2.",
)
@click.option(
    "--gradient-bytes",
    type=click.IntRange(1, 4),
    default=2,
    show_default=True,
    help="Bytes per number of a sent gradient.",
)
@counted("--batch", 512, "Sequences per step, of all replicas.")
@counted("--microbatch", 1, "Sequences per microbatch.")
@counted("--sequence", 4096, "Tokens per sequence.")
@_teraflops
@_nvlink_gbs
@counted(
    "--buckets", 4, "Number of parts in which gradients are sent during the last backward pass."
)
@click.option(
    "--zero",
    type=click.Choice(["1", "2", "3"]),
    default="1",
    show_default=True,
    help="ZeRO's stage: replicas share the optimizer's state (1), also gradients (2), weights (3).",
)
@click.option(
    "--recompute", is_flag=True, help="Repeat each forward pass before its backward pass."
)
@click.option(
    "--overlap-tp",
    "tensor_overlap",
    is_flag=True,
    help="Tensor parallelism's all-reduces go on beside the matrices before and behind them.",
)
@click.option(
    "--jitter",
    type=Finite(min=0, max=100),
    metavar="J",
    default=0,
    show_default=True,
    help="Mean extra time of a computation, as a share of its time (exponential, by --seed).",
)
@click.option(
    "--stragglers",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Number of slow GPUs, drawn by --seed.",
)
@click.option(
    "--slowdown",
    type=Finite(min=1, max=1000),
    default=1.5,
    show_default=True,
    help="Time of a slow GPU's computation, relative to other GPUs.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**62),
    default=1,
    show_default=True,
    help="Seed of the random draws: --expert-skew, --jitter, --stragglers.",
)
@click.option(
    "--gpu-memory-gb",
    type=Finite(min=0.001),
    metavar="GB",
    help="Refuse a step that does not fit into this GPU memory.",
)
@_scaled
@forced
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

    Formulas and their sources: docs/workloads.md. Computations and bytes follow from the model;
    only --teraflops and --nvlink-gbs are assumptions about GPUs.
    """
    with one_line_errors(), signs_of_life(f"writing {output}"):
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
            raise TrafficError(f"{spread} does not make {gpus} GPUs")

        graph = training_graph(model, step, room_for(force))
        needed = fitting(model, step, gpu_memory_gb)
        if scale is None:
            step = replace(step, scale=scale_for(graph))
            graph = training_graph(model, step, room_for(force))

        active = f", {model.active_parameters / 1e9:.1f} active" if model.experts else ""
        said = (
            f"one step of {model.name} ({model.parameters / 1e9:.1f} billion parameters{active}), "
            f"{_spread(step)}, ep {step.experts}, {step.batch} sequences of {step.sequence} tokens"
            f"{_said_of(step)}"
        )
        keep(output, graph, About(said, gpus, step.gpus_per_server, step.scale))
        click.echo(needed)


def _spread(step: Step) -> str:
    context = f" x cp {step.context}" if step.context > 1 else ""
    return f"tp {step.tensor}{context} x pp {step.pipeline} x dp {step.data}"


def _said_of(step: Step) -> str:
    """Return the other settings of a step that its file should name."""
    said = {
        f"{step.virtual} stages a GPU": step.virtual > 1,
        "zero bubble": step.zero_bubble,
        "DualPipe": step.dual_pipe,
        f"ZeRO {step.zero}": step.zero > 1,
        "recomputation": step.recompute,
        "all-reduces of tp beside matrices": step.tensor_overlap,
        "exchanges by layer": step.by_layer,
        f"experts by Zipf's law ({step.skew:g})": step.skew > 0,
        "experts of given shares": bool(step.shares),
        f"jitter {step.jitter:g}": step.jitter > 0,
        f"stragglers {step.stragglers} (times {step.slowdown:g})": step.stragglers > 0,
        f"seed {step.seed}": bool(step.skew or step.jitter or step.stragglers),
    }
    return "".join(f", {text}" for text, is_so in said.items() if is_so)


@click.command("serve-model", epilog=SERVING_EXAMPLES)
@click.argument("config", type=FilePath)
@output_argument
@counted("--prefill", 1, "Number of instances that prefill prompts.")
@counted("--decode", 1, "Number of instances that decode.")
@counted(
    "--tp", 8, "GPUs of a prefill instance; above a server's GPUs, all-reduces use the network."
)
@click.option(
    "--decode-tp", type=click.IntRange(1), metavar="T", help="GPUs of a decode instance.  [tp]"
)
@counted("--gpus-per-server", 8, "GPUs per server: one or more whole instances.")
@counted("--requests", 8, "Number of requests, given to instances in turn.")
@counted("--prompt", 4096, "Tokens per prompt.")
@click.option(
    "--tokens",
    type=click.IntRange(0),
    default=16,
    show_default=True,
    help="Tokens to decode per request; an instance decodes all its requests together.",
)
@counted("--kv-parts", 4, "Parts in which a prompt's keys and values are sent as layers complete.")
@click.option(
    "--kv-bytes",
    type=click.IntRange(1, 4),
    default=2,
    show_default=True,
    help="Bytes per number of keys and values.",
)
@_teraflops
@_nvlink_gbs
@click.option(
    "--memory-gbs",
    type=Finite(min=0.001),
    default=3350,
    show_default=True,
    help="GB/s of a GPU's memory, from which decoding reads weights and keys.",
)
@_scaled
@forced
def serve_model(
    config: Path,
    output: Path,
    tp: int,
    decode_tp: int | None,
    gpus_per_server: int,
    kv_parts: int,
    kv_bytes: int,
    scale: int | None,
    force: bool,
    **options: Any,
) -> None:
    """Write requests served by the model of CONFIG, a published config.json, to OUTPUT.

    Some instances prefill prompts; other instances receive the keys and values, and decode.
    Formulas and their sources: docs/workloads.md.
    """
    with one_line_errors(), signs_of_life(f"writing {output}"):
        model = read_model(str(found(config)))
        serving = Serving(
            tensor=tp,
            decode_tensor=decode_tp or tp,
            server=gpus_per_server,
            parts=kv_parts,
            key_bytes=kv_bytes,
            scale=scale or 1,
            **options,
        )
        graph = serving_graph(model, serving, room_for(force))
        if scale is None:
            serving = replace(serving, scale=scale_for(graph))
            graph = serving_graph(model, serving, room_for(force))

        said = (
            f"{serving.requests} requests of {serving.prompt} tokens to {model.name} "
            f"({model.parameters / 1e9:.1f} billion parameters): {serving.prefill} instances of "
            f"{serving.tensor} GPUs prefill, {serving.decode} of {serving.decode_tensor} decode "
            f"{serving.tokens} tokens each"
        )
        keep(output, graph, About(said, serving.ranks, serving.server, serving.scale))
        kept = kept_bytes(model, serving)
        reduced = reduced_bytes(model, serving.tensor)
        click.echo(
            f"per token: {kept / 1000:,.3f} KB of keys and values sent, "
            f"{reduced / 1000:,.3f} KB of all-reduces per GPU in prefill"
        )
