"""MRC over ECMP on every fabric: a dead link, a slow link, and routes that follow or do not.

MRC keeps its knowledge of paths at the host. So a link is dead from the start, where there is time
to learn of it, or dies under way. The messages are those of `faults`, the fabrics those of
`fabrics`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from reproduction.figures.beyond.fabrics import FABRICS, LEAF_SPINE, MIDDLE, RAILS, SIZES, SMALL
from reproduction.figures.beyond.fabrics import TRAFFIC as MATRICES
from reproduction.figures.beyond.shared import groups, spans
from reproduction.report import style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, slug
from reproduction.report.looks import Needs
from reproduction.report.schemes import (
    MIB,
    NEVER,
    mean_of,
    not_so,
    paired_by_seed,
    percent,
    seeds_below,
    where,
)
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import Estimate, apart, estimate, every, proportion

MRC, OFAN, RANDOM = "mrc", "ofan", "host_pkt"
SHOWN = (RANDOM, "host_pkt_ar", MRC, "host_dr", OFAN)
# On dead links Host Pkt loses packets without end: the yardstick of MRC's losses.
PROBING = (RANDOM, MRC)
WHOLE = "no failure"
DEAD = "a dead link, routes do not follow"
FOLLOWED = "a dead link, routes have followed"
DIES = "a link dies under way, routes do not follow"
SLOW = "a slow link, routes do not weigh it"
OWN = "SACK, NSCC, trimming"
FIXED = "fixed rate"
TRANSPORTS: dict[str, dict[str, Any]] = {
    FIXED: {},
    OWN: {
        "transport__recovery": "sack",
        "transport__congestion": "nscc",
        "transport__trimming": True,
    },
}
# A link of each fabric; of parallel ones the first.
LINKS = dict.fromkeys(FABRICS, "edge0_0-agg0_0") | {LEAF_SPINE: "edge0_0-agg0_0/0"}
SETTINGS = {
    FIXED: (WHOLE, DEAD, FOLLOWED, DIES, SLOW),
    OWN: (WHOLE, DEAD, SLOW),
}
# As in `faults`: a message of 4 MiB is sent in 43 us.
DIES_NS = 10_000
SLOW_RATE = 0.25
MESSAGE = 4
# The longer message loses its further packets after hosts have learned.
LONGER = (8, 16)
FAR = 0.05
PROBES = (0.05, 1 / 5)
# More than half of the seeds.
MOST = 0.5


class Cell(NamedTuple):
    """The runs of a load balancer in a part of the figure."""

    part: str
    policy: str


class Check(NamedTuple):
    """Outcome of a check on some runs (None: they do not decide it)."""

    right: bool | None
    cells: Sequence[Cell]


def part(fabric: str, setting: str, transport: str = FIXED, message: int = MESSAGE) -> str:
    """Return the name of a setting's runs on a fabric."""
    size = f", {message} MiB" if message != MESSAGE else ""
    return f"{fabric}, {setting}, {transport}{size}"


def events(fabric: str, setting: str) -> dict[str, Any]:
    """Return the failures of the fabric's link in a setting."""
    link = {"link": LINKS[fabric]}
    unknown: dict[str, Any] = {"failures__convergence_rtt": NEVER}
    dead: dict[str, Any] = {"failures__events": [{**link, "down_ns": 0}]}
    by_setting: dict[str, dict[str, Any]] = {
        WHOLE: {},
        DEAD: dead | unknown,
        FOLLOWED: dead,
        DIES: {"failures__events": [{**link, "down_ns": DIES_NS}]} | unknown,
        SLOW: {"failures__degraded": [{**link, "rate": SLOW_RATE}]} | unknown,
    }
    return by_setting[setting]


def scenarios(preset: Preset) -> list[Scenario]:
    """Return a permutation on every fabric in every setting, and longer ones with a dead link."""
    runs: list[tuple[str, str, int, Sequence[str]]] = [
        (setting, transport, MESSAGE, SHOWN)
        for transport, settings in SETTINGS.items()
        for setting in settings
    ]
    runs += [(DEAD, FIXED, message, PROBING) for message in LONGER]
    return [
        scenario
        for fabric in FABRICS
        for setting, transport, message, policies in runs
        for scenario in grid(
            {
                **MATRICES[fabric],
                **SIZES[fabric][preset.pick(SMALL, MIDDLE, MIDDLE)],
                **events(fabric, setting),
                **TRANSPORTS[transport],
                "name": part(fabric, setting, transport, message),
                # As much for each NIC: machines on rails have eight.
                "collective__message_bytes": message * MIB * (8 if fabric == RAILS else 1),
            },
            policies,
            preset.seeds(3, 10, 20),
        )
    ]


def draw(data: Data) -> dict[str, Any]:
    """Draw CCT on all fabrics, a picture for each setting and transport."""
    pictures = {}
    for transport, settings in SETTINGS.items():
        for setting in settings:
            named = {fabric: part(fabric, setting, transport) for fabric in FABRICS}
            frames = data.parts(*named.values())
            shown = {
                fabric.replace(" ", "\n", 1): frames[name]
                for fabric, name in named.items()
                if name in frames
            }
            if shown:
                picture, axes = style.panel(4.6, 3.2)
                spans(picture, axes, groups(shown, SHOWN, "sending_increase"), style.INCREASE)
                pictures[panel(setting, transport)] = picture

    return pictures


def panel(setting: str, transport: str = FIXED) -> str:
    """Return the name of a setting's picture."""
    return setting if transport == FIXED else f"{setting} ({transport})"


def rows_of(data: Data, cell: Cell) -> pl.DataFrame:
    """Return a cell's runs."""
    return where(data.named(cell.part), policy=cell.policy)


def less(data: Data, first: Cell, second: Cell) -> Estimate:
    """Return first - second, paired by seed."""
    return paired_by_seed(rows_of(data, first), rows_of(data, second))


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B22 to B30."""
    yield distance(data)
    yield behind_random(data)
    yield own_transport(data)
    yield learned(data)
    yield followed(data)
    yield too_late(data)
    yield learned_with_own(data)
    yield slow(data)
    yield probes(data)


def verdict(
    data: Data,
    number: str,
    checks: dict[str, list[Check]],
    ours: str,
    shown: str = "",
    evidence: str = "",
) -> Verdict:
    """Return the verdict of several checks, each of which may have several parts."""
    outcomes = {text: every(check.right for check in answers) for text, answers in checks.items()}
    cells = {cell for answers in checks.values() for check in answers for cell in check.cells}
    open_ = {
        cell
        for answers in checks.values()
        for check in answers
        for cell in check.cells
        if check.right is None
    }
    return Verdict(
        number,
        decide(list(outcomes.values())),
        ours,
        why=not_so(outcomes),
        evidence=evidence,
        seeds=min(rows_of(data, cell)["seed"].n_unique() for cell in cells),
        needs=_needs(open_),
        panel=shown,
    )


def _needs(cells: Iterable[Cell]) -> Needs:
    keys = {(slug(cell.part), cell.policy) for cell in cells}
    return lambda scenario: (scenario.name, scenario.policy) in keys


def means(data: Data, setting: str, transport: str = FIXED, shown: Sequence[str] = SHOWN) -> str:
    """Return the increases of load balancers on each fabric."""
    return "; ".join(
        f"{fabric}: "
        + ", ".join(f"{style.label(policy)} {percent(mean_of(frame, policy))}" for policy in shown)
        for fabric in FABRICS
        for frame in [data.named(part(fabric, setting, transport))]
    )


def ahead(
    data: Data,
    setting: str,
    first: str,
    second: str,
    margin: float,
) -> dict[str, list[Check]]:
    """Return a check for each fabric: the first load balancer is below the second."""
    checks: dict[str, list[Check]] = {}
    for fabric in FABRICS:
        pair = [Cell(part(fabric, setting), policy) for policy in (first, second)]
        checks[f"so on the {fabric}"] = [Check(less(data, *pair).below(0, margin), pair)]

    return checks


def distance(data: Data) -> Verdict:
    """Decide B22."""
    margin = STATEMENTS["B22"].margin
    checks = {}
    gaps = []
    for fabric in FABRICS:
        pair = [Cell(part(fabric, WHOLE), policy) for policy in (MRC, OFAN)]
        gap = less(data, *pair)
        gaps.append(f"{fabric} {percent(gap)}")
        checks[f"so on the {fabric}"] = [Check(gap.above(FAR, margin), pair)]

    return verdict(data, "B22", checks, f"MRC - Ofan: {', '.join(gaps)}", panel(WHOLE))


def behind_random(data: Data) -> Verdict:
    """Decide B23."""
    checks = ahead(data, WHOLE, RANDOM, MRC, STATEMENTS["B23"].margin)
    return verdict(data, "B23", checks, means(data, WHOLE, shown=(RANDOM, MRC)), panel(WHOLE))


def own_transport(data: Data) -> Verdict:
    """Decide B24."""
    margin = STATEMENTS["B24"].margin
    checks = {}
    for fabric in FABRICS:
        pair = [Cell(part(fabric, WHOLE, transport), MRC) for transport in (OWN, FIXED)]
        checks[f"so on the {fabric}"] = [Check(less(data, *pair).above(0, margin), pair)]

    ours = f"{means(data, WHOLE, OWN, (MRC, OFAN))}; MRC at a fixed rate: " + ", ".join(
        f"{fabric} {percent(mean_of(data.named(part(fabric, WHOLE)), MRC))}" for fabric in FABRICS
    )
    return verdict(data, "B24", checks, ours, panel(WHOLE, OWN))


def learned(data: Data) -> Verdict:
    """Decide B25."""
    checks = ahead(data, DEAD, MRC, OFAN, STATEMENTS["B25"].margin)
    return verdict(data, "B25", checks, means(data, DEAD), panel(DEAD))


def followed(data: Data) -> Verdict:
    """Decide B26."""
    checks = ahead(data, FOLLOWED, OFAN, MRC, STATEMENTS["B26"].margin)
    ours = means(data, FOLLOWED, shown=(MRC, OFAN))
    return verdict(data, "B26", checks, ours, panel(FOLLOWED))


def too_late(data: Data) -> Verdict:
    """Decide B27."""
    checks = {}
    leads = []
    for fabric in FABRICS:
        pairs = [
            [Cell(part(fabric, setting), policy) for policy in (OFAN, MRC)]
            for setting in (DIES, DEAD)
        ]
        late, early = (less(data, *pair) for pair in pairs)
        right = apart(late, early).below(0, STATEMENTS["B27"].margin)
        checks[f"so on the {fabric}"] = [Check(right, [cell for pair in pairs for cell in pair])]
        leads.append(f"{fabric} {percent(late)} and {percent(early)}")

    ours = "Ofan - MRC, link dies under way and is dead from the start: "
    return verdict(data, "B27", checks, ours + "; ".join(leads), panel(DIES))


def learned_with_own(data: Data) -> Verdict:
    """Decide B28 by how often MRC is ahead: a few runs with long timeouts make the mean."""
    margin = STATEMENTS["B28"].margin
    checks = {}
    shares = []
    for fabric in FABRICS:
        pair = [Cell(part(fabric, DEAD, OWN), policy) for policy in (MRC, OFAN)]
        ahead_of, count = seeds_below(rows_of(data, pair[0]), rows_of(data, pair[1]))
        right = proportion(ahead_of, count).above(MOST, margin)
        checks[f"so on the {fabric}"] = [Check(right, pair)]
        shares.append(f"{fabric} {ahead_of} of {count}")

    first_form = "; ".join(
        f"{fabric}: {percent(mrc)} and {percent(ofan)}"
        for fabric in FABRICS
        for frame in [data.named(part(fabric, DEAD, OWN))]
        for mrc, ofan in [(mean_of(frame, MRC), mean_of(frame, OFAN))]
    )
    evidence = (
        "The first form of the criterion compared means, and was open after 640 seeds: a packet "
        "that is lost again waits twice as long each time, so that a few runs make the mean. Means "
        f"of MRC and Ofan: {first_form}. Medians, and the longest: "
        + "; ".join(
            f"{fabric}: {', '.join(_middle(data, fabric, policy) for policy in (MRC, OFAN))}"
            for fabric in FABRICS
        )
    )
    ours = f"seeds with which MRC is ahead of Ofan: {', '.join(shares)}"
    return verdict(data, "B28", checks, ours, panel(DEAD, OWN), evidence)


def _middle(data: Data, fabric: str, policy: str) -> str:
    increases = rows_of(data, Cell(part(fabric, DEAD, OWN), policy))["sending_increase"].to_numpy()
    middle, longest = 100 * np.median(increases), 100 * np.max(increases)
    return f"{style.label(policy)} {middle:.0f} % and {longest:,.0f} % ({len(increases)} seeds)"


def slow(data: Data) -> Verdict:
    """Decide B29."""
    margin = STATEMENTS["B29"].margin
    checks = {}
    for fabric in FABRICS:
        pair = [Cell(part(fabric, SLOW, OWN), policy) for policy in (MRC, OFAN)]
        gap = less(data, *pair)
        right = gap.above(0, margin) if fabric == RAILS else gap.below(0, margin)
        side = "behind" if fabric == RAILS else "ahead of"
        checks[f"MRC is {side} Ofan on the {fabric}"] = [Check(right, pair)]

    return verdict(data, "B29", checks, means(data, SLOW, OWN), panel(SLOW, OWN))


def probes(data: Data) -> Verdict:
    """Decide B30."""
    margin = STATEMENTS["B30"].margin
    checks = {}
    shares = []
    for fabric in FABRICS:
        names = [part(fabric, DEAD, message=message) for message in LONGER]
        usual = further_losses(data, names, RANDOM)
        lost = further_losses(data, names, MRC)
        both = min(len(lost), len(usual))
        share = estimate(lost[:both] / usual[:both])
        cells = [Cell(name, policy) for name in names for policy in (MRC, RANDOM)]
        checks[f"so on the {fabric}"] = [Check(share.within(*PROBES, margin), cells)]
        shares.append(f"{fabric} {percent(share)}")

    ours = "lost after hosts have learned, over what Host Pkt loses: " + ", ".join(shares)
    return verdict(data, "B30", checks, ours, panel(DEAD))


def further_losses(data: Data, names: Sequence[str], policy: str) -> Any:
    """Return the additional losses of the longer of two messages, in the order of the seeds."""
    short, long = (
        rows_of(data, Cell(name, policy)).sort("seed")["lost_to_failure"].to_numpy()
        for name in names
    )
    both = min(len(short), len(long))
    return np.subtract(long[:both], short[:both])


def table(data: Data) -> pl.DataFrame:
    """Return the losses on the dead link, and the CCT increase."""
    rows = []
    for fabric in FABRICS:
        for message in (MESSAGE, *LONGER):
            frame = data.named(part(fabric, DEAD, message=message))
            for policy in PROBING if len(frame) else ():
                share = frame.with_columns(lost=pl.col("lost_to_failure") / pl.col("transmissions"))
                rows.append(
                    {
                        "fabric": fabric,
                        "message (MiB)": message,
                        "scheme": style.label(policy),
                        "lost, of all that hosts sent": percent(mean_of(share, policy, "lost"), 2),
                        "increase": percent(mean_of(frame, policy)),
                        "seeds": mean_of(frame, policy).count,
                    }
                )

    return pl.DataFrame(rows)


FIGURE = Figure(
    name="mrc",
    title="MRC over ECMP: hosts that learn of paths",
    paper="docs/load-balancers-since.md",
    caption=(
        "A permutation, 4 MiB for each NIC, on the fabrics of the figure before, one of whose "
        "links between edge and aggregation is dead from the start, dies 10 µs later, or carries a "
        "quarter of its rate; routes follow (G = 0) or do not (G = ∞). At a fixed rate with "
        "erasure coding, or with the transport that MRC is made for. The table: packets lost on "
        "the dead link, with longer messages, too."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    table=table,
)
