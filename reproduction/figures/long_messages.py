"""Cost of a late change of routes for long messages and for an all-to-all (section 5.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from reproduction.figures.convergence import ATA, ATA_RTTS, LARGE, LARGE_RTTS, SWITCH
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, slug
from reproduction.report.looks import Needs
from reproduction.report.schemes import FAILED_LINKS, MIB, not_so, percent, where
from reproduction.report.statistics import Estimate, apart, estimate, every, paired

# As many bytes of each host as in the all-to-all, so that both last as long.
LONG = "permutation as long as the all-to-all"
# All packet schemes but Host Pkt AR, which finds dead paths by itself.
UNSEEING = (SWITCH, "host_pkt", "switch_pkt")
# Every scheme is slower with this G in the all-to-all: larger ones are not needed.
MOST_TOLERATED = 20
DELAYS = tuple(rtt for rtt in ATA_RTTS if rtt <= MOST_TOLERATED)
# Ours: the extra cost of G that a permutation may have over the all-to-all, as a share of CCT.
ALIKE = 0.005
# Ours, of the two earlier forms.
COSTLY = 0.02

Costs = dict[tuple[str, float], Estimate]


def scenarios(preset: Preset) -> list[Scenario]:
    """Return all-to-all, equally long permutations and 16 MB, each with several G."""
    # Both on one fabric: a seed's failures are the same, so that their costs are pairs.
    ata = schemes.ALL_TO_ALL | preset.pick({"fabric__k": 6}, schemes.SMALLER, {})
    parts = {
        ATA: (ata, DELAYS, preset.seeds()),
        LONG: (long_permutation(ata), DELAYS, preset.seeds(1, 10, 10)),
        LARGE: (
            schemes.PERMUTATION | {"collective__message_bytes": 16 * MIB},
            LARGE_RTTS,
            preset.seeds(2, 10, 10),
        ),
    }
    return [
        scenario
        for name, (matrix, rtts, seeds) in parts.items()
        for scenario in grid(
            {"name": name, **matrix, "failures__rate": FAILED_LINKS},
            UNSEEING,
            seeds,
            failures__convergence_rtt=rtts,
        )
    ]


def long_permutation(ata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a permutation in which a host sends as much as in an all-to-all."""
    peers = FatTree(ata.get("fabric__k", Scenario().fabric.k)).hosts - 1
    message = peers * ata["collective__message_bytes"]
    return {**ata, "collective__matrix": "permutation", "collective__message_bytes": message}


def costs(frame: pl.DataFrame) -> Costs:
    """Return the cost of each G for each scheme, by (policy, G)."""
    delays = sorted(
        delay for delay in frame["convergence_rtt"].unique() if 0 < delay <= MOST_TOLERATED
    )
    policies = sorted(frame["policy"].unique())
    return {
        (policy, delay): estimate(costs_by_seed(frame, policy, delay)["cost"])
        for delay in delays
        for policy in policies
    }


def costs_by_seed(frame: pl.DataFrame, policy: str, delay: float) -> pl.DataFrame:
    """Return by which share G delays a scheme's completion, with each seed."""
    delayed, none = (
        where(frame, policy=policy, convergence_rtt=rtt).select("seed", "sending_cct_ps")
        for rtt in (delay, 0)
    )
    both = delayed.join(none, on="seed", suffix="_none").sort("seed")
    return both.select("seed", cost=pl.col("sending_cct_ps") / pl.col("sending_cct_ps_none") - 1)


def draw(data: Data) -> dict[str, Any]:
    """Draw the cost of each G, a picture for each collective."""
    return {name: _lines(rows) for name, rows in data.parts(ATA, LONG, LARGE).items()}


def _lines(frame: pl.DataFrame) -> Any:
    picture, axes = style.panel(3.2, 2.9)
    all_costs = costs(frame)
    for policy in UNSEEING:
        points = {delay: cost for (scheme, delay), cost in all_costs.items() if scheme == policy}
        style.line(axes, policy, points, scale=100)

    axes.set_xlabel("G (zero-load RTTs)")
    axes.set_ylabel("CCT over that with G = 0 (%)")
    axes.set_ylim(bottom=0)
    style.legend_above(picture, axes, columns=2)
    return picture


def claims(data: Data) -> list[Verdict]:
    """Decide C28."""
    frames = {name: data.named(name) for name in (ATA, LONG, LARGE)}
    large, ata = (costs(frames[name]) for name in (LARGE, ATA))
    return [as_long(frames[LONG], frames[ATA]), tolerated(large, ata), large_messages(large, ata)]


def as_long(long: pl.DataFrame, ata: pl.DataFrame) -> Verdict:
    """Decide C28: a G costs an equally long permutation no more than the all-to-all."""
    panels = {"permutation": costs(long), "all-to-all": costs(ata)}
    more = {
        (policy, delay): _apart(long, ata, policy, delay)
        for policy, delay in panels["permutation"]
        if (policy, delay) in panels["all-to-all"]
    }
    # Half of the margin is enough to tell on which side of it a difference is.
    near = CLAIMS["C28"].margin / 2
    alike = {key: difference.below(ALIKE, near) for key, difference in more.items()}
    undecided = [
        (panel, key) for key, right in alike.items() if right is None for panel in (LONG, ATA)
    ]
    checks = {
        f"{style.label(policy)} at G = {_rtts(delay)}": right
        for (policy, delay), right in alike.items()
    }
    return Verdict(
        "C28",
        verdict=decide([every(alike.values())]),
        ours="; ".join(
            f"{style.label(policy)}: G = {_rtts(delay)} costs the permutation "
            f"{percent(panels['permutation'][policy, delay], 2)}, the all-to-all "
            f"{percent(panels['all-to-all'][policy, delay], 2)}, a difference of "
            f"{percent(difference, 2)}"
            for (policy, delay), difference in more.items()
        ),
        paper="the acceptable convergence time is longer, similar to the all-to-all",
        why=not_so(checks),
        seeds=min(difference.count for difference in more.values()),
        needs=_of_costs(undecided),
    )


def _apart(long: pl.DataFrame, ata: pl.DataFrame, policy: str, delay: float) -> Estimate:
    """Return the difference of two collectives' costs, paired by seed."""
    both = costs_by_seed(long, policy, delay).join(
        costs_by_seed(ata, policy, delay), on="seed", suffix="_ata"
    )
    return paired(both["cost"], both["cost_ata"])


LARGEST = (
    "G* = the largest G at which every packet scheme but Host Pkt AR is within 2 % of its own "
    "G = 0; G* of 16 MB permutations is at least half that of the all-to-all (the first form; 16 "
    "MB last 30 RTTs, an all-to-all 220)"
)


def tolerated(large: Costs, ata: Costs) -> Verdict:
    """Decide C28 in its first form: the largest G that costs no scheme more than COSTLY."""
    ends = [most_tolerated(panel_costs) for panel_costs in (large, ata)]
    (lower, upper), (lower_ata, upper_ata) = ends
    # An undecided G* lies anywhere between its least and its largest value.
    decided = True if lower >= upper_ata / 2 else False if upper < lower_ata / 2 else None
    said = [
        f"{low:g} RTTs" if low == high else f"{low:g} to {high:g} RTTs (not decided)"
        for low, high in ends
    ]

    return Verdict(
        "C28",
        verdict=decide([decided]),
        ours=f"G* is {said[0]} for 16 MB permutations, {said[1]} for the all-to-all, of those run",
        evidence="; ".join(
            f"{panel}: {_costs(part)}" for panel, part in ((ATA, ata), (LARGE, large))
        ),
        criterion=LARGEST,
        seeds=min(value.count for part in (large, ata) for value in part.values()),
        needs=_of_costs(
            [
                (panel, key)
                for panel, part, (low, high) in ((LARGE, large, ends[0]), (ATA, ata, ends[1]))
                for key in unsure(part)
                if low < high
            ]
        ),
    )


def unsure(by_message: Costs) -> list[tuple[str, float]]:
    """Return the schemes and Gs at which it is not decided whether the cost is below COSTLY."""
    margin = CLAIMS["C28"].margin
    return [key for key, cost in by_message.items() if cost.below(COSTLY, margin) is None]


def most_tolerated(by_message: Costs) -> tuple[float, float]:
    """Return the least and the largest possible G*: the largest G that costs no scheme COSTLY."""
    margin = CLAIMS["C28"].margin
    bears = {
        delay: every(
            cost.below(COSTLY, margin) for (_, g), cost in by_message.items() if g == delay
        )
        for _, delay in by_message
    }
    return (
        max((delay for delay, right in bears.items() if right), default=0.0),
        max((delay for delay, right in bears.items() if right is not False), default=0.0),
    )


def _of_costs(selected: Sequence[tuple[str, tuple[str, float]]]) -> Needs:
    """Return the predicate for the runs of whole parts with such a G, and without."""
    points = {(slug(panel), delay) for panel, (_, g) in selected for delay in (0, g)}
    return lambda scenario: (scenario.name, scenario.failures.convergence_rtt) in points


HALF = (
    "half of each G that the all-to-all was run with costs no packet scheme but Host Pkt AR over 2 "
    "points more in the 16 MB permutation than that G does in the all-to-all, each against its own "
    "G = 0 (the second form, set after the first data: G* lies between the few G that were run, "
    "and flipped with the seeds)"
)


def large_messages(large: Costs, ata: Costs) -> Verdict:
    """Decide C28 in its second form: half of a G costs 16 MB as little as it the all-to-all."""
    pairs = {
        (policy, delay): (large[policy, delay / 2], whole)
        for (policy, delay), whole in ata.items()
        if (policy, delay / 2) in large
    }
    # Two fabrics, so their runs are no pairs although their seeds are the same.
    more = {key: apart(*pair) for key, pair in pairs.items()}
    margin = CLAIMS["C28"].margin
    cheap = {key: difference.below(COSTLY, margin) for key, difference in more.items()}
    checks = [every(cheap.values())]
    undecided = [
        (panel, (policy, g))
        for (policy, delay), right in cheap.items()
        for panel, g in ((LARGE, delay / 2), (ATA, delay))
        if right is None
    ]

    return Verdict(
        "C28",
        verdict=decide(checks),
        ours="; ".join(
            f"{style.label(policy)}: G = {_rtts(delay / 2)} costs 16 MB {percent(half)}, "
            f"G = {_rtts(delay)} the all-to-all {percent(whole)}"
            for (policy, delay), (half, whole) in pairs.items()
        ),
        why=""
        if checks[0]
        else "16 MB take 30 RTTs, the all-to-all 220: the same G is a larger part of the CCT.",
        criterion=HALF,
        seeds=min(value.count for part in (large, ata) for value in part.values()),
        needs=_of_costs(undecided),
    )


def _costs(cost: Costs) -> str:
    return ", ".join(
        f"{style.label(policy)} at {delay:g}: {percent(value)}"
        for (policy, delay), value in cost.items()
    )


def _rtts(delay: float) -> str:
    return f"{delay:g} RTTs"


FIGURE = Figure(
    name="long_messages",
    title="What late routes cost long messages",
    paper="Section 5.2",
    caption=(
        "1 % failed links: CCT with routes that change after G over that with routes that know the "
        "failures, of an all-to-all, of a permutation on the same fabric whose hosts send as many "
        "bytes, and of one of 16 MB on 128 hosts."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
