"""Every row and the order of rows on four fabrics of three sizes (docs/fabrics.md)."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from fattree.texts.looks import LOOKS
from reproduction.figures.beyond.shared import (
    OTHERS,
    ROWS,
    behind,
    each,
    next_best,
    rows_of_dots,
    seeds_of,
)
from reproduction.report import schemes, style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, nested, parts, slug
from reproduction.report.looks import Needs
from reproduction.report.schemes import MIB, difference, mean_of, not_so, percent, where
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import Estimate, apart

FAT_TREE = "fat-tree"
LEAF_SPINE = "leaf-spine"
OVERSUBSCRIBED = "2:1 oversubscribed"
RAILS = "8 rails"
FABRICS = (FAT_TREE, LEAF_SPINE, OVERSUBSCRIBED, RAILS)
# Ofan with a pointer for each destination edge, as it has without parallel links.
PER_EDGE = "leaf-spine, a pointer per edge"
POINTERS = "leaf-spine: Ofan's pointers"
GROWING = ("host_pkt", "switch_pkt_ar", "uet_bitmap", "host_dr", "themis", "ofan")
SMALL, MIDDLE, LARGE = range(3)
Counts = dict[str, Any]


def fat_tree(k: int) -> Counts:
    """Return the paper's fabric."""
    return {"fabric__k": k}


def leaf_spine(leaves: int, hosts: int) -> Counts:
    """Return leaves with two parallel links to each spine, twice as fast as hosts' links."""
    return {
        "fabric__edges_per_pod": leaves,
        "fabric__hosts_per_edge": hosts,
        "fabric__aggs_per_pod": hosts // 4,
        "fabric__edge_agg_links": 2,
        "fabric__edge_agg_gbps": 1600,
    }


def oversubscribed(pods: int, edges: int) -> Counts:
    """Return three levels with twice as many hosts as uplinks at every edge."""
    return {
        "fabric__pods": pods,
        "fabric__edges_per_pod": edges,
        "fabric__hosts_per_edge": 2 * edges,
        "fabric__aggs_per_pod": edges,
        "fabric__cores_per_agg": edges,
    }


def rails(leaves: int) -> Counts:
    """Return eight leaf-spines, with a NIC of every machine in each."""
    return {
        "fabric__planes": 8,
        "fabric__edges_per_pod": leaves,
        "fabric__hosts_per_edge": leaves,
        "fabric__aggs_per_pod": leaves,
    }


SIZES: dict[str, tuple[Counts, Counts, Counts]] = {
    FAT_TREE: (fat_tree(4), fat_tree(8), fat_tree(16)),
    LEAF_SPINE: (leaf_spine(4, 8), leaf_spine(8, 16), leaf_spine(16, 32)),
    OVERSUBSCRIBED: (oversubscribed(4, 2), oversubscribed(4, 4), oversubscribed(8, 8)),
    RAILS: (rails(4), rails(8), rails(12)),
}
# A megabyte for each NIC. All traffic of the oversubscribed fabric leaves its pod, so that it is
# oversubscribed for everybody.
TRAFFIC: dict[str, Counts] = {
    FAT_TREE: schemes.PERMUTATION,
    LEAF_SPINE: schemes.PERMUTATION | {"load_balancer__edge_pointers": "host"},
    OVERSUBSCRIBED: schemes.INTER_POD,
    RAILS: schemes.PERMUTATION | {"collective__message_bytes": 8 * MIB},
}


def scenarios(preset: Preset) -> list[Scenario]:
    """Return a permutation on every fabric in all sizes, with every row up to the middle size."""
    sizes = preset.pick((SMALL, MIDDLE), (SMALL, MIDDLE), (SMALL, MIDDLE, LARGE))
    seeds = preset.seeds(3, 10, 20)
    return [
        *(
            scenario
            for fabric in FABRICS
            for size in sizes
            for scenario in grid(
                {"name": fabric, **TRAFFIC[fabric], **SIZES[fabric][size]},
                GROWING if size == LARGE else ROWS,
                seeds,
            )
        ),
        *(
            scenario
            for size in sizes
            for scenario in grid(
                {
                    "name": PER_EDGE,
                    **TRAFFIC[LEAF_SPINE],
                    **SIZES[LEAF_SPINE][size],
                    "load_balancer__edge_pointers": "edge",
                },
                ("ofan",),
                seeds,
            )
        ),
    ]


def of_size(frame: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return the rows of the small, the middle or the large fabric, the largest that there is."""
    sizes = sorted(frame["hosts"].unique())
    return where(frame, hosts=sizes[min(size, len(sizes) - 1)])


def draw(data: Data) -> dict[str, Any]:
    """Draw all rows at the middle size, queues of all fabrics, and the growth over hosts."""
    shown = data.parts(*FABRICS)
    middle = {fabric: of_size(rows, MIDDLE) for fabric, rows in shown.items()}
    pictures = {
        f"{fabric}, {rows['hosts'][0]} hosts": rows_of_dots(rows, ROWS)
        for fabric, rows in middle.items()
    }
    pictures |= {f"{fabric}: growth": _growth(rows) for fabric, rows in shown.items()}
    if data.parts(PER_EDGE) and LEAF_SPINE in shown:
        pictures[POINTERS] = _pointers(data)

    return pictures


def _growth(frame: pl.DataFrame) -> Any:
    picture, axes = style.panel(3.6, 3.1)
    style.lines(axes, frame, x="hosts", y="sending_increase", policies=GROWING, scale=100)
    _over_hosts(picture, axes, frame)
    return picture


def _over_hosts(picture: Any, axes: Any, frame: pl.DataFrame) -> None:
    style.powers_of_two(axes, sorted(frame["hosts"].unique()))
    style.from_zero(axes)
    axes.set_xlabel("hosts")
    axes.set_ylabel(style.INCREASE)
    style.legend_above(picture, axes, columns=3)


def _pointers(data: Data) -> Any:
    picture, axes = style.panel(3.6, 3.1)
    per_host = data.named(LEAF_SPINE)
    lines = {
        "Ofan, per host": where(per_host, policy="ofan"),
        "Ofan, per edge": data.named(PER_EDGE),
    }
    per_edge = LOOKS["ofan_fib"]
    looks: tuple[dict[str, str], ...] = (
        {},
        {"linestyle": per_edge.line, "marker": per_edge.marker, "color": per_edge.colour},
    )
    for (text, rows), look in zip(lines.items(), looks, strict=True):
        points = style.estimates(rows, "sending_increase", "hosts")
        style.line(axes, "ofan", points, 100, text, **look)

    style.lines(axes, per_host, "hosts", "sending_increase", ("switch_pkt_ar", "host_dr"), 100)
    _over_hosts(picture, axes, per_host)
    return picture


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B01 to B04."""
    frames = {fabric: data.named(fabric) for fabric in FABRICS}
    middle = {fabric: of_size(frame, MIDDLE) for fabric, frame in frames.items()}
    yield ahead_everywhere(middle)
    yield lead_grows(frames)
    yield pointers(middle[LEAF_SPINE], of_size(data.named(PER_EDGE), MIDDLE))
    yield closer_on_two_levels(middle)


def ahead_everywhere(middle: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B01."""
    margin = STATEMENTS["B01"].margin
    undecided = {
        (fabric, rival)
        for fabric, frame in middle.items()
        for rival in OTHERS
        if schemes.below(frame, "ofan", rival, margin=margin) is None
    }
    checks = {
        f"Ofan is ahead of all on the {fabric}": schemes.lowest(
            frame, "ofan", OTHERS, margin=margin
        )
        for fabric, frame in middle.items()
    }
    column = "sending_increase"
    return Verdict(
        "B01",
        decide(list(checks.values())),
        each(middle, lambda rows: next_best(rows, OTHERS, column) + behind(rows, OTHERS)),
        why=not_so(checks),
        evidence="longest queues: " + each(middle, _queue),
        seeds=seeds_of(middle.values()),
        needs=_of_middle(undecided),
    )


def _of_middle(selected: set[tuple[str, str]]) -> Needs:
    """Return the predicate for these load balancers and Ofan, on these fabrics' middle size."""
    named = {(slug(fabric), policy) for fabric, rival in selected for policy in (rival, "ofan")}
    hosts = {
        slug(fabric): Scenario.model_validate(nested(SIZES[fabric][MIDDLE])).tree.hosts
        for fabric, _ in selected
    }
    return lambda scenario: (
        (scenario.name, scenario.policy) in named and scenario.tree.hosts == hosts[scenario.name]
    )


def _queue(frame: pl.DataFrame) -> str:
    shown = ("ofan", "host_dr", "switch_pkt_ar")
    return ", ".join(
        f"{style.label(policy)} {mean_of(frame, policy, 'max_queue_packets'):.1f}"
        for policy in shown
    )


def lead_grows(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B02."""
    leads = {
        fabric: [
            difference(of_size(frame, size), "switch_pkt_ar", "ofan") for size in (SMALL, LARGE)
        ]
        for fabric, frame in frames.items()
    }
    margin = STATEMENTS["B02"].margin
    checks = {
        f"the lead grows on the {fabric}": apart(large, small).above(0, margin)
        for fabric, (small, large) in leads.items()
    }
    return Verdict(
        "B02",
        decide(list(checks.values())),
        "Switch Pkt AR - Ofan, smallest and largest: "
        + "; ".join(
            f"{fabric} {percent(small)} and {percent(large)}"
            for fabric, (small, large) in leads.items()
        ),
        why=not_so(checks),
        seeds=seeds_of(frames.values()),
        needs=_growing(
            {fabric for fabric in frames if checks[f"the lead grows on the {fabric}"] is None}
        ),
        panel=f"{FAT_TREE}: growth",
    )


def _growing(fabrics: set[str]) -> Needs:
    """Return the predicate for Switch Pkt AR and Ofan on these fabrics."""
    named = parts(*fabrics)
    return lambda scenario: named(scenario) and scenario.policy in ("switch_pkt_ar", "ofan")


def pointers(per_host: pl.DataFrame, per_edge: pl.DataFrame) -> Verdict:
    """Decide B03."""
    adaptive = where(per_host, policy="switch_pkt_ar")
    gaps = [
        schemes.paired_by_seed(where(frame, policy="ofan"), adaptive)
        for frame in (per_edge, per_host)
    ]
    checks = {
        "with pointers per edge Ofan is behind": gaps[0].above(0, STATEMENTS["B03"].margin),
        "with pointers per host it is ahead": gaps[1].below(0, STATEMENTS["B03"].margin),
    }
    return Verdict(
        "B03",
        decide(list(checks.values())),
        f"Ofan - Switch Pkt AR: {percent(gaps[0])} with a pointer per edge, {percent(gaps[1])} "
        "with one per host",
        why=not_so(checks),
        evidence="longest queue: "
        f"{mean_of(per_edge, 'ofan', 'max_queue_packets'):.1f} and "
        f"{mean_of(per_host, 'ofan', 'max_queue_packets'):.1f} packets",
        seeds=seeds_of((per_host, per_edge)),
        needs=lambda scenario: (
            parts(LEAF_SPINE, PER_EDGE)(scenario) and scenario.policy in ("switch_pkt_ar", "ofan")
        ),
        panel=POINTERS,
    )


def closer_on_two_levels(middle: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B04."""
    gaps = {
        rotation: {fabric: difference(rows, rotation, "ofan") for fabric, rows in middle.items()}
        for rotation in ("host_dr", "themis")
    }
    checks = {
        f"{style.label(rotation)} is closer on the {fabric}": apart(
            by_fabric[fabric], by_fabric[FAT_TREE]
        ).below(0, STATEMENTS["B04"].margin)
        for rotation, by_fabric in gaps.items()
        for fabric in (LEAF_SPINE, RAILS)
    }
    return Verdict(
        "B04",
        decide(list(checks.values())),
        "; ".join(
            f"{style.label(rotation)} - Ofan: {_listed(by_fabric)}"
            for rotation, by_fabric in gaps.items()
        ),
        why=not_so(checks),
        seeds=seeds_of(middle.values()),
        needs=_of_middle(
            {
                (fabric, rotation)
                for rotation in gaps
                for near in (LEAF_SPINE, RAILS)
                for fabric in (FAT_TREE, near)
                if checks[f"{style.label(rotation)} is closer on the {near}"] is None
            }
        ),
    )


def _listed(gaps: dict[str, Estimate]) -> str:
    return ", ".join(f"{fabric} {percent(gap, 2)}" for fabric, gap in gaps.items())


FIGURE = Figure(
    name="fabrics",
    title="Other fabrics",
    paper="as figure 8 (network size); docs/fabrics.md",
    caption=(
        "CCT increase over the bound and longest queue of a permutation, 1 MiB for each NIC, "
        "800 Gb/s, without failures. The leaf-spine has two parallel links to each spine and "
        "Ofan a pointer for each destination host; the three-level fabric has two hosts for each "
        "uplink, and all traffic leaves its pod; the rails are eight leaf-spines with a NIC of "
        "every machine in each."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
