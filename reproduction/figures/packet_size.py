"""The best packet size: header overhead against queueing (section 8.1, theorem 5)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from reproduction import theory
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, parts
from reproduction.report.schemes import BEST, KIB, MIB, not_so, of_policy, percent, where
from reproduction.report.statistics import Estimate, estimate

SMALL = "0.5 MB"
LARGE = "16 MB"
BYTES = {SMALL: MIB // 2, LARGE: 16 * MIB}
# Both sides of the model's optima, 2,073 and 11,729 B; the largest of all is near the 64 KB that
# IP's length field allows.
PAYLOADS = {
    SMALL: (512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384),
    LARGE: (2048, 4096, 8192, 11264, 16384, 32768),
}
TICKS = (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100)
# By figure "packet size" the model "roughly predicts" the optimum.
WITHIN = 1.5
# "Varying CCT by up to 10 %": ours are the limits, and the sizes, up to jumbo frames.
CHOICE = (0.05, 0.15)
JUMBO = 8192
# The square-root scheme: theorem 5 has D^(1/3) for its optimum.
ADAPTIVE = "switch_pkt_ar"


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both messages with every packet size."""
    seeds = {SMALL: preset.seeds(), LARGE: preset.seeds(1, 10, 10)}
    return [
        scenario
        for name, size in BYTES.items()
        for scenario in grid(
            {"name": name, **schemes.PERMUTATION, "collective__message_bytes": size},
            BEST,
            seeds[name],
            packets__payload_bytes=PAYLOADS[name][preset.pick(1, 0, 0) :],
        )
    ]


def over_best(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `over`: the CCT over the lowest of all packet sizes' bounds, minus 1."""
    # A bound has its packet size's headers in it. Over their own bounds small packets would look
    # best, as their overhead is in both.
    return frame.with_columns(
        (pl.col("sending_cct_ps") / frame["bound_ps"].min() - 1).alias("over")
    )


def draw(data: Data) -> dict[str, Any]:
    """Draw lines over the payload, with the model's optimum, one panel a message size."""
    return {name: _lines(over_best(data.named(name)), BYTES[name]) for name in BYTES}


def _lines(frame: pl.DataFrame, message: int) -> Any:
    picture, axes = style.panel(3.6, 3)
    style.lines(axes, frame, x="packets.payload_bytes", y="over", policies=BEST, scale=100)
    optimum = theory.optimal_payload_bytes(message)
    bound_ps = float(frame["bound_ps"].min())  # type: ignore[arg-type]
    modelled = theory.modelled_cct_ps(_scenario(message), optimum) / bound_ps - 1
    axes.plot(
        [optimum],
        [100 * modelled],
        "o",
        color=style.BOUND,
        markersize=7,
        label="optimum of the model",
        zorder=5,
    )

    ticks = [
        payload
        for payload in sorted(frame["packets.payload_bytes"].unique())
        if payload & (payload - 1) == 0
    ]

    style.powers_of_two(axes, ticks, [f"{payload / KIB:g}" for payload in ticks])
    axes.set_yscale("log")
    axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.set_ylim(0.05, 110)
    axes.set_xlabel("payload (KB)")
    axes.set_ylabel("CCT increase over the\nbest bound (%)")
    style.legend_above(picture, axes, columns=2)

    return picture


def _scenario(message: int) -> Scenario:
    return Scenario.model_validate({"collective": {"message_bytes": message}})


def claims(data: Data) -> list[Verdict]:
    """Decide C13."""
    frames = {name: over_best(data.named(name)) for name in BYTES}
    best = {
        name: {policy: optimum(frame, policy) for policy in BEST} for name, frame in frames.items()
    }
    model = {name: theory.optimal_payload_bytes(size) for name, size in BYTES.items()}
    interior = {
        name: min(PAYLOADS[name]) < best[name]["ofan"] < max(PAYLOADS[name]) for name in BYTES
    }
    close = {name: 1 / WITHIN <= best[name]["ofan"] / model[name] <= WITHIN for name in BYTES}
    effect = {policy: choice(frames[SMALL], policy) for policy in BEST}
    checks: dict[str, bool | None] = {
        f"Ofan's CCT has a minimum between payloads at {name}": right
        for name, right in interior.items()
    }
    checks |= {
        f"it is within a factor {WITHIN} of the model's at {name}": right
        for name, right in close.items()
    }
    matters = {
        f"the choice moves CCT by 5 to 15 % at {SMALL} with {style.label(policy)}": change.within(
            *CHOICE, CLAIMS["C13"].margin
        )
        for policy, change in effect.items()
    }
    seeds = schemes.seeds_of(frames[LARGE])
    return [
        Verdict(
            "C13",
            verdict=decide([*checks.values(), *matters.values()]),
            ours=f"the choice of the payload, up to {JUMBO} B, moves CCT at {SMALL} by "
            + ", ".join(f"{style.label(policy)} {percent(effect[policy])}" for policy in BEST)
            + "; "
            + "; ".join(
                f"{name}: best payload {_row(best[name])}, the model says {model[name]:.0f} B "
                "for Ofan"
                for name in BYTES
            )
            + f" ({schemes.seeds_of(frames[SMALL])} and {seeds} seeds)",
            seeds=seeds,
            paper="a clear sweet spot, up to 10 %",
            why=not_so(checks | matters, FLAT),
            evidence=(
                f"largest message over smallest: best payload grows by {_growth(best, 'ofan')} "
                f"for Ofan (model: {32**0.5:.1f}), by {_growth(best, ADAPTIVE)} for Switch Pkt "
                f"AR (D^(1/3): {32 ** (1 / 3):.1f})"
            ),
            needs=parts(SMALL),
        ),
        Verdict(
            "C13",
            verdict=decide(list(checks.values())),
            ours="minimum and model alone",
            criterion=(
                "interior minimum; measured optimum within a factor 1.5 of the model's (the first "
                "form, which left out by how much the choice moves CCT)"
            ),
            seeds=seeds,
        ),
    ]


FLAT = "Around the optimum the curve is flat."


def optimum(frame: pl.DataFrame, policy: str) -> float:
    """Return the payload of the least mean CCT, between those that were run."""
    # The vertex of a parabola through the best and its neighbours in log2 of the size, in which the
    # sizes are about evenly spaced.
    rows = (
        where(frame, policy=policy)
        .group_by("packets.payload_bytes")
        .agg(pl.col("over").mean())
        .sort("packets.payload_bytes")
    )

    sizes = np.log2(rows["packets.payload_bytes"].to_numpy())
    values = rows["over"].to_numpy()
    least = int(values.argmin())

    if least in (0, len(values) - 1):  # an end has one neighbour, and is no optimum
        return float(2 ** sizes[least])

    near = slice(least - 1, least + 2)
    a, b, _ = np.polyfit(sizes[near], values[near], 2)
    return float(2 ** (-b / (2 * a)))


def choice(frame: pl.DataFrame, policy: str) -> Estimate:
    """Return by which share of the CCT the worst payload is above the best, up to jumbo frames."""
    rows = where(frame, policy=policy).filter(pl.col("packets.payload_bytes") <= JUMBO)
    by_size = rows.group_by("packets.payload_bytes").agg(pl.col("sending_cct_ps").mean())
    ends = by_size.sort("sending_cct_ps")["packets.payload_bytes"]
    best, worst = (
        of_policy(where(rows, packets__payload_bytes=size), policy, "sending_cct_ps")
        for size in (ends[0], ends[-1])
    )
    both = min(len(best), len(worst))
    return estimate(worst[:both] / best[:both] - 1)


def _row(best: Mapping[str, float]) -> str:
    return ", ".join(f"{style.label(policy)} {payload:.0f} B" for policy, payload in best.items())


def _growth(best: Mapping[str, Mapping[str, float]], policy: str) -> str:
    return f"{best[LARGE][policy] / best[SMALL][policy]:.1f}"


FIGURE = Figure(
    name="packet_size",
    title="Packet size",
    paper="Figure 11 (packet size), section 8.1",
    caption=(
        "CCT over the lowest bound of all packet sizes, permutation on 128 hosts; the dot is "
        "the model's optimum with H = 82 B, α = 10."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
