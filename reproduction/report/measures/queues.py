"""Average queues of every layer of switch ports while hosts send (appendices D, E and F).

Theorems 1 to 3 average over the time that all hosts take to send their messages; a record's mean
goes on until the last ACK.
"""

import numpy as np
from numpy.typing import NDArray

from fattree.demand.bounds import Timing
from fattree.demand.flows import Flows
from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from reproduction.report.figure import Measured
from reproduction.theory import sent_ps
from sim.runs.engine import run
from sim.runs.results import Result

# No simple part of a packet's slot of 41,780 ps: samples fall on all phases of periodic flows.
# The kept data of a run are keyed by this module's text: change something here where
# `reproduction.theory.sent_ps` gives other times.
SAMPLE_PS = 31_000
GROWTH_SAMPLE_PS = 50_000
# Of theorem 2's m, to be seen as a straight line in logarithms.
PACKETS = tuple(2**power for power in range(3, 13))
# Samples within 5 % of the instant count: a law of the square root moves by 2.5 % in that time.
ROUND = 0.05
Floats = NDArray[np.float64]


def queues_while_sending(scenario: Scenario) -> Measured:
    """Return `sending` and `steady`, layers' average queues in packets, and `pointers`.

    `sending` is over the time in which hosts send, `steady` over the middle of it. `pointers` are
    the destination edges per edge (its own left out) and the destination pods per pod, on average.
    """
    result = run(scenario, sample_ps=SAMPLE_PS)
    times, queues = layer_queues(result)
    last = sent_ps(Timing.of(scenario), int(result.flows.packets[0]))
    middle = (times > 0.2 * last) & (times <= 0.8 * last)
    tree = scenario.tree

    return Measured.of(
        result.record,
        sending=queues[times <= last].mean(axis=0),
        steady=queues[middle].mean(axis=0),
        # Ofan has a pointer for each destination edge at edges, for each pod at aggs.
        pointers=[
            distinct_destinations(tree, result.flows, n)
            for n in (tree.hosts_per_edge, tree.hosts_per_pod)
        ],
    )


def queues_as_packets_arrive(scenario: Scenario) -> Measured:
    """Return `uplink`, the mean queue at edges' uplinks when the PACKETS-th packets arrive."""
    result = run(scenario, sample_ps=GROWTH_SAMPLE_PS)
    times, queues = layer_queues(result)
    timing = Timing.of(scenario)
    # The times of an empty network: an edge's uplink is the first queue, so nothing delays before.
    arrivals = [sent_ps(timing, packets) + scenario.latency_ps for packets in PACKETS]
    uplink = [
        queues[np.abs(times - arrival) <= max(ROUND * arrival, GROWTH_SAMPLE_PS)][:, 0].mean()
        for arrival in arrivals
    ]

    return Measured.of(result.record, uplink=uplink)


def layer_queues(result: Result) -> tuple[Floats, Floats]:
    """Return sampled times, and the mean queue of a layer's ports in packets, (samples, layers)."""
    assert result.series is not None
    ports = result.scenario.tree.hosts  # every layer of a fat-tree has as many as there are hosts
    times = result.series.times_ps.astype(float)

    return times, result.series.total / ports / result.scenario.data_bytes


def distinct_destinations(tree: FatTree, flows: Flows, block: int) -> float:
    """Return to how many other blocks of hosts (edges, pods) a block's flows go, on average."""
    source = flows.source // block
    destination = flows.destination // block
    leaving = source != destination

    return len(np.unique(source[leaving] * tree.hosts + destination[leaving])) / (
        tree.hosts / block
    )
