"""FSDP training of three Llama models on 1,024 GPUs with the whole stack (section 8.4)."""

from itertools import pairwise
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from fattree.shape.topology import SWITCH_LAYERS
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, parts
from reproduction.report.schemes import BEST, listed, mean_of, not_so, of_policy, where
from reproduction.report.statistics import Estimate, estimate, every, paired

MODELS = {"llama-7b": "7B", "llama-70b": "70B", "llama-405b": "405B"}
LARGEST = "llama-405b"
ADAPTIVE = ("host_pkt_ar", "switch_pkt_ar")
# The paper has 52 times; the limits of near and of large are ours.
RATIO = 52
NEAR_RATIO = (RATIO / 1.25, RATIO * 1.25)
LARGE_RATIO = 20
FACTOR = 1.5
# A value nearer to the ratio than this is not above it.
NEAR = 1.0
PACKET = 1.0
FIXED = "fixed rate"
K = 16


def scenarios(preset: Preset) -> list[Scenario]:
    """Return one ring step of each model with MSwift, and the largest at a fixed rate."""
    # A phase is "each collective phase" of section 8.4: GPU i sends to i + 8, packets by the model.
    # The fixed rate shows the part that MSwift's throttling adds.
    seeds = preset.seeds(1, 10, 10)
    base = {"fabric__k": K, "collective__matrix": "fsdp", "collective__steps": 1}
    stack = {"transport__congestion": "mswift", "transport__recovery": "sack"}

    return [
        *grid({"name": "fsdp", **base, **stack}, BEST, seeds, collective__model=tuple(MODELS)),
        *grid({"name": FIXED, **base}, BEST, preset.seeds(1, 3, 10), collective__model=(LARGEST,)),
    ]


def _model(frame: pl.DataFrame, model: str) -> pl.DataFrame:
    return where(frame, collective__model=model)


def draw(data: Data) -> dict[str, Any]:
    """Draw CCT increases of all models, utilisation and max queue by layer of the largest."""
    frame = data.named("fsdp")
    panels = {
        f"{name}: CCT increase": _bars(_model(frame, model)) for model, name in MODELS.items()
    }
    largest = _model(frame, LARGEST)
    panels["405B: utilisation"] = _layers(
        largest, "utilisation_layers", 100, "link utilisation (%)"
    )
    panels["405B: max queue"] = _layers(
        largest, "max_queue_layers", 1, "max queue (packets)", log=True
    )

    return panels


def _bars(frame: pl.DataFrame) -> Any:
    picture, axes = style.panel(2.4, 2.7)
    style.bars(axes, {policy: mean_of(frame, policy) for policy in BEST}, scale=100, digits=2)
    axes.set_ylabel(style.INCREASE)

    return picture


def _layers(frame: pl.DataFrame, column: str, scale: float, text: str, log: bool = False) -> Any:
    picture, axes = style.panel(3.6, 2.9)
    for index, policy in enumerate(BEST):
        values = [
            estimate([scale * row[layer] for row in of_policy(frame, policy, column)])
            for layer in range(len(SWITCH_LAYERS))
        ]

        spots = [layer + 0.27 * (index - 1) for layer in range(len(SWITCH_LAYERS))]
        look: dict[str, Any] = {"color": style.colour(policy), "label": style.label(policy)}
        if log:
            style.dots(axes, spots, values, **look)
            continue

        axes.bar(
            spots,
            [value.mean for value in values],
            yerr=[value.whisker for value in values],
            width=0.25,
            edgecolor="#333333",
            linewidth=0.5,
            **look,
        )

    axes.set_xticks(range(len(SWITCH_LAYERS)), SWITCH_LAYERS)
    axes.set_ylabel(text)
    if log:
        style.plain_log(axes, (1, 2, 5, 10, 20, 50, 100, 200, 500))
        style.buffer_line(axes, is_right=True)

    style.legend_above(picture, axes)
    return picture


def claims(data: Data) -> list[Verdict]:
    """Decide C16."""
    frame = data.named("fsdp")
    ofan_increases = [of_policy(_model(frame, model), "ofan") for model in MODELS]
    largest = _model(frame, LARGEST)
    ratios = {policy: _over(largest, policy, largest, "ofan") for policy in ADAPTIVE}
    ratio = min(ratios.values(), key=lambda value: value.mean)
    smallest = _model(frame, next(iter(MODELS)))
    kept = {policy: _over(largest, policy, smallest, policy) for policy in ADAPTIVE}
    checks = {
        "Ofan's increase falls with the model's size": every(
            paired(before, after).above(0, CLAIMS["C16"].margin)
            for before, after in pairwise(ofan_increases)
        ),
        "it is over 20 times below the others' at 405B": ratio.above(LARGE_RATIO, NEAR),
        "the others' increase at 405B is that at 7B, within a factor 1.5": every(
            value.within(1 / FACTOR, FACTOR, NEAR / 20) for value in kept.values()
        ),
        "utilisation is higher with Ofan": all(
            utilised(largest, "ofan") > utilised(largest, policy) for policy in ADAPTIVE
        ),
        "Ofan's max queue is shorter": schemes.lowest(
            largest, "ofan", ADAPTIVE, "max_queue_packets", PACKET
        ),
    }

    near = {
        "it is 52 times below the others' at 405B, within a factor 1.25": ratio.within(
            *NEAR_RATIO, NEAR
        )
    }
    return [
        Verdict(
            "C16",
            verdict=decide([*checks.values(), *near.values()]),
            ours="; ".join(
                f"{name}: {listed(_model(frame, model), BEST, 2)}" for model, name in MODELS.items()
            )
            + f"; at 405B Ofan's increase is {ratio:.1f} times below the better of the others; "
            "increase at 405B over that at 7B: "
            + ", ".join(f"{style.label(policy)} {value:.2f}" for policy, value in kept.items())
            + "; mean link utilisation "
            + ", ".join(
                f"{style.label(policy)} {100 * utilised(largest, policy):.0f} %" for policy in BEST
            )
            + "; max queue "
            + ", ".join(
                f"{style.label(policy)} {mean_of(largest, policy, 'max_queue_packets').mean:.0f}"
                for policy in BEST
            )
            + " packets",
            paper="52 times below the others at 405B",
            why=not_so(checks | near),
            evidence=f"405B at a fixed rate: {listed(data.named(FIXED), BEST, 2)}",
            seeds=schemes.seeds_of(frame),
            needs=parts("fsdp"),
        ),
        Verdict(
            "C16",
            verdict=decide(list(checks.values())),
            ours=f"a ratio of {ratio:.1f}",
            criterion="as above, a ratio over 20 is enough (the first form)",
            seeds=schemes.seeds_of(frame),
            needs=parts("fsdp"),
        ),
    ]


def _over(first: pl.DataFrame, policy: str, second: pl.DataFrame, rival: str) -> Estimate:
    """Return the ratio of two schemes' increases, paired by seed."""
    return estimate(of_policy(first, policy) / of_policy(second, rival))


def utilised(frame: pl.DataFrame, policy: str) -> float:
    """Return the mean utilisation of inter-switch links."""
    # The first four of SWITCH_LAYERS; the fifth is edges' links to hosts.
    return float(
        estimate([sum(row[:4]) / 4 for row in of_policy(frame, policy, "utilisation_layers")]).mean
    )


FIGURE = Figure(
    name="fsdp",
    title="FSDP training of Llama models",
    paper="Figure 14 (FSDP), section 8.4",
    caption=(
        "One ring step on 1,024 GPUs (k = 16, servers placed at random) with MSwift and SACK: "
        "104, 418 and 1,570 packets a flow."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
