"""Time that routes may take to change: CCT against G for the adaptive schemes (section 5.2)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import log2
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from reproduction.report import schemes, style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, slug
from reproduction.report.looks import Needs
from reproduction.report.schemes import FAILED_LINKS, MIB, NEVER, mean_of, not_so, percent, where
from reproduction.report.statistics import Estimate, every, opposite

ATA = "all-to-all"
PERMUTATION = "permutation"
LARGE = "permutation, 16 MB"
SWITCH = "switch_pkt_ar"
HOST = "host_pkt_ar"
ADAPTIVE = (SWITCH, HOST)
# Section 5.2 calibrates: the all-to-all lasts 220 RTTs, the permutation between two and three. Both
# axes go from converged routes to a large part of the run or beyond it; 16 MB last 30.
ATA_RTTS = (0, 10, 20, 200)
PERMUTATION_RTTS = (0, 0.5, 1, 1.5, 2, 3, 4)
LARGE_RTTS = (0, 2, 5, 10)
# Ours: "equal" in points of CCT, or as a ratio.
EQUAL = 0.02
# The paper's words: about 10 RTTs, which we read as up to a factor of 2; 1 to 2 RTTs.
ATA_TOLERATES = (5, 20)
PERMUTATION_TOLERATES = (1, 2)


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both schemes with every G, and Host Pkt AR with routes that never change."""
    settings = {
        ATA: (
            schemes.ALL_TO_ALL | preset.pick({"fabric__k": 6}, schemes.SMALLER, {}),
            ATA_RTTS,
            preset.seeds(),
        ),
        PERMUTATION: (schemes.PERMUTATION, PERMUTATION_RTTS, preset.seeds()),
        LARGE: (
            schemes.PERMUTATION | {"collective__message_bytes": 16 * MIB},
            LARGE_RTTS,
            preset.seeds(2, 10, 10),
        ),
    }

    # Links have failed from time 0 on. Host Pkt AR is needed with G = infinity too, and
    # Switch Pkt AR's runs there are the ones of figure "no_convergence".
    runs = []
    for name, (matrix, rtts, seeds) in settings.items():
        base = {"name": name, **matrix, "failures__rate": FAILED_LINKS}
        runs += grid(base, ADAPTIVE, seeds, failures__convergence_rtt=rtts)
        runs += grid(base, (HOST,), seeds, failures__convergence_rtt=(NEVER,))

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw one panel a matrix: lines over G, and Host Pkt AR without convergence as a band."""
    return {panel: _lines(rows) for panel, rows in data.parts(ATA, PERMUTATION, LARGE).items()}


def _lines(frame: pl.DataFrame) -> Any:
    picture, axes = style.panel()
    finite = frame.filter(pl.col("convergence_rtt").is_finite())
    style.lines(
        axes, frame=finite, x="convergence_rtt", y="sending_increase", policies=ADAPTIVE, scale=100
    )
    # The paper's dashed and shaded reference: hosts that must find dead paths by themselves.
    never = mean_of(frame.filter(pl.col("convergence_rtt").is_infinite()), HOST)
    ink = style.colour(HOST)
    top = 1.25 * axes.get_ylim()[1]
    axes.axhline(
        100 * never.mean,
        color=ink,
        linestyle=":",
        linewidth=1,
        label=f"Host Pkt AR, G = ∞: {100 * never.mean:.0f} %",
    )

    if never.count > 1:
        axes.axhspan(100 * never.low, 100 * never.high, color=ink, alpha=0.12, linewidth=0)

    axes.set_xlabel("G (zero-load RTTs)")
    axes.set_ylabel(style.INCREASE)
    axes.set_ylim(0, top)
    axes.legend()

    return picture


def claims(data: Data) -> list[Verdict]:
    """Decide C06."""
    frames = {panel: data.named(panel) for panel in (ATA, PERMUTATION, LARGE)}
    points = {panel: by_delay(frame) for panel, frame in frames.items()}
    ratios = {panel: by_delay(frame, schemes.log_ratio) for panel, frame in frames.items()}
    # "Eventually": at the largest G that was run, of the purely switch-based scheme.
    late = where(frames[ATA], convergence_rtt=float(max(ATA_RTTS)), policy=SWITCH)
    never = frames[ATA].filter(pl.col("convergence_rtt").is_infinite())
    ends = (
        mean_of(late, SWITCH),
        mean_of(never, HOST),
        # One fabric, and the same failures by seed.
        schemes.paired_by_seed(late, never),
    )

    return [
        small_delays(points, ends, EQUAL),
        replace(
            small_delays(ratios, ends, log2(1 + EQUAL)), criterion=BY_RATIO, why="", evidence=""
        ),
    ]


BY_RATIO = (
    "as above, with ratios of completion times instead of differences (draws of failures scale "
    "the times of both schemes)"
)


def by_delay(
    frame: pl.DataFrame, compare: Callable[[pl.DataFrame, str, str], Estimate] = schemes.difference
) -> dict[float, Estimate]:
    """Return Switch Pkt AR against Host Pkt AR for each finite G."""
    delays = sorted(delay for delay in frame["convergence_rtt"].unique() if delay < NEVER)
    return {delay: compare(where(frame, convergence_rtt=delay), SWITCH, HOST) for delay in delays}


def first_difference(differences: Mapping[float, Estimate]) -> float:
    """Return the smallest G from which on Switch Pkt AR is above Host Pkt AR, infinity if never."""
    # From above: a difference that a larger G takes back came from the draws.
    first = float("inf")
    for delay in sorted(differences, reverse=True):
        if differences[delay].low <= 0:
            break

        first = delay

    return first


def equal_up_to(differences: Mapping[float, Estimate]) -> float:
    """Return the largest G below the first at which schemes differ, the largest tolerated G."""
    first = first_difference(differences)
    return max((delay for delay in differences if delay < first), default=0)


def tolerates(
    differences: Mapping[float, Estimate], least: float, most: float, margin: float
) -> bool | None:
    """Return whether `equal_up_to` lies between two delays, None where that is not decided."""
    worse = {delay: value.above(0, margin) for delay, value in differences.items()}
    at_least = opposite(every(value for delay, value in worse.items() if delay >= least))
    at_most = every(value for delay, value in worse.items() if delay > most)
    return every([at_least, at_most])


def small_delays(
    estimates: Mapping[str, Mapping[float, Estimate]], ends: Sequence[Estimate], margin: float
) -> Verdict:
    """Decide C06; `ends` are Switch Pkt AR at the largest G, Host Pkt AR at G = infinity, both."""
    largest_equal = {panel: equal_up_to(differences) for panel, differences in estimates.items()}
    equal = {
        # Half of the margin is enough to tell on which side of it a difference is.
        panel: estimates[panel][0].within(-margin, margin, margin / 2)
        for panel in (ATA, PERMUTATION)
    }
    until = {
        ATA: tolerates(estimates[ATA], *ATA_TOLERATES, margin),
        PERMUTATION: tolerates(estimates[PERMUTATION], *PERMUTATION_TOLERATES, margin),
    }
    behind = ends[2].above(0, EQUAL)
    checks: dict[str, bool | None] = {
        "the schemes are equal at G = 0": every(equal.values()),
        "the all-to-all tolerates about 10 RTTs": until[ATA],
        "the permutation tolerates 1 to 2 RTTs": until[PERMUTATION],
        BEHIND: behind,
    }
    undecided = {(panel, 0.0) for panel, right in equal.items() if right is None}
    undecided |= {
        (panel, delay)
        for panel, right in until.items()
        for delay, difference in estimates[panel].items()
        if right is None and difference.above(0, margin) is None
    }
    undecided |= {(ATA, float(max(ATA_RTTS))), (ATA, NEVER)} if behind is None else set()

    return Verdict(
        "C06",
        verdict=decide(list(checks.values())),
        ours=(
            f"at G = 0 Switch Pkt AR - Host Pkt AR is {percent(estimates[ATA][0])} (all-to-all) "
            f"and {percent(estimates[PERMUTATION][0])} (permutation); equal up to G = "
            f"{_rtts(largest_equal[ATA])} in the all-to-all, worse from "
            f"{_rtts(first_difference(estimates[ATA]))} on; equal up "
            f"to {_rtts(largest_equal[PERMUTATION])} in the permutation, worse from "
            f"{_rtts(first_difference(estimates[PERMUTATION]))} on; at G = {max(ATA_RTTS)} RTTs "
            f"Switch Pkt AR is at {percent(ends[0])} in the all-to-all, Host Pkt AR with G = ∞ "
            f"at {percent(ends[1])} ({ends[0].count} and {estimates[PERMUTATION][0].count} seeds)"
        ),
        paper="equal to about 10 RTTs in the all-to-all, 1 to 2 RTTs in the permutation",
        why=not_so(checks, REASON),
        evidence="; ".join(
            f"{panel}: {_row(differences)}"
            for panel, differences in estimates.items()
            if panel != LARGE
        ),
        seeds=min(ends[0].count, estimates[PERMUTATION][0].count),
        needs=_points(undecided),
    )


def _points(selected: Collection[tuple[str, float]]) -> Needs:
    """Return the predicate that selects the scenarios of these parts and delays."""
    named = {(slug(panel), delay) for panel, delay in selected}
    return lambda scenario: (scenario.name, scenario.failures.convergence_rtt) in named


BEHIND = f"Switch Pkt AR at G = {max(ATA_RTTS)} RTTs is behind Host Pkt AR without convergence"


REASON = (
    "Draws of failures differ so much that small effects of G drown in the spread of the "
    "differences."
)


def _rtts(delay: float) -> str:
    return "∞" if delay == float("inf") else f"{delay:g} RTTs"


def _row(differences: Mapping[float, Estimate]) -> str:
    return ", ".join(
        f"G = {delay:g}: {percent(difference)}" for delay, difference in differences.items()
    )


FIGURE = Figure(
    name="convergence",
    title="Failures, routes change after G",
    paper="Figure 4 (varying G), section 5.2",
    caption=(
        "CCT increase over the bound with ρmax, 1 % failed links, when switches learn of the "
        "failures after G. The all-to-all is of 2.4 MB on 54 hosts (--full: 1 MB on 128), 220 RTTs "
        "either way."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
