"""Faults during a permutation: a switch, a flapping link, a link that loses packets."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from reproduction.figures.beyond.shared import (
    CHOSEN,
    NO_ROTATION,
    ROTATIONS,
    behind,
    each,
    groups,
    next_best,
    seeds_of,
    spans,
)
from reproduction.report import schemes, style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, parts
from reproduction.report.schemes import (
    MIB,
    difference,
    mean_of,
    names,
    not_so,
    paired_by_seed,
    percent,
    where,
)
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import Estimate, every

# Flow and UET Bitmap are as before; all of them end, since routes converge.
SHOWN = (*CHOSEN[:-1], "uet_bitmap", "ofan")
AGG = "aggregation switch"
CORE = "core switch"
FLAPS = "flapping link"
SLOW = "slow link"
LOSES = "1 % of a link's packets lost"
WHOLE = "no fault"
AT_ONCE = "at once"
LATE = "late"
LINK = "agg0_0-core0_0"
# A message of 4 MiB is sent in 43 us; the zero-load RTT is 6.25 us.
DOWN_NS = 10_000
FAULTS: dict[str, dict[str, Any]] = {
    AGG: {"failures__events": [{"switch": "agg0_0", "down_ns": DOWN_NS}]},
    CORE: {"failures__events": [{"switch": "core0_0", "down_ns": DOWN_NS}]},
    FLAPS: {
        "failures__events": [
            {"link": LINK, "down_ns": DOWN_NS, "up_ns": 14_000, "times": 5, "every_ns": 8_000}
        ]
    },
    SLOW: {"failures__degraded": [{"link": LINK, "rate": 0.25, "at_ns": DOWN_NS}]},
    LOSES: {"failures__losses": [{"link": LINK, "share": 0.01}]},
    WHOLE: {},
}
# In zero-load RTTs. A link that flaps every 8 us is back before routes could follow after four.
# A slow link may go unnoticed for ever.
LATE_RTT = {AGG: 4.0, CORE: 4.0, FLAPS: 1.0, SLOW: float("inf")}
SHORT = {
    AGG: "aggregation switch",
    CORE: "core switch",
    FLAPS: "flapping link",
    SLOW: "slow link",
}
# Host Pkt AR with no time to freeze: the cost of its freezing.
THAWED = "without freezing"
PACKETS = tuple(policy for policy in SHOWN if policy != "flow")
# Of a loss, in zero-load RTTs.
ROUND_TRIP = (0.5, 1.5)


def part(fault: str, when: str = AT_ONCE) -> str:
    """Return the name of a fault's runs, with routes that follow at once or late."""
    return f"{fault}, routes {when}" if fault in LATE_RTT else fault


def thawed_name(fault: str) -> str:
    """Return the name of a fault's runs without freezing."""
    return f"{part(fault, LATE)}, {THAWED}"


FREEZING = (AGG, CORE, LOSES)
PARTS = (
    *(part(fault, AT_ONCE) for fault in FAULTS),
    *(part(fault, LATE) for fault in LATE_RTT),
)


def scenarios(preset: Preset) -> list[Scenario]:
    """Return a permutation with every fault, routes at once and late."""
    base = {
        **schemes.PERMUTATION,
        "fabric__k": preset.pick(4, 8, 8),
        "collective__message_bytes": 4 * MIB,
    }
    seeds = preset.seeds(3, 10, 20)
    runs = []
    for fault, events in FAULTS.items():
        runs += grid({**base, **events, "name": part(fault)}, SHOWN, seeds)
        if fault in LATE_RTT:
            late = {"failures__convergence_rtt": LATE_RTT[fault], "name": part(fault, LATE)}
            runs += grid({**base, **events, **late}, SHOWN, seeds)

    for fault in FREEZING:
        late = {"failures__convergence_rtt": LATE_RTT.get(fault, 0.0), "name": thawed_name(fault)}
        thaw = {"load_balancer__freeze_us": 0}
        runs += grid({**base, **FAULTS[fault], **late, **thaw}, ("host_pkt_ar",), seeds)

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw CCT with routes at once and late, and without routes that could follow."""
    return {
        "routes follow at once": _panel(data, {SHORT[fault]: part(fault) for fault in LATE_RTT}),
        "routes follow late": _panel(data, {SHORT[fault]: part(fault, LATE) for fault in LATE_RTT}),
        "nothing to route around": _panel(data, {WHOLE: WHOLE, "1 % lost on a link": LOSES}),
    }


def _panel(data: Data, panels: dict[str, str]) -> Any:
    picture, axes = style.panel(4.6, 3.2)
    shown = {label: data.named(name) for label, name in panels.items() if name in data.parts(name)}
    if shown:
        spans(picture, axes, groups(shown, SHOWN, "sending_increase"), style.INCREASE)

    return picture


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B12 to B17."""
    frames = {name: data.named(name) for name in PARTS}
    yield ahead_at_once({fault: frames[part(fault)] for fault in (AGG, CORE)})
    yield behind_when_late({fault: frames[part(fault, LATE)] for fault in (AGG, CORE)})
    yield flaps(frames[part(FLAPS)], frames[part(FLAPS, LATE)])
    yield losses(frames[LOSES], frames[WHOLE])
    yield frozen(
        {fault: frames[part(fault, LATE)] for fault in FREEZING},
        {fault: data.named(thawed_name(fault)) for fault in FREEZING},
    )
    yield slow(frames[part(SLOW)], frames[part(SLOW, LATE)])


def _lead(frame: pl.DataFrame) -> str:
    return next_best(frame, NO_ROTATION, "sending_increase") + behind(frame, NO_ROTATION)


HELD_UP = (
    "All are held up by the pod that has lost a quarter of its uplinks: its flows end long after "
    "the median one, whatever balances them. Why random labels are no worse than Ofan there is not "
    "explained."
)


def ahead_at_once(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B12."""
    checks = {
        f"Ofan is ahead ({fault})": schemes.lowest(
            frame, "ofan", NO_ROTATION, margin=STATEMENTS["B12"].margin
        )
        for fault, frame in frames.items()
    }
    return Verdict(
        "B12",
        decide(list(checks.values())),
        "; ".join(f"{fault}: {_lead(frame)}" for fault, frame in frames.items()),
        why=not_so(checks, HELD_UP),
        seeds=seeds_of(frames.values()),
        needs=parts(
            *(part(fault) for fault in frames if checks[f"Ofan is ahead ({fault})"] is None)
        ),
    )


def behind_when_late(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B13."""
    gaps = {
        fault: {rotation: difference(frame, rotation, "ofan") for rotation in ROTATIONS}
        for fault, frame in frames.items()
    }
    checks = {
        f"{names(ROTATIONS)} are ahead of Ofan ({fault})": every(
            gap.below(0, STATEMENTS["B13"].margin) for gap in rotation_gaps.values()
        )
        for fault, rotation_gaps in gaps.items()
    }
    return Verdict(
        "B13",
        decide(list(checks.values())),
        "; ".join(
            f"{fault}: Ofan {percent(mean_of(frames[fault], 'ofan'))}, "
            + ", ".join(
                f"{style.label(rotation)} - Ofan {schemes.versus(gap, STATEMENTS['B13'].margin)}"
                for rotation, gap in fault_gaps.items()
            )
            for fault, fault_gaps in gaps.items()
        ),
        why=not_so(checks),
        evidence=each(frames, _spread),
        seeds=seeds_of(frames.values()),
        needs=parts(
            *(
                part(fault, LATE)
                for fault, right in zip(gaps, checks.values(), strict=True)
                if right is None
            )
        ),
        panel="routes follow late",
    )


def _spread(frame: pl.DataFrame) -> str:
    """Return the delay of the last flow behind the median flow: flows that lose alike end alike."""
    last = frame.with_columns(behind=pl.col("fct_p999_ps") / pl.col("fct_p50_ps") - 1)
    return "the last flow takes longer than the median one by " + schemes.listed(
        last, ("ofan", *ROTATIONS), 1, "behind"
    )


def flaps(at_once: pl.DataFrame, late: pl.DataFrame) -> Verdict:
    """Decide B14."""
    frames = {"routes at once": at_once, "routes late": late}
    checks = {
        f"Ofan is ahead, {when}": schemes.lowest(
            frame, "ofan", NO_ROTATION, margin=STATEMENTS["B14"].margin
        )
        for when, frame in frames.items()
    }
    return Verdict(
        "B14",
        decide(list(checks.values())),
        each(frames, _lead),
        why=not_so(checks),
        seeds=seeds_of((at_once, late)),
        needs=parts(part(FLAPS), part(FLAPS, LATE)),
    )


def losses(lossy: pl.DataFrame, whole: pl.DataFrame) -> Verdict:
    """Decide B15."""
    costs = {policy: round_trips(lossy, whole, policy) for policy in SHOWN}
    alike = [policy for policy in PACKETS if policy not in ("host_pkt_ar", "uet_bitmap")]
    checks = {
        f"a round trip with {style.label(policy)}": costs[policy].within(
            *ROUND_TRIP, STATEMENTS["B15"].margin
        )
        for policy in alike
    }
    return Verdict(
        "B15",
        decide(list(checks.values())),
        "longer than without losses, in zero-load RTTs: "
        + ", ".join(f"{style.label(policy)} {cost:.2f}" for policy, cost in costs.items()),
        why=not_so(checks),
        seeds=seeds_of((lossy, whole)),
        needs=parts(LOSES, WHOLE),
        panel="nothing to route around",
    )


def round_trips(lossy: pl.DataFrame, whole: pl.DataFrame, policy: str) -> Estimate:
    """Return a load balancer's cost of the loss in zero-load RTTs, paired by seed."""
    first, second = (where(frame, policy=policy) for frame in (lossy, whole))
    cost = paired_by_seed(first, second, "sending_cct_ps")
    rtt_ps = Scenario().zero_load_rtt_ps
    return Estimate(cost.mean / rtt_ps, cost.half / rtt_ps, cost.count)


def frozen(frames: dict[str, pl.DataFrame], thawed: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B16."""
    margin = STATEMENTS["B16"].margin
    rivals = [policy for policy in PACKETS if policy != "host_pkt_ar"]
    checks = {
        f"Host Pkt AR is the slowest ({fault})": every(
            difference(frame, "host_pkt_ar", rival).above(0, margin) for rival in rivals
        )
        for fault, frame in frames.items()
    }
    freezing = {
        fault: paired_by_seed(where(frame, policy="host_pkt_ar"), thawed[fault])
        for fault, frame in frames.items()
    }
    checks |= {
        f"without freezing it is faster ({fault})": cost.above(0, margin)
        for fault, cost in freezing.items()
    }
    return Verdict(
        "B16",
        decide(list(checks.values())),
        each(frames, lambda frame: schemes.listed(frame, ("host_pkt_ar", *rivals)))
        + "; freezing costs Host Pkt AR "
        + ", ".join(f"{percent(cost)} ({fault})" for fault, cost in freezing.items()),
        why=not_so(checks),
        evidence="times that a flow froze in a run: "
        + each(frames, lambda frame: f"{mean_of(frame, 'host_pkt_ar', 'freezes'):.0f}"),
        seeds=seeds_of(frames.values()),
        needs=parts(
            *(
                name
                for fault in frames
                for name in (part(fault, LATE), thawed_name(fault))
                if any(right is None for text, right in checks.items() if fault in text)
            )
        ),
        panel="routes follow late",
    )


FREEZE = (
    "The slow link's queue makes packets of Host Pkt AR time out, and its flows freeze: far more "
    "often without weights than with them (evidence). What that costs B16 has for other faults."
)


def slow(weighed: pl.DataFrame, unseen: pl.DataFrame) -> Verdict:
    """Decide B17."""
    margin = STATEMENTS["B17"].margin
    gaps = {rival: difference(unseen, rival, "ofan") for rival in ("switch_pkt_ar", "host_pkt_ar")}
    checks = {
        f"{style.label(rival)} is ahead where routes do not weigh it": gap.below(0, margin)
        for rival, gap in gaps.items()
    }
    checks["Ofan is ahead where they do"] = schemes.lowest(
        weighed, "ofan", NO_ROTATION, margin=margin
    )
    frames = {"unseen": unseen, "weighed": weighed}
    return Verdict(
        "B17",
        decide(list(checks.values())),
        f"unseen: Ofan {percent(mean_of(unseen, 'ofan'))}, "
        + ", ".join(f"{style.label(rival)} {percent(gap)} above" for rival, gap in gaps.items())
        + f"; weighed: {_lead(weighed)}",
        why=not_so(checks, FREEZE),
        evidence=each(frames, lambda frame: schemes.listed(frame, SHOWN))
        + "; times that a flow of Host Pkt AR froze in a run: "
        + each(frames, lambda frame: f"{mean_of(frame, 'host_pkt_ar', 'freezes'):.0f}"),
        seeds=seeds_of(frames.values()),
        needs=parts(part(SLOW), part(SLOW, LATE)),
        panel="routes follow late",
    )


FIGURE = Figure(
    name="faults",
    title="Faults under way",
    paper="docs/faults.md",
    caption=(
        "A 4 MiB permutation on 128 hosts. Ten microseconds after its start a switch dies for "
        "good, or a link between aggregation and core flaps five times, 4 µs down and 4 µs up, or "
        "falls to a quarter of its rate; or such a link loses 1 % of its packets all the time. "
        "Routes follow at once (G = 0), or late: four zero-load RTTs after a switch, one after a "
        "flap, never after a link has become slow."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
