"""Numbers of pointers and schedules in switches, and an example (section 7, appendix F)."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fattree.demand.matrices import derangement
from fattree.policies import POLICIES
from fattree.routes.forwarding import Forwarding, forwarding
from fattree.routes.groups import NONE, Consolidation
from fattree.routes.iwrr import interleave, simplify
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Verdict
from reproduction.report.statistics import Estimate, estimate, every
from reproduction.theory import (
    consolidation_gain,
    most_pointers_of_edge,
    pointers_of_agg,
    schedule_saving,
)

SIZES = (4, 8, 16, 32, 64)
LARGEST = 64
# Of random permutations.
SEEDS = 20
PRINTED = (2047, 63, 32)
# "Schedule example in asymmetric network": Gb/s of P1 to P4, their order after a shuffle.
RAW_WEIGHTS = (1600, 1600, 1600, 800)
WEIGHTS = (2, 2, 2, 1)
ORDER = (3, 2, 4, 1)
SCHEDULE = (3, 2, 4, 1, 3, 2, 1)


Int64 = NDArray[np.int64]


class Counts(NamedTuple):
    """Pointers (per class) and schedules that a switch keeps."""

    edge: int
    agg: int
    edge_schedules: int


@cache
def counted(k: int) -> Counts:
    """Count a switch's pointers, and an edge's schedules, in the forwarding table."""
    # Without failures all switches of a layer have as many: those of the first stand for all.
    table = forwarding(FatTree(k), LinkState.without(FatTree(k)), POLICIES["ofan"], seed=1)
    agg = table.tree.edges
    walked = {int(table.group_schedule[group]) for group in table.groups(0)} - {NONE}

    return Counts(_pointers(table, 0), _pointers(table, agg), len(walked))


def _pointers(table: Forwarding, switch: int) -> int:
    return int((table.group_schedule[list(table.groups(switch))] != NONE).sum())


def uses(k: int, consolidation: Consolidation) -> tuple[int, int]:
    """Return the pointers per class of an edge and of an agg under a consolidation."""
    tree = FatTree(k)
    table = forwarding(
        tree, LinkState.without(tree), POLICIES["ofan"], 1, consolidation=consolidation
    )
    return _pointers(table, 0), _pointers(table, tree.edges)


@cache
def destination_gain(k: int, seed: int = 1) -> float:
    """Return Host DR's over Ofan's virtual flows into an agg, the mean over aggs.

    Counted flow by flow of a random permutation. Host DR rotates every flow by itself, and all of a
    pod's that come from elsewhere pass each of its aggs; Ofan rotates together the flows that share
    a pointer at the agg that they come from.
    """
    tree = FatTree(k)
    pod = tree.hosts_per_pod
    destination = derangement(seed, tree.hosts)
    source_pod, own_pod = np.arange(tree.hosts) // pod, destination // pod
    leaving = np.flatnonzero(source_pod != own_pod)
    # An agg is reached from the aggs of its position only: those of position 0 stand for all.
    pointer = _agg_groups(k)[source_pod[leaving] * tree.aggs_per_pod, own_pod[leaving]]
    keys = np.stack([own_pod[leaving], source_pod[leaving], pointer])
    flows = np.bincount(own_pod[leaving], minlength=k)
    pointers = np.bincount(np.unique(keys, axis=1)[0], minlength=k)
    used = pointers > 0

    return float((flows[used] / pointers[used]).mean())


@cache
def _agg_groups(k: int) -> Int64:
    """Return the group, and with it the pointer, of every agg for every pod."""
    tree = FatTree(k)
    table = forwarding(tree, LinkState.without(tree), POLICIES["ofan"], seed=1)
    return table.agg_group.astype(np.int64)


def mean_gain(k: int) -> Estimate:
    """Return the mean of `destination_gain` over SEEDS permutations."""
    return estimate([destination_gain(k, seed) for seed in range(1, SEEDS + 1)])


def schedule_of_example() -> tuple[list[int], list[int]]:
    """Return the example's simplified weights, and its schedule as port numbers from 1."""
    weights = simplify(np.array([RAW_WEIGHTS]))
    slots, _ = interleave(weights, np.array([ORDER]) - 1)
    return weights[0].tolist(), (slots.astype(int) + 1).tolist()


def table(data: Data) -> pl.DataFrame:
    """Return a row for each size of the network."""
    rows = []
    for k in SIZES:
        counts = counted(k)
        rows.append(
            {
                "k": k,
                "hosts": FatTree(k).hosts,
                "pointers per edge": counts.edge,
                "per aggregation": counts.agg,
                "schedules per edge, shared": counts.edge_schedules,
                "times fewer": round((counts.edge + 1) / counts.edge_schedules, 2),
                "flows into an aggregation, Host DR / Ofan": f"{mean_gain(k):.2f}",
                "k²/(4(k−1))": round(consolidation_gain(k), 2),
            }
        )

    return pl.DataFrame(rows)


def claims(data: Data) -> list[Verdict]:
    """Decide C22, C23 and C30."""
    counts = counted(LARGEST)
    # With the edge itself, as in the paper's k/2 = 2,048 / 64.
    saving = (counts.edge + 1) / counts.edge_schedules
    expected = most_pointers_of_edge(LARGEST), pointers_of_agg(LARGEST), schedule_saving(LARGEST)
    weights, schedule = schedule_of_example()
    gains = {k: (mean_gain(k), consolidation_gain(k)) for k in SIZES}
    checks = [gain.above(least, CLAIMS["C30"].margin) for gain, least in gains.values()]

    return [
        Verdict(
            "C22",
            decide([(counts.edge, counts.agg, saving) == PRINTED == expected]),
            f"k = {LARGEST}: {counts.edge:,} pointers per edge and {counts.agg} per aggregation "
            f"for each class of packets; {counts.edge_schedules} schedules for "
            f"{counts.edge + 1:,} edges, {saving:.0f} times fewer",
            "2,047, 63, 32 times",
        ),
        Verdict(
            "C23",
            decide([tuple(weights) == WEIGHTS, tuple(schedule) == SCHEDULE]),
            f"{list(RAW_WEIGHTS)} -> {weights}; order {_ports(ORDER)} -> {_ports(schedule)}",
            "{2,2,2,1}; {P3,P2,P4,P1,P3,P2,P1}",
        ),
        Verdict(
            "C30",
            decide(checks),
            "; ".join(
                f"k = {k}: {gain} (at least {least:.2f})" for k, (gain, least) in gains.items()
            ),
            "at least k²/(4(k−1)), more than k/4",
            why="" if every(checks) else WHY,
            seeds=SEEDS,
        ),
    ]


WHY = (
    "The formula has all k²/4 flows of a pod come from other pods. In a random permutation some "
    "stay in their pod and need no pointer above it; in a small network some pods send it nothing, "
    "which makes up for that."
)


def _ports(ports: Any) -> str:
    return ",".join(f"P{port}" for port in ports)


FIGURE = Figure(
    name="pointers",
    title="Pointers and schedules",
    paper="Section 7, appendix F",
    caption=(
        "Counted in the groups and schedules that controller and simulator take from the same "
        "arrays; pointers are per class of packets."
    ),
    claims=claims,
    table=table,
)
