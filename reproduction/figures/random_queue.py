"""The square-root law of random spraying, and edges without internal traffic (appendix D)."""

from typing import Any

import numpy as np
import polars as pl

from fattree.demand.matrices import derangement
from fattree.experiment.fabric import DEFAULT_QUEUE_BYTES
from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from reproduction.report import style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.measures.queues import PACKETS, queues_as_packets_arrive
from reproduction.report.schemes import seeds_of
from reproduction.report.statistics import Estimate, estimate, every
from reproduction.theory import (
    no_internal_traffic_bound,
    northbound_probability,
    random_queue_packets,
)

K = 8
TOLERANCE = 0.15
# A law for large m: the first packets are left to the picture.
CHECKED = tuple(packets for packets in PACKETS if packets >= 64)
# Longer than the last of PACKETS: hosts still send when it arrives.
LONGER = 4_400
PAYLOAD = 4096
INTERNAL_K = (4, 8, 16)
# The more edges a permutation has, the fewer permutations are needed.
PERMUTATIONS = {4: 2_000, 8: 500, 16: 60}


def scenarios(preset: Preset) -> list[Scenario]:
    """Return RSQ without internal traffic, as the proof has it, and with unlimited buffers."""
    base = {
        "fabric__k": K,
        "fabric__queue_bytes": 0,
        "fabric__threshold_bytes": DEFAULT_QUEUE_BYTES,
        "collective__matrix": "inter_pod_permutation",
        "collective__message_bytes": LONGER * PAYLOAD,
    }

    return grid(base, ("rsq",), preset.seeds())


def measured(frame: pl.DataFrame) -> dict[int, Estimate]:
    """Return the average queue when so many packets of every flow have arrived, over seeds."""
    rows = np.array(frame["uplink"].to_list())
    return {packets: estimate(rows[:, index]) for index, packets in enumerate(PACKETS)}


def draw(data: Data) -> dict[str, Any]:
    """Draw the queue over the packets sent, and the law."""
    picture, axes = style.panel(3.8, 2.9)
    style.line(axes, "rsq", measured(data.frame))
    law = [random_queue_packets(K, packets) for packets in PACKETS]
    axes.plot(PACKETS, law, color=style.BOUND, linewidth=1, label="√(1 − 2/k) √(2m/π)", zorder=1)
    style.powers_of_two(axes, PACKETS[::3])
    axes.set_yscale("log")
    axes.set_yticks([2, 5, 10, 20, 40], ["2", "5", "10", "20", "40"])
    axes.minorticks_off()
    axes.set_xlabel("packets sent by each host, m")
    axes.set_ylabel("mean queue at edge uplinks (packets)")
    axes.legend(loc="upper left")

    return {"": picture}


def claims(data: Data) -> list[Verdict]:
    """Decide C18 and C29."""
    queues = measured(data.frame)
    ratios = {
        packets: queues[packets].mean / random_queue_packets(K, packets) for packets in CHECKED
    }
    law = ", ".join(f"{ratio:.2f} (m = {packets})" for packets, ratio in ratios.items())
    worst = max(abs(ratio - 1) for ratio in ratios.values())
    near = every(
        Estimate(
            ratio, queues[packets].half * ratio / queues[packets].mean, queues[packets].count
        ).within(1 - TOLERANCE, 1 + TOLERANCE, CLAIMS["C18"].margin)
        for packets, ratio in ratios.items()
    )
    why = (
        "The law is a fluid limit: it leaves out the packet that is being sent, half a packet "
        "or so."
    )

    return [
        Verdict(
            "C18",
            verdict=decide([near]),
            ours=(
                f"measured over law: {law}; at most {100 * worst:.0f} % off "
                f"({seeds_of(data.frame)} seeds, {FatTree(K).hosts} uplinks each)"
            ),
            seeds=seeds_of(data.frame),
            paper="the queue follows the law",
            why="" if near else why,
        ),
        _internal(data.preset),
    ]


def _internal(preset: Preset) -> Verdict:
    counts = {
        k: edges_without_internal(k, PERMUTATIONS[k] // preset.pick(4, 1, 1), preset.first_seed)
        for k in INTERNAL_K
    }

    bounds = {k: no_internal_traffic_bound(k) for k in INTERNAL_K}
    return Verdict(
        "C29",
        decide([bool(at_least(counts[k], bounds[k])) for k in INTERNAL_K]),
        "; ".join(
            f"k = {k}: {counts[k]:.4f} of edges over {counts[k].count} permutations (formula "
            f"{northbound_probability(k):.4f}), bound {bounds[k]:.4f}"
            for k in INTERNAL_K
        ),
        "at least the bound for every k of 4 or more",
    )


def at_least(share: Estimate, bound: float) -> bool:
    """Return whether a share is not below a bound by its interval."""
    # The share is sampled: it contradicts the bound only if its whole interval is below.
    return share.high >= bound


def edges_without_internal(k: int, permutations: int, first_seed: int) -> Estimate:
    """Return the share of edges that all of their flows leave, in random permutations."""
    tree = FatTree(k)
    edge = np.arange(tree.hosts) // tree.hosts_per_edge
    shares = []

    for seed in range(first_seed, first_seed + permutations):
        leaves = derangement(seed, tree.hosts) // tree.hosts_per_edge != edge
        shares.append(float(leaves.reshape(tree.edges, tree.hosts_per_edge).all(axis=1).mean()))

    return estimate(shares)


FIGURE = Figure(
    name="random_queue",
    title="Random spraying: the square-root law",
    paper="Theorem 2, appendix D",
    caption=(
        "RSQ, inter-pod permutations on 128 hosts, unlimited buffers: the mean queue over all "
        "edge uplinks when the m-th packets arrive."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    measure=queues_as_packets_arrive,
)
