"""The mean queue of theorems 1 to 4 against message size (sections 6.1 and 7)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.fabric import DEFAULT_QUEUE_BYTES
from fattree.experiment.model import Scenario
from reproduction.figures.contenders import LAWS
from reproduction.figures.growth import NO_ACKS, PAYLOAD, sized
from reproduction.report import schemes, style
from reproduction.report.figure import Data, Figure, Preset, grid
from reproduction.report.measures.queues import queues_while_sending
from reproduction.report.schemes import mean_of, where
from reproduction.report.statistics import Estimate, exponent

# Those of which a theorem speaks: 1, 2, 3 and 4.
PROVEN = {
    "simple_rr": "linear",
    "jsq": "linear",
    "rsq": "sqrt(m)",
    "host_pkt": "sqrt(m)",
    "host_dr": "constant",
    "ofan": "constant",
}
THEOREMS = {"simple_rr": 1, "jsq": 1, "rsq": 2, "host_pkt": 2, "host_dr": 3, "ofan": 4}
# Laws of large m: below, queues are empty for most of the time until the first packet has come.
PACKETS = (256, 512, 1024, 2048, 4096)
ACKS = "ACKs as they are"
PARTS = {NO_ACKS: {"packets__ack_bytes": 1, "packets__gap_bytes": 0}, ACKS: {}}


def scenarios(preset: Preset) -> list[Scenario]:
    """Return permutations of every size, without limits of buffers, and with tiny ACKs."""
    limitless = {"fabric__queue_bytes": 0, "fabric__threshold_bytes": DEFAULT_QUEUE_BYTES}
    sizes = tuple(PAYLOAD * packets for packets in PACKETS[: preset.pick(3, 5, 5)])
    return [
        scenario
        for name, settings in PARTS.items()
        for scenario in grid(
            {"name": name, **schemes.PERMUTATION, **limitless, **settings},
            tuple(PROVEN),
            preset.seeds(1, 3, 10),
            collective__message_bytes=sizes,
        )
    ]


def averaged(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `size` in packets, and `mean_queue`: over all switch queues while hosts send."""
    # Each of the five layers has as many ports.
    layers = np.array(frame["sending"].to_list())
    return sized(frame).with_columns(mean_queue=pl.Series(layers.mean(axis=1)))


def exponents(frame: pl.DataFrame) -> Mapping[str, Estimate]:
    """Return the exponent of each scheme's mean queue over the message sizes."""
    return {
        policy: exponent(rows["size"].to_numpy(), rows["mean_queue"].to_numpy())
        for policy in PROVEN
        for rows in [where(frame, policy=policy)]
    }


def draw(data: Data) -> dict[str, Any]:
    """Draw the mean queue over the message, with ACKs of one byte and as they are."""
    return {name: _lines(averaged(rows)) for name, rows in data.parts(*PARTS).items()}


def _lines(frame: pl.DataFrame) -> Any:
    picture, axes = style.panel(3.4, 3.0)
    style.lines(axes, frame=frame, x="size", y="mean_queue", policies=tuple(PROVEN))
    style.powers_of_two(axes, sorted(frame["size"].unique()))
    style.plain_log(axes, (0.5, 1, 2, 5, 10, 20, 50, 100, 200))
    # Intervals of few seeds may reach below any queue.
    axes.set_ylim(0.5, 400)
    axes.set_xlabel("message (packets of 4 KB)")
    axes.set_ylabel("mean queue (packets)")
    style.legend_above(picture, axes, columns=2)
    return picture


def table(data: Data) -> pl.DataFrame:
    """Return each scheme's law, the exponents of its mean queue, and the longest message's."""
    frames = {name: averaged(rows) for name, rows in data.parts(*PARTS).items()}
    fits = {name: exponents(frame) for name, frame in frames.items()}
    longest = {name: where(frame, size=frame["size"].max()) for name, frame in frames.items()}
    return pl.DataFrame(
        [
            {
                "theorem": THEOREMS[policy],
                "scheme": style.label(policy),
                "law": LAWS[law],
                **{f"exponent, {name}": f"{fits[name][policy]:.2f}" for name in frames},
                **{
                    f"packets at the longest, {name}": (
                        f"{mean_of(longest[name], policy, 'mean_queue'):.2f}"
                    )
                    for name in frames
                },
            }
            for policy, law in PROVEN.items()
        ]
    )


FIGURE = Figure(
    name="mean_queues",
    title="The mean queue over all switches",
    paper="Theorems 1 to 4, sections 6.1 and 7, table 3",
    caption=(
        "Average over all switch queues while hosts send, permutations on 128 hosts, buffers "
        "without limit. The theorems know no ACKs: with ACKs of one byte the exponents are to be "
        "compared with 1, 1/2 and 0. C08 decides by the largest queue."
    ),
    scenarios=scenarios,
    draw=draw,
    table=table,
    measure=queues_while_sending,
)
