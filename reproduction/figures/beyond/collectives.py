"""Collectives as graphs of dependent transfers, by algorithm and placement (docs/workloads.md)."""

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
from reproduction.report.schemes import KIB, MIB, difference, not_so, percent
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import apart, every

RING = "ring"
TREE = "double tree"
HALVING = "halving-doubling"
HIERARCHICAL = "hierarchical"
DIRECT = "all-to-all"
# The others have nothing to gain from order: a tree is short anyway, and all-to-all is all pairs.
IN_ORDER = (RING, HALVING, HIERARCHICAL)
# Without Host Pkt, which is as Host Pkt AR: a run has a million packets.
SHOWN = tuple(policy for policy in CHOSEN if policy != "host_pkt")
OTHERS = tuple(policy for policy in NO_ROTATION if policy != "host_pkt")
ALGORITHMS = {
    RING: "ring",
    TREE: "double_tree",
    HALVING: "recursive",
    HIERARCHICAL: "hierarchical",
    DIRECT: "direct",
}
AT_RANDOM = "at random"
PACKED = "packed"
PLACEMENTS = {AT_RANDOM: "random", PACKED: "packed"}
POINT = 0.01
# From the collective's start: a graph has one start, and no first packet of its own.
COLUMN = "increase"


def part(collective: str, placement: str) -> str:
    """Return the name of a collective's runs at a placement."""
    return f"{collective}, {placement}"


PARTS = (
    *(part(collective, AT_RANDOM) for collective in ALGORITHMS),
    *(part(collective, PACKED) for collective in IN_ORDER),
)


def scenarios(preset: Preset) -> list[Scenario]:
    """Return every collective with ranks in order and at random."""
    k = preset.pick(4, 4, 8)
    seeds = preset.seeds(3, 10, 20)
    runs = []
    for collective, algorithm in ALGORITHMS.items():
        is_direct = collective == DIRECT
        base = {
            "fabric__k": k,
            "collective__matrix": "all_to_all" if is_direct else "all_reduce",
            # The bytes that an all-to-all sends to each; that an all-reduce reduces in all.
            "collective__message_bytes": 64 * KIB if is_direct else preset.pick(4, 8, 16) * MIB,
            "collective__algorithm": algorithm,
        }
        for placement in PLACEMENTS if collective in IN_ORDER else (AT_RANDOM,):
            name = part(collective, placement)
            placed = {"name": name, "collective__placement": PLACEMENTS[placement]}
            runs += grid({**base, **placed}, SHOWN, seeds)

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw a panel for each placement."""
    pictures = {}
    for placement in (AT_RANDOM, PACKED):
        frames = data.parts(*(name for name in PARTS if name.endswith(placement)))
        if not frames:
            continue

        short = {name.partition(",")[0]: rows for name, rows in frames.items()}
        picture, axes = style.panel(5.6, 3.2)
        spans(picture, axes, groups(short, SHOWN, COLUMN), style.INCREASE)
        pictures[f"ranks {placement if placement == AT_RANDOM else 'in order'}"] = picture

    return pictures


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B05 to B08."""
    frames = {name: data.named(name) for name in PARTS}
    yield ahead_at_random(
        {collective: frames[part(collective, AT_RANDOM)] for collective in ALGORITHMS}
    )
    yield nothing_to_balance(frames[part(RING, PACKED)])
    yield trees_leave_less(frames[part(TREE, AT_RANDOM)], frames[part(HALVING, AT_RANDOM)])
    yield rotations_alike(frames)


def ahead_at_random(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B05."""
    checks = {
        f"Ofan is ahead in {collective}": schemes.lowest(
            frame, "ofan", OTHERS, COLUMN, STATEMENTS["B05"].margin
        )
        for collective, frame in frames.items()
    }
    return Verdict(
        "B05",
        decide(list(checks.values())),
        each(
            frames,
            lambda rows: next_best(rows, OTHERS, COLUMN) + behind(rows, OTHERS, COLUMN),
        ),
        why=not_so(checks),
        seeds=seeds_of(frames.values()),
        needs=parts(
            *(
                part(collective, AT_RANDOM)
                for collective in frames
                if checks[f"Ofan is ahead in {collective}"] is None
            )
        ),
    )


def nothing_to_balance(frame: pl.DataFrame) -> Verdict:
    """Decide B06."""
    gaps = {
        policy: difference(frame, policy, "ofan", COLUMN) for policy in SHOWN if policy != "ofan"
    }
    checks = {
        f"{style.label(policy)} is as Ofan": gap.within(-POINT, POINT, STATEMENTS["B06"].margin)
        for policy, gap in gaps.items()
    }
    return Verdict(
        "B06",
        decide(list(checks.values())),
        f"{schemes.listed(frame, SHOWN, 2, COLUMN)}",
        why=not_so(checks),
        seeds=schemes.seeds_of(frame),
        needs=parts(part(RING, PACKED)),
        panel="ranks in order",
    )


def trees_leave_less(tree: pl.DataFrame, halving: pl.DataFrame) -> Verdict:
    """Decide B07."""
    gaps = [difference(frame, "flow", "ofan", COLUMN) for frame in (tree, halving)]
    return Verdict(
        "B07",
        decide([apart(*gaps).below(0, STATEMENTS["B07"].margin)]),
        f"Flow - Ofan: {percent(gaps[0])} in double binary trees, {percent(gaps[1])} by "
        "halving-doubling",
        seeds=seeds_of((tree, halving)),
        needs=parts(part(TREE, AT_RANDOM), part(HALVING, AT_RANDOM)),
    )


def rotations_alike(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B08."""
    gaps = {
        name: {rotation: difference(rows, rotation, "ofan", COLUMN) for rotation in ROTATIONS}
        for name, rows in frames.items()
    }
    checks = {
        f"within a point in {name}": every(
            gap.within(-POINT, POINT, STATEMENTS["B08"].margin) for gap in rotation_gaps.values()
        )
        for name, rotation_gaps in gaps.items()
    }
    return Verdict(
        "B08",
        decide(list(checks.values())),
        "above Ofan: "
        + "; ".join(
            f"{name} "
            + ", ".join(
                f"{style.label(rotation)} {percent(gap)}" for rotation, gap in rotation_gaps.items()
            )
            for name, rotation_gaps in gaps.items()
        ),
        why=not_so(checks),
        seeds=seeds_of(frames.values()),
        needs=parts(*(name for name in gaps if checks[f"within a point in {name}"] is None)),
    )


FIGURE = Figure(
    name="collectives",
    title="Collectives as graphs",
    paper="docs/workloads.md",
    caption=(
        "Completion time over the bound (the longest chain of transfers, each alone) on 16 hosts: "
        "all-reduce of 8 MiB by four algorithms, and an all-to-all of 64 KiB to each. A host "
        "begins a step when its last one is complete, so that what a step loses the next one "
        "cannot make up."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
