"""Switches with lags: they learn of failures at their own times, as under BGP (docs/bgp.md)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from reproduction.figures.beyond.shared import seeds_of, spans
from reproduction.report import schemes, style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, slug
from reproduction.report.looks import Needs
from reproduction.report.schemes import MIB, not_so, percent, where
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import Estimate, estimate, every, one_direction

SHOWN = ("flow", "switch_pkt_ar", "host_dr", "ofan")
RIVALS = SHOWN[:-1]
# They give uplinks the weights of the surviving paths.
WEIGHTING = ("switch_pkt_ar", "ofan")
FAILED_LINKS = 0.04
# A message of 4 MiB is sent in 43 us, seven round trips.
DOWN_NS = 10_000
GS: tuple[float, ...] = (0, 1, 4, 32, 250, 1000)
# FRR's updates take 1 to 4 hops. The lags behind the first hop as shares of its 76 ms, each as
# often as measured: 432 switches with their last routes after 32 failures at k = 4 (docs/bgp.md).
HOPS = (*[0.0] * 4, *[0.68] * 8, *[1.36] * 9, *[2.05] * 6)
FIRST, LAGS, COARSE, LAST = (
    "all with the first",
    "one after the other",
    "one after the other, weights of BGP",
    "all with the last",
)
MODES = (FIRST, LAGS, COARSE, LAST)
# Shares of the CCT.
APART = 0.02


def part(rtts: float, mode: str) -> str:
    """Return the name of the runs with a G in zero-load RTTs, as the first switch has it."""
    return f"G = {rtts:g}, {mode}"


def lags_rtt(rtts: float) -> list[float]:
    """Return the lags behind the first switch: they grow with G, and are not 0 with it."""
    return [round(max(rtts, 1) * hop, 3) for hop in HOPS]


def scenarios(preset: Preset) -> list[Scenario]:
    """Return a permutation in which links fail, with four ways of learning at each G."""
    base = {
        **schemes.PERMUTATION,
        "fabric__k": preset.pick(4, 8, 8),
        "collective__message_bytes": 4 * MIB,
        "failures__rate": FAILED_LINKS,
        "failures__at_ns": DOWN_NS,
    }
    runs = []
    for rtts in GS:
        lags = lags_rtt(rtts)
        spread = {"failures__convergence_rtt": rtts, "controller__spread_rtt": lags}
        modes: dict[str, dict[str, Any]] = {
            FIRST: {"failures__convergence_rtt": rtts},
            LAGS: spread,
            COARSE: {**spread, "controller__weights": "bgp"},
            LAST: {"failures__convergence_rtt": rtts + max(lags)},
        }
        for mode, settings in modes.items():
            name = {"name": part(rtts, mode)}
            runs += grid({**base, **settings, **name}, SHOWN, preset.seeds(3, 10, 20))

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw the cost of lags beside all switches at once, for each load balancer."""
    frames = {f"G = {rtts:g}": frames_of(data, rtts) for rtts in GS}
    return {
        "over all with the last": _panel(frames, LAST),
        "over all with the first": _panel(frames, FIRST),
    }


def frames_of(data: Data, rtts: float) -> dict[str, pl.DataFrame]:
    """Return the runs with a G by mode."""
    return {mode: data.named(part(rtts, mode)) for mode in MODES}


def _panel(frames: Mapping[str, Mapping[str, pl.DataFrame]], mode: str) -> Any:
    picture, axes = style.panel(4.6, 3.2)
    shown = {
        name: {policy: ratio(modes[LAGS], modes[mode], policy) for policy in SHOWN}
        for name, modes in frames.items()
        if len(modes[LAGS]) and len(modes[mode])
    }
    if shown:
        spans(picture, axes, shown, f"CCT over that with {mode} (%)", is_log=False)

    return picture


def ratio(first: pl.DataFrame, second: pl.DataFrame, policy: str) -> Estimate:
    """Return by which share the CCT is longer in the first runs, paired by seed."""
    return _share(where(first, policy=policy), where(second, policy=policy))


def over_ofan(frame: pl.DataFrame, policy: str) -> Estimate:
    """Return by which share a load balancer's CCT is longer than Ofan's, paired by seed."""
    return _share(where(frame, policy=policy), where(frame, policy="ofan"))


def _share(first: pl.DataFrame, second: pl.DataFrame) -> Estimate:
    column = "sending_cct_ps"
    both = first.select("seed", column).join(
        second.select("seed", column), on="seed", suffix="_second"
    )
    times, divisors = (both[name].to_numpy() for name in (column, f"{column}_second"))
    return estimate(times / divisors - 1) if len(both) else estimate(np.zeros(0))


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B32 to B34."""
    frames = {rtts: frames_of(data, rtts) for rtts in GS}
    yield between(frames)
    yield same_order(frames)
    yield coarse(frames)


Frames = Mapping[float, Mapping[str, pl.DataFrame]]


def between(frames: Frames) -> Verdict:
    """Decide B32."""
    margin = STATEMENTS["B32"].margin
    late = {
        (rtts, policy): ratio(modes[LAGS], modes[LAST], policy)
        for rtts, modes in frames.items()
        for policy in SHOWN
    }
    early = {
        (rtts, policy): ratio(modes[LAGS], modes[FIRST], policy)
        for rtts, modes in frames.items()
        for policy in SHOWN
    }
    outcomes = {
        (rtts, policy): every(
            [late[rtts, policy].below(APART, margin), early[rtts, policy].above(-APART, margin)]
        )
        for rtts, policy in late
    }
    checks = {
        f"{style.label(policy)} lies between": every(outcomes[rtts, policy] for rtts in frames)
        for policy in SHOWN
    }
    return Verdict(
        "B32",
        decide(list(checks.values())),
        f"over {LAST}: {_extremes(late)}; over {FIRST}: {_extremes(early)}",
        why=not_so(checks),
        evidence=_by_g(frames, late),
        seeds=_seeds(frames),
        needs=_needs(outcomes, (FIRST, LAGS, LAST)),
        panel="over all with the last",
    )


HOSTS_ARE_LAST = (
    "Hosts that choose paths learn with the last switch (our choice), so lags gain them nothing: "
    "Host DR takes as long as with all switches at the last one's time (evidence). Under Ofan each "
    "switch that has learnt helps at once."
)


def same_order(frames: Frames) -> Verdict:
    """Decide B33."""
    margin = STATEMENTS["B33"].margin
    outcomes = {
        (rtts, rival): one_direction(
            [over_ofan(modes[mode], rival) for mode in (LAST, LAGS)], margin
        )
        for rtts, modes in frames.items()
        for rival in RIVALS
    }
    checks = {
        f"{style.label(rival)} and Ofan keep their order": every(
            outcomes[rtts, rival] for rtts in frames
        )
        for rival in RIVALS
    }
    return Verdict(
        "B33",
        decide(list(checks.values())),
        "over Ofan's CCT, with lags: "
        + _by_g(
            frames,
            {
                (rtts, rival): over_ofan(modes[LAGS], rival)
                for rtts, modes in frames.items()
                for rival in RIVALS
            },
        ),
        why=not_so(checks, HOSTS_ARE_LAST),
        evidence="with lags over all with the last: "
        + _by_g(
            frames,
            {
                (rtts, policy): ratio(modes[LAGS], modes[LAST], policy)
                for rtts, modes in frames.items()
                for policy in ("host_dr", "ofan")
            },
        ),
        seeds=_seeds(frames),
        needs=_needs(outcomes, (LAGS, LAST)),
    )


def coarse(frames: Frames) -> Verdict:
    """Decide B34."""
    margin = STATEMENTS["B34"].margin
    costs = {
        (rtts, policy): ratio(modes[COARSE], modes[LAGS], policy)
        for rtts, modes in frames.items()
        for policy in WEIGHTING
    }
    outcomes = {case: cost.within(-APART, APART, margin) for case, cost in costs.items()}
    checks = {
        f"{style.label(policy)} takes as long": every(outcomes[rtts, policy] for rtts in frames)
        for policy in WEIGHTING
    }
    return Verdict(
        "B34",
        decide(list(checks.values())),
        f"with BGP's weights: {_extremes(costs)}",
        why=not_so(checks),
        evidence=_by_g(frames, costs),
        seeds=_seeds(frames),
        needs=_needs(outcomes, (LAGS, COARSE)),
    )


def _extremes(shares: Mapping[tuple[float, str], Estimate]) -> str:
    (low_rtts, low), (high_rtts, high) = (
        choose(shares, key=lambda case: shares[case].mean) for choose in (min, max)
    )
    lowest, highest = shares[low_rtts, low], shares[high_rtts, high]
    return (
        f"{percent(lowest)} ({style.label(low)}, G = {low_rtts:g}) to "
        f"{percent(highest)} ({style.label(high)}, G = {high_rtts:g})"
    )


def _by_g(frames: Frames, shares: Mapping[tuple[float, str], Estimate]) -> str:
    return "; ".join(
        f"G = {rtts:g}: "
        + ", ".join(
            f"{style.label(policy)} {percent(share)}"
            for (of_rtts, policy), share in shares.items()
            if of_rtts == rtts
        )
        for rtts in frames
    )


def _seeds(frames: Frames) -> int:
    return min(seeds_of(modes.values()) for modes in frames.values())


def _needs(outcomes: Mapping[tuple[float, str], bool | None], modes: tuple[str, ...]) -> Needs:
    """Return the scenarios of undecided cases, Ofan's beside its rivals'."""
    undecided = {
        (slug(part(rtts, mode)), policy)
        for (rtts, rival), right in outcomes.items()
        if right is None
        for mode in modes
        for policy in (rival, "ofan")
    }
    return lambda scenario: (scenario.name, scenario.policy) in undecided


FIGURE = Figure(
    name="lags",
    title="Switches that learn one after the other",
    paper="docs/bgp.md",
    caption=(
        "A 4 MiB permutation on 128 hosts; ten microseconds after its start 4 % of the links fail "
        "for good. The first switches have new routes G later (in zero-load RTTs), the others as "
        "much later as FRR's updates took for 1 to 3 hops more, a third of G each (of one "
        "RTT at G = 0). Beside them: all switches at the time of the first, and of the last."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
