"""Beyond the paper: Ofan's gain from consolidated pointers, by level at edges and aggs."""

from itertools import product
from typing import Any

import polars as pl
from matplotlib.lines import Line2D

from fattree.experiment.model import Scenario
from fattree.routes.groups import LEVELS, Consolidation
from fattree.texts.looks import SLATES
from reproduction.figures.pointers import uses
from reproduction.report import style
from reproduction.report.figure import Data, Figure, Preset, grid
from reproduction.report.schemes import INTER_POD, KIB, MIB, where
from reproduction.report.statistics import estimate

# 1,024 hosts, so that a pod, an edge and a host differ by a factor of 8 each.
K = 16
# Appendix F has no figure of this. 32 KB is figure "overload"'s small message, where many pointers
# spread the load too thin (section 7).
MESSAGES = {"32 KB": 32 * KIB, "1 MB": MIB}
INK = dict(zip(("pod", "edge", "host"), SLATES[::2], strict=True))
HOST_DR = "Host DR"
TICKS = (2, 3, 5, 7, 10, 20, 30, 50, 100, 200)


def scenarios(preset: Preset) -> list[Scenario]:
    """Return inter-pod permutations with every pair of levels, and Host DR's."""
    # Host DR beside them, as the rotation that consolidates nothing.
    # Between pods only: every packet meets a pointer at its edge and at an aggregation switch.
    base = {**INTER_POD, "fabric__k": preset.pick(8, K, K)}
    seeds = preset.seeds(3, 5, 10)
    sizes = tuple(MESSAGES.values())
    levels = {"load_balancer__edge_pointers": LEVELS, "load_balancer__agg_pointers": LEVELS}
    ofan = grid(
        {"name": "ofan", **base}, ("ofan",), seeds, collective__message_bytes=sizes, **levels
    )

    return ofan + grid(
        {"name": "host_dr", **base}, ("host_dr",), seeds, collective__message_bytes=sizes
    )


def draw(data: Data) -> dict[str, Any]:
    """Draw CCT increase and max queue by level, for both message sizes."""
    return {name: _panels(where(data.frame, message_bytes=size)) for name, size in MESSAGES.items()}


def _panels(frame: pl.DataFrame) -> Any:
    picture, row = style.panel(3.3, 2.8, columns=2)
    for axes, column, scale in zip(
        row, ("sending_increase", "max_queue_packets"), (100, 1), strict=True
    ):
        for index, (edge, agg) in enumerate(product(LEVELS, LEVELS)):
            value = estimate(_of(frame, edge, agg)[column])
            # Three groups of three, with a gap between the groups.
            position = index % 3 + index // 3 * 3.6
            style.dots(axes, [position], [value], scale, color=INK[agg])

        reference = estimate(where(frame, policy="host_dr")[column]).mean
        axes.axhline(scale * reference, color=style.colour("host_dr"), linewidth=1)
        axes.set_xticks([1, 4.6, 8.2], [f"per {level}" for level in LEVELS])
        axes.set_xlabel("pointers at edges")
        # At 1 MB, a pointer per pod at edges is far above the rest.
        axes.set_yscale("log")
        axes.set_ylim(*_limits(frame[column], scale))
        style.plain_log(axes, TICKS)

    row[0].set_ylabel(style.INCREASE)
    row[1].set_ylabel("max queue (packets)")
    style.buffer_line(row[1], is_right=True)
    _legend(picture)

    return picture


def _limits(values: pl.Series, scale: float) -> tuple[float, float]:
    return 0.75 * scale * float(values.min()), 1.2 * scale * float(values.max())  # type: ignore[arg-type]


def _legend(picture: Any) -> None:
    handles: list[Any] = [
        Line2D([], [], marker="o", linestyle="", color=INK[level], label=f"aggs per {level}")
        for level in LEVELS
    ]
    handles.append(Line2D([], [], color=style.colour("host_dr"), label=HOST_DR))
    picture.legend(
        handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=7.5
    )


def _of(frame: pl.DataFrame, edge: str, agg: str) -> pl.DataFrame:
    return frame.filter(
        (pl.col("policy") == "ofan")
        & (pl.col("load_balancer.edge_pointers") == edge)
        & (pl.col("load_balancer.agg_pointers") == agg)
    )


def table(data: Data) -> pl.DataFrame:
    """Return pointers, CCT increase and max queue of every pair of levels."""
    k = int(data.frame["k"][0])
    rows = []
    for edge, agg in product(LEVELS, LEVELS):
        pointers = uses(k, Consolidation(edge, agg))
        row: dict[str, Any] = {
            "edges per": edge,
            "aggregations per": agg,
            "pointers, edge": pointers[0],
            "aggregation": pointers[1],
        }

        for name, size in MESSAGES.items():
            runs = _of(where(data.frame, message_bytes=size), edge, agg)
            row[f"CCT increase, {name} (%)"] = (
                f"{100 * estimate(runs['increase']).mean:.2f} ± "
                f"{100 * estimate(runs['increase']).half:.2f}"
            )
            row[f"max queue, {name}"] = f"{estimate(runs['max_queue_packets']):.1f}"

        rows.append(row)

    return pl.DataFrame(rows)


FIGURE = Figure(
    name="consolidation",
    title="Levels of consolidation",
    paper='Appendix F, "Consolidation", and beyond it',
    caption=(
        "Inter-pod permutations on 1,024 hosts: Ofan with one pointer per destination pod, edge "
        "or host, at edges and at aggregation switches; its own choice is edge and pod. A "
        "pointer per pod at edges breaks the invariant."
    ),
    scenarios=scenarios,
    draw=draw,
    table=table,
)
