"""A fabric in a few numbers, as `[fabric]` and `[transport]` of an experiment.

A user knows the number of GPUs, the tiers and the oversubscription of leaves. The counts of
switches follow: those of a fabric with leaves and spines of about equal size.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import Any, Literal

from fattree.errors import ExperimentError
from fattree.experiment.fabric import Fabric

Nics = Literal["in-order", "any"]
# RoCE: the buffer of each incoming link, with room for packets that come after a pause.
LOSSLESS_BYTES = 400_000
# Pauses make packets late, so a short timer would take them for lost (docs/lossless.md).
PATIENT_RTT = 30
# No sender is as far ahead of a missing packet, so no gap counts as a loss.
NO_LOSS_BY_GAP = 1000
MOST_HOSTS_PER_EDGE = 253
# Programs that compare queues have no more (docs/fabrics.md).
MOST_UPLINKS = 64


@dataclass(frozen=True, slots=True)
class Question:
    """A fabric in numbers. `hosts` counts NICs; with rails, the NICs of all rails together."""

    hosts: int = 512
    tiers: int = 2
    oversubscription: int = 1
    rails: int = 1
    rate_gbps: float = 400
    is_lossless: bool = False
    nics: Nics = "any"

    def tables(self) -> dict[str, Any]:
        """Return the tables of an experiment; raises ExperimentError if no fabric fits."""
        return {"fabric": self._fabric(), "transport": transport(self.nics, self.is_lossless)}

    def _fabric(self) -> dict[str, Any]:
        if self.hosts % self.rails:
            raise ExperimentError(f"--hosts {self.hosts} is no multiple of --rails {self.rails}")

        counts = two_tiers if self.tiers == 2 else three_tiers
        fabric: dict[str, Any] = {
            **counts(self.hosts // self.rails, self.oversubscription),
            "rate_gbps": self.rate_gbps,
        }
        if self.rails > 1:
            fabric["planes"] = self.rails
        if self.is_lossless:
            fabric |= {"flow_control": "pfc", "queue_bytes": LOSSLESS_BYTES}

        return fabric


def in_words(fabric: Fabric) -> str:
    """Return the counts of a fabric's hosts, switches and rails, and its rates, as a phrase."""
    tree = fabric.tree
    pods = tree.pods_per_plane
    edges = pods * tree.edges_per_pod
    aggs = pods * tree.aggs_per_pod
    switches = f"{edges} leaves of {tree.hosts_per_edge} hosts, {aggs} spines"
    if pods > 1:
        cores = tree.cores // tree.planes
        switches = (
            f"{pods} pods, {edges} edges of {tree.hosts_per_edge} hosts, {aggs} aggs, {cores} cores"
        )

    rails = f", in each of {tree.planes} rails" if tree.planes > 1 else ""
    uplinks = fabric.edge_agg_gbps or fabric.rate_gbps
    faster = f" (leaf to spine {uplinks:g})" if uplinks != fabric.rate_gbps else ""
    return f"{tree.hosts} hosts: {switches}{rails}; {fabric.rate_gbps:g} Gb/s{faster}"


def transport(nics: Nics, is_lossless: bool) -> dict[str, Any]:
    """Return the loss recovery of NICs: go-back-N if they take packets in order only, else SACK."""
    if nics == "in-order":
        patience = {"timer_floor_rtt": PATIENT_RTT} if is_lossless else {}
        return {"recovery": "go_back_n", **patience}

    patience = (
        {"sack_threshold": NO_LOSS_BY_GAP, "timer_floor_rtt": PATIENT_RTT} if is_lossless else {}
    )
    return {"recovery": "sack", **patience}


def two_tiers(hosts: int, oversubscription: int) -> dict[str, int]:
    """Return the counts of a leaf-spine; raises ExperimentError."""
    # Leaves have about as many hosts as there are leaves.
    fitting = _leaves(hosts, oversubscription)
    if not fitting:
        raise _no_fabric(hosts, oversubscription, 2)

    per_edge = min(fitting, key=lambda size: (_distance(size * size, hosts), -size))
    return {
        "edges_per_pod": hosts // per_edge,
        "hosts_per_edge": per_edge,
        "aggs_per_pod": per_edge // oversubscription,
    }


def three_tiers(hosts: int, oversubscription: int) -> dict[str, int]:
    """Return the counts of a fabric with pods, or a fat-tree's `k`; raises ExperimentError."""
    # A pod has as many edge switches as uplinks of each, and there are about twice as many pods.
    fitting = _shapes(hosts, oversubscription)
    if not fitting:
        raise _no_fabric(hosts, oversubscription, 3)

    pods, uplinks = min(fitting, key=lambda shape: _distance(shape[0], 2 * shape[1]))
    if oversubscription == 1 and pods == 2 * uplinks:
        return {"k": pods}

    return {
        "pods": pods,
        "edges_per_pod": uplinks,
        "hosts_per_edge": oversubscription * uplinks,
        "aggs_per_pod": uplinks,
        "cores_per_agg": uplinks,
    }


def _leaves(hosts: int, oversubscription: int) -> list[int]:
    """Return the numbers of hosts below a leaf that make a leaf-spine."""
    return [
        size
        for size in range(2, min(hosts // 2, MOST_HOSTS_PER_EDGE) + 1)
        if hosts % size == 0
        and size % oversubscription == 0
        and 2 <= size // oversubscription <= MOST_UPLINKS
    ]


def _shapes(hosts: int, oversubscription: int) -> list[tuple[int, int]]:
    """Return the pods, and the uplinks of their switches, that make a fabric."""
    return [
        (pods, uplinks)
        for pods, uplinks in _pods(hosts, oversubscription)
        if oversubscription * uplinks <= MOST_HOSTS_PER_EDGE and uplinks <= MOST_UPLINKS
    ]


def _pods(hosts: int, oversubscription: int) -> Iterator[tuple[int, int]]:
    uplinks = 2
    while (of_pod := oversubscription * uplinks * uplinks) * 2 <= hosts:
        if hosts % of_pod == 0:
            yield hosts // of_pod, uplinks

        uplinks += 1


def _distance(first: int, second: int) -> float:
    return abs(log(first / second))


# So far above a number the next number that fits is looked for.
MOST_TIMES = 64


def _near(hosts: int, fitting: Callable[[int, int], object], oversubscription: int) -> str:
    """Return the numbers of hosts that fit and are nearest, below and above."""
    below = (number for number in range(hosts, 1, -1))
    above = (number for number in range(hosts, MOST_TIMES * hosts))
    near = [
        str(number)
        for numbers in (below, above)
        for number in islice((n for n in numbers if fitting(n, oversubscription)), 1)
    ]
    return f"{' and '.join(near)} {'fit' if len(near) > 1 else 'fits'}" if near else "or a ratio"


def _no_fabric(hosts: int, oversubscription: int, tiers: int) -> ExperimentError:
    near = _near(hosts, _leaves if tiers == 2 else _shapes, oversubscription)
    return ExperimentError(
        f"no fabric of {tiers} tiers, {oversubscription}:1, has {hosts} hosts below equal switches"
        f" with two uplinks or more: choose another number ({near}), or give an experiment file"
    )
