"""All contenders without failures, Host DR and Ofan beside them (section 5.1)."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import polars as pl

from fattree.demand.bounds import Timing, plain_sum_ps
from fattree.experiment.model import Scenario
from fattree.texts.looks import SLATES
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, POINT, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, parts
from reproduction.report.schemes import (
    COARSE,
    CONTENDERS,
    PACKET,
    ROTATION,
    listed,
    mean_of,
    not_so,
    percent,
    seeds_of,
    spread,
)
from reproduction.report.statistics import every, paired

SHOWN = (*CONTENDERS, *ROTATION)
# Host DR costs as much as the others there, and no claim is about it.
IN_ALL_TO_ALL = (*CONTENDERS, "ofan")
# Beside them in the permutation, where they cost little: forms of a choice that the paper leaves.
OTHER_FORMS = ("rsq", "simple_rr", "simple_rr_shared", "switch_pkt_ar_stale")
# "Little difference" between packet schemes is ours to say; the other two are the paper's numbers.
CLOSE = 0.15
NEAR_BOUND = 0.01
FLOWLETS_WITHIN = 0.16
# Of columns: from the collective's start, not from each flow's first packet.
START = "increase"
ATA = "all-to-all"
PERMUTATION = "permutation"
FORMS = "other forms"
# The two alone: they vary more than all others, and get seeds of their own.
FLOWLETS = "flowlets and subflows"
# Pictures of two claims alone: in the bars of all schemes their differences are too small to see.
APART = "permutation, packet schemes against coarser ones"
SEED_BY_SEED = "permutation, flowlets less subflows"


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both matrices with every contender."""
    ata = schemes.ALL_TO_ALL | {"fabric__k": preset.pick(4, 8, 8)}
    return [
        *grid({"name": ATA, **ata}, IN_ALL_TO_ALL, preset.seeds()),
        *grid({"name": PERMUTATION, **schemes.PERMUTATION}, SHOWN, preset.seeds(3, 20, 20)),
        *grid({"name": FORMS, **schemes.PERMUTATION}, OTHER_FORMS, preset.seeds(3, 20, 20)),
        *grid(
            {"name": FLOWLETS, **schemes.PERMUTATION},
            ("subflow", "host_flowlet_ar"),
            preset.seeds(3, 20, 20),
        ),
    ]


def draw(data: Data) -> dict[str, Any]:
    """Draw one bar chart a matrix, and a picture each for C02 and C04."""
    pictures = {
        panel: style.increase_bars(rows, IN_ALL_TO_ALL if panel == ATA else SHOWN, 4, 3)
        for panel, rows in data.parts(ATA, PERMUTATION).items()
    }
    if PERMUTATION in pictures:
        pictures[APART] = _apart(data.named(PERMUTATION))

    if len(both := data.named(FLOWLETS)):
        pictures[SEED_BY_SEED] = _seed_by_seed(both)

    return pictures


def _apart(frame: pl.DataFrame) -> Any:
    """Draw packet schemes and coarser ones on a logarithmic axis, with C02's band of 15 points."""
    picture, axes = style.panel(4, 3)
    policies = (*PACKET, *COARSE)
    means = [mean_of(frame, policy) for policy in policies]
    lowest = min(mean.mean for mean in means[: len(PACKET)])
    axes.axhspan(100 * lowest, 100 * (lowest + CLOSE), color=SLATES[-1], alpha=0.35, linewidth=0)
    for column, (policy, mean) in enumerate(zip(policies, means, strict=True)):
        style.dots(axes, [column], [mean], 100, color=style.colour(policy))
        axes.annotate(
            f"{100 * mean.mean:.1f}",
            (column, 100 * (mean.mean + mean.whisker)),
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=7,
        )

    axes.text(-0.5, 100 * (lowest + CLOSE), "15 points above the best", va="bottom", fontsize=7)
    axes.axvline(len(PACKET) - 0.5, color="#333333", linewidth=0.6)
    style.plain_log(axes, (5, 10, 20, 50, 100, 200, 500))
    axes.set_xlim(-0.6, len(policies) - 0.4)
    axes.set_ylabel(style.INCREASE)
    style.slanted(axes, [style.label(policy) for policy in policies])
    return picture


def _seed_by_seed(frame: pl.DataFrame) -> Any:
    """Draw Host Flowlet AR less Subflow for each seed in order of size, and their mean."""
    picture, axes = style.panel(4, 3)
    flowlets, subflows = (
        schemes.of_policy(frame, policy) for policy in ("host_flowlet_ar", "subflow")
    )
    seeds = min(len(flowlets), len(subflows))
    gaps = sorted(100 * (flowlets[:seeds] - subflows[:seeds]))
    mean = schemes.difference(frame, "host_flowlet_ar", "subflow")
    axes.axhspan(100 * mean.low, 100 * mean.high, color=SLATES[-1], alpha=0.5, linewidth=0)
    axes.axhline(
        100 * mean.mean, color=SLATES[0], label=f"mean {100 * mean.mean:.1f} points, its interval"
    )
    axes.plot(range(1, seeds + 1), gaps, "o", color=style.colour("host_flowlet_ar"))
    axes.axhline(0, color=style.BOUND, linewidth=0.9)
    axes.set_xticks([1, *range(5, seeds + 1, 5)])
    axes.set_xlabel(f"{seeds} seeds, in order of the difference")
    axes.set_ylabel("CCT increase, Host Flowlet AR\nless Subflow (points)")
    axes.legend(loc="upper left")
    return picture


def claims(data: Data) -> Iterator[Verdict]:
    """Decide C02, C04 and C03."""
    ata = data.named(ATA)
    permutation = data.named(PERMUTATION)
    yield packets_beat_coarse(permutation)
    yield flowlets_against_subflows(data.named(FLOWLETS))
    yield near_the_bound(ata, permutation)


def packets_beat_coarse(frame: pl.DataFrame) -> Verdict:
    """Decide C02."""
    # Each of the 12 pairs: means that differ overall could hide one contender out of place.
    beaten = {(a, b): schemes.below(frame, a, b) for a, b in product(PACKET, COARSE)}
    lost = [pair for pair, won in beaten.items() if not won]
    distance = spread(mean_of(frame, policy).mean for policy in PACKET)
    close = every(
        schemes.difference(frame, a, b).within(-CLOSE, CLOSE, POINT)
        for a, b in combinations(PACKET, 2)
    )

    return Verdict(
        "C02",
        decide([every(beaten.values()), close]),
        f"{listed(frame, CONTENDERS)}; packet schemes lie within {100 * distance:.1f} points"
        + (
            "; not below: "
            f"{', '.join(f'{style.label(a)} against {style.label(b)}' for a, b in lost)}"
            if lost
            else ""
        ),
        "packet schemes best, little difference between them",
        seeds=seeds_of(frame),
        panel=APART,
        needs=parts(PERMUTATION),
    )


def near_the_bound(ata: pl.DataFrame, permutation: pl.DataFrame) -> Verdict:
    """Decide C03."""
    # From the collective's start, as the bound is: the time of data and ACKs on a host's link. The
    # paper's plain sum leaves out the ACKs, which put every scheme 2 % above it; it is printed.
    packet = every(
        mean_of(ata, policy, START).below(NEAR_BOUND, CLAIMS["C03"].margin) for policy in PACKET
    )
    flowlet = mean_of(ata, "host_flowlet_ar", START)
    gains = [_gain(frame) for frame in (ata, permutation)]
    bound = ata["bound_ps"][0] / 1e6
    less = paired(gains[1][: len(gains[0])], gains[0][: len(gains[1])]).above(0, POINT)
    checks = {
        "packet schemes are within 1 % of the bound": packet,
        "flowlets are within 16 %": flowlet.below(FLOWLETS_WITHIN, POINT),
        "subflows help less than in the permutation": less,
    }

    return Verdict(
        "C03",
        verdict=decide(list(checks.values())),
        ours=(
            f"{listed(ata, IN_ALL_TO_ALL, 2, START)}, from the collective's start; the bound is "
            f"{bound:.1f} µs, the paper's plain sum {_plain_sum_us(ata):.1f} µs; CCT of flows / "
            f"subflows {gains[0].mean():.2f} here, {gains[1].mean():.2f} in the permutation"
        ),
        paper="packet schemes within 1 %, flowlets within 16 %",
        why=not_so(checks),
        evidence=(
            "the ECN and label settings of the report's flowlet scheme (50 %, 40 %, ten gaps) "
            "are the paper's where it gives them; how often a label may change is not given"
        ),
        seeds=seeds_of(ata),
        needs=parts(ATA) if packet is None or less is not None else parts(ATA, PERMUTATION),
    )


def _gain(frame: pl.DataFrame) -> Any:
    # Ratios of completion times: bounds from the first packet differ by a subflow's gap.
    flows, subflows = (
        schemes.of_policy(frame, policy, "sending_cct_ps") for policy in ("flow", "subflow")
    )
    return flows / subflows


def _plain_sum_us(frame: pl.DataFrame) -> float:
    """Return the sum of a host's transmissions and one round trip (section 5), in microseconds."""
    packets = int(frame["packets"][0]) // int(frame["hosts"][0])
    return plain_sum_ps(Timing.of(Scenario()), packets) / 1e6


def flowlets_against_subflows(frame: pl.DataFrame) -> Verdict:
    """Decide C04."""
    margin = CLAIMS["C04"].margin
    worse = schemes.difference(frame, "host_flowlet_ar", "subflow")
    return Verdict(
        "C04",
        decide([worse.above(0, margin)]),
        f"Host Flowlet AR - Subflow: {schemes.versus(worse, margin)} ({worse.count} seeds)",
        "flowlets do worse than subflows",
        seeds=worse.count,
        panel=SEED_BY_SEED,
        needs=parts(FLOWLETS),
    )


def table(data: Data) -> pl.DataFrame:
    """Return completion times and increases in both forms."""
    rows = []
    for panel, frame in data.parts(ATA, PERMUTATION, FORMS).items():
        for policy in frame["policy"].unique(maintain_order=True):
            start, first = (
                mean_of(frame, policy, column) for column in ("cct_ps", "sending_cct_ps")
            )
            rows.append(
                {
                    "matrix": ATA if panel == ATA else PERMUTATION,
                    "scheme": style.label(policy),
                    "CCT from the start (µs)": f"{start.mean / 1e6:.2f}",
                    "from the first packet (µs)": f"{first.mean / 1e6:.2f}",
                    "increase from the start": percent(mean_of(frame, policy, "increase"), 2),
                    "from the first packet": percent(mean_of(frame, policy), 2),
                    "seeds": start.count,
                }
            )

    return pl.DataFrame(rows)


FIGURE = Figure(
    name="baseline",
    title="No failures",
    paper="Figure 1 (baseline), section 5.1",
    caption=(
        "CCT increase over the bound of the contenders, and of Host DR and Ofan, with ideal "
        "loss recovery: 128 hosts, 1 MB messages."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    table=table,
)
