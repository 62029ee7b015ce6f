"""How long routes may take to change: CCT against G for the adaptive schemes (section 4.2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from fattree.experiment import Scenario
from sim.report import schemes, style
from sim.report.claims import decide
from sim.report.figure import Data, Figure, Preset, Verdict, grid
from sim.report.schemes import FAILED_LINKS, MIB, NEVER, mean_of, not_so, percent, where
from sim.report.statistics import Estimate, apart, estimate, every

ATA = "all-to-all"
PERMUTATION = "permutation"
LARGE = "permutation, 16 MB"
SWITCH = "switch_pkt_ar"
HOST = "host_pkt_ar"
ADAPTIVE = (SWITCH, HOST)
# With Switch Pkt AR these are the packet schemes that do not see failures.
UNAWARE = ("host_pkt", "switch_pkt")
# Every scheme is slower with this G in the all-to-all: larger ones are not needed.
MOST_TOLERATED = 20
# Section 4.2 calibrates: the all-to-all lasts 220 RTTs, the permutation between two and three. Both
# axes go from converged routes to a large part of the run or beyond it; 16 MB last 30.
ATA_RTTS = (0, 10, 20, 200)
PERMUTATION_RTTS = (0, 0.5, 1, 1.5, 2, 3, 4)
LARGE_RTTS = (0, 2, 5, 10)
# Ours: what G may cost a scheme more in one matrix than in the other.
COSTLY = 0.02
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

    # C28 asks every packet scheme but Host Pkt AR, which finds dead paths by itself.
    for name in (ATA, LARGE):
        matrix, rtts, seeds = settings[name]
        base = {"name": f"others, {name}", **matrix, "failures__rate": FAILED_LINKS}
        near = tuple(rtt for rtt in rtts if rtt <= MOST_TOLERATED)
        runs += grid(base, UNAWARE, seeds, failures__convergence_rtt=near)

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
    """Decide C06 and C28."""
    frames = {panel: data.named(panel) for panel in (ATA, PERMUTATION, LARGE)}
    points = {panel: by_delay(frame) for panel, frame in frames.items()}
    ratios = {panel: by_delay(frame, schemes.log_ratio) for panel, frame in frames.items()}
    # "Eventually": at the largest G that was run, of the purely switch-based scheme.
    ends = (
        mean_of(where(frames[ATA], convergence_rtt=max(ATA_RTTS)), SWITCH),
        mean_of(frames[ATA].filter(pl.col("convergence_rtt").is_infinite()), HOST),
    )

    return [
        small_delays(points, ends),
        replace(small_delays(ratios, ends), criterion=BY_RATIO, why="", evidence=""),
        large_messages(*(costs(pl.concat(_of_all(data, panel))) for panel in (LARGE, ATA))),
    ]


def _of_all(data: Data, panel: str) -> list[pl.DataFrame]:
    """Return the runs of the schemes that C28 is about."""
    return [where(data.named(panel), policy=SWITCH), data.named(f"others, {panel}")]


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
    # From above: a difference that a larger G takes back was one of the draws.
    first = float("inf")
    for delay in sorted(differences, reverse=True):
        if differences[delay].low <= 0:
            break

        first = delay

    return first


def equal_up_to(differences: Mapping[float, Estimate]) -> float:
    """Return the largest G below the first at which schemes differ: what the network tolerates."""
    first = first_difference(differences)
    return max((delay for delay in differences if delay < first), default=0)


def small_delays(
    found: Mapping[str, Mapping[float, Estimate]], ends: Sequence[Estimate]
) -> Verdict:
    """Decide C06; `ends` are Switch Pkt AR at the largest G and Host Pkt AR at G = infinity."""
    most = {panel: equal_up_to(differences) for panel, differences in found.items()}
    checks: dict[str, bool | None] = {
        "the schemes are equal at G = 0": all(
            not found[panel][0].differs for panel in (ATA, PERMUTATION)
        ),
        "the all-to-all tolerates about 10 RTTs": ATA_TOLERATES[0] <= most[ATA] <= ATA_TOLERATES[1],
        "the permutation tolerates 1 to 2 RTTs": PERMUTATION_TOLERATES[0]
        <= most[PERMUTATION]
        <= PERMUTATION_TOLERATES[1],
        BEHIND: ends_in_order(*ends),
    }

    return Verdict(
        "C06",
        verdict=decide(list(checks.values())),
        ours=(
            f"at G = 0 Switch Pkt AR - Host Pkt AR is {percent(found[ATA][0])} (all-to-all) and "
            f"{percent(found[PERMUTATION][0])} (permutation); equal up to G = {_rtts(most[ATA])} "
            f"in the all-to-all, worse from {_rtts(first_difference(found[ATA]))} on; equal up "
            f"to {_rtts(most[PERMUTATION])} in the permutation, worse from "
            f"{_rtts(first_difference(found[PERMUTATION]))} on; at G = {max(ATA_RTTS)} RTTs "
            f"Switch Pkt AR is at {percent(ends[0])} in the all-to-all, Host Pkt AR with G = ∞ "
            f"at {percent(ends[1])} ({ends[0].count} and {found[PERMUTATION][0].count} seeds)"
        ),
        paper="equal to about 10 RTTs in the all-to-all, 1 to 2 RTTs in the permutation",
        why=not_so(checks, REASON),
        evidence="; ".join(
            f"{panel}: {_row(differences)}"
            for panel, differences in found.items()
            if panel != LARGE
        ),
        seeds=min(ends[0].count, found[PERMUTATION][0].count),
    )


def ends_in_order(late: Estimate, never: Estimate) -> bool | None:
    """Return whether the first is above the second, None where their intervals overlap."""
    if late.low > never.high or late.high < never.low:
        return late.mean > never.mean

    return None


BEHIND = f"Switch Pkt AR at G = {max(ATA_RTTS)} RTTs is behind Host Pkt AR without convergence"


REASON = (
    "Draws of failures differ so much that small effects of G drown in the spread of the "
    "differences."
)


Costs = dict[tuple[str, float], Estimate]


def costs(frame: pl.DataFrame) -> Costs:
    """Return what each G costs each scheme, by (policy, G)."""
    delays = sorted(
        delay for delay in frame["convergence_rtt"].unique() if 0 < delay <= MOST_TOLERATED
    )
    policies = sorted(frame["policy"].unique())
    return {(policy, delay): _cost(frame, policy, delay) for delay in delays for policy in policies}


def _cost(frame: pl.DataFrame, policy: str, delay: float) -> Estimate:
    """Return by which share G delays a scheme's completion, paired by seed."""
    rows = where(frame, policy=policy)
    own, none = (
        schemes.of_policy(where(rows, convergence_rtt=rtt), policy, "sending_cct_ps")
        for rtt in (delay, 0)
    )

    return estimate(own / none - 1)


def large_messages(large: Costs, ata: Costs) -> Verdict:
    """Decide C28: half of a G costs 16 MB permutations as little as that G the all-to-all."""
    pairs = {
        (policy, delay): (large[policy, delay / 2], whole)
        for (policy, delay), whole in ata.items()
        if (policy, delay / 2) in large
    }
    # Two fabrics, so their runs are no pairs although their seeds are the same.
    more = {key: apart(*pair) for key, pair in pairs.items()}
    checks = [every(each.below(COSTLY) for each in more.values())]

    return Verdict(
        "C28",
        verdict=decide(checks),
        ours="; ".join(
            f"{style.label(policy)}: G = {_rtts(delay / 2)} costs 16 MB {percent(half)}, "
            f"G = {_rtts(delay)} the all-to-all {percent(whole)}"
            for (policy, delay), (half, whole) in pairs.items()
        ),
        paper="the acceptable convergence time is longer, similar to the all-to-all",
        why=""
        if checks[0]
        else "16 MB take 30 RTTs, the all-to-all 220: the same G is a larger part of the CCT.",
        evidence="; ".join(
            f"{panel}: {_costs(part)}" for panel, part in ((ATA, ata), (LARGE, large))
        ),
        seeds=min(value.count for part in (large, ata) for value in part.values()),
    )


def _costs(cost: Costs) -> str:
    return ", ".join(
        f"{style.label(policy)} at {delay:g}: {percent(value)}"
        for (policy, delay), value in cost.items()
    )


def _rtts(delay: float) -> str:
    return "∞" if delay == float("inf") else f"{delay:g} RTTs"


def _row(differences: Mapping[float, Estimate]) -> str:
    return ", ".join(f"G = {delay:g}: {percent(found)}" for delay, found in differences.items())


FIGURE = Figure(
    name="convergence",
    title="Failures, routes change after G",
    paper="fig. varying G, section 4.2",
    caption=(
        "CCT increase over the bound with ρmax, 1 % failed links, when switches learn of the "
        "failures after G. The all-to-all is of 2.4 MB on 54 hosts (--full: 1 MB on 128), 220 RTTs "
        "either way."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
