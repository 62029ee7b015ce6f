"""Average queues of every layer of switch ports while hosts send, and the pointers that they use
(appendices D, E and F).

Theorems 1 to 3 average over the time that all hosts take to send their messages; a record's mean
goes on until the last ACK.
"""

import numpy as np
from numpy.typing import NDArray

from fattree.experiment import Scenario
from fattree.flows import Flows
from fattree.topology import SWITCH_LAYERS, FatTree
from sim.engine import run
from sim.report.figure import Measured
from sim.results import Result
from sim.theory import Timing, sent_ps

# What is kept of a run is keyed by this module's text: change something here where
# `sim.theory.sent_ps` gives other times.
SAMPLE_PS = 31_000
GROWTH_SAMPLE_PS = 50_000
PACKETS = tuple(2**power for power in range(3, 13))
ROUND = 0.05
Floats = NDArray[np.float64]


def measure_layers(scenario: Scenario) -> Measured:
    """Return `sending`, each layer's average queue in packets while hosts send, `steady`, that of
    the middle, and `pointers`.

    `pointers` are the destination edges per edge (its own left out) and the destination pods per
    pod, on average.
    """
    result = run(scenario, sample_ps=SAMPLE_PS)
    times, queues = layer_queues(result)
    last = sent_ps(Timing.of(scenario), int(result.flows.packets[0]))
    values = {
        "sending": tuple(queues[times <= last].mean(axis=0).tolist()),
        "steady": tuple(queues[(times > 0.2 * last) & (times <= 0.8 * last)].mean(axis=0).tolist()),
        "pointers": (
            distinct_destinations(scenario.tree, result.flows, scenario.tree.half),
            distinct_destinations(scenario.tree, result.flows, scenario.tree.half**2),
        ),
    }

    return Measured(**result.record.model_dump(), values=values)


def measure_growth(scenario: Scenario) -> Measured:
    """Return `uplink`, the average queue at edges' uplinks when the packets number PACKETS of all
    flows arrive there.
    """
    result = run(scenario, sample_ps=GROWTH_SAMPLE_PS)
    times, queues = layer_queues(result)
    timing = Timing.of(scenario)
    arrivals = [sent_ps(timing, packets) + scenario.latency_ps for packets in PACKETS]
    reached = [
        queues[np.abs(times - arrival) <= max(ROUND * arrival, GROWTH_SAMPLE_PS)][:, 0].mean()
        for arrival in arrivals
    ]

    return Measured(**result.record.model_dump(), values={"uplink": tuple(map(float, reached))})


def layer_queues(result: Result) -> tuple[Floats, Floats]:
    """Return the sampled times and the mean queue of a port of every layer in data packets, shape
    (samples, layers).
    """
    assert result.series is not None
    tree = result.scenario.tree
    ports = np.full(
        len(SWITCH_LAYERS), tree.hosts
    )  # every layer of a fat-tree has as many ports as there are hosts

    return result.series.times_ps.astype(
        float
    ), result.series.total / ports / result.scenario.data_bytes


def distinct_destinations(tree: FatTree, flows: Flows, block: int) -> float:
    """Return to how many other blocks of hosts (edges, pods) the flows of a block go, on average
    over all blocks.
    """
    source = flows.source // block
    destination = flows.destination // block
    leaving = source != destination

    return len(np.unique(source[leaving] * tree.hosts + destination[leaving])) / (
        tree.hosts / block
    )
