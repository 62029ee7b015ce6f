"""Load on all southbound links to a switch, from each source and from all (appendix F)."""

import numpy as np
from numpy.typing import NDArray

from fattree.experiment.model import Collective, Scenario
from reproduction.report.figure import Measured
from sim.arrays.network import build
from sim.runs.engine import run
from sim.runs.layers import by_layer
from sim.runs.results import Result

Int64 = NDArray[np.int64]


def link_spreads(scenario: Scenario) -> Measured:
    """Return spreads in packets: most loaded link to a switch - least loaded.

    `alone`: the worst over all source edges that send alone, C>A then A>E; `pods`: over all pods
    that send alone, C>A, so over all source aggregation switches, as each feeds one agg of a pod.
    `together`: when all send. `load`: the mean of the links' loads in those two layers, for scale.
    `pointers`: the pointers that feed a switch from above, at most.
    """
    # The invariant is about one source switch, and a port does not count by source: every source
    # has a run of its own.
    result = run(scenario)
    tree = scenario.tree
    edges = sources(scenario, tree.hosts_per_edge)
    alone = np.max([spreads(run(source)) for source in edges], axis=0)
    pods = max(spreads(run(source))[0] for source in sources(scenario, tree.hosts_per_pod))
    to_aggs, to_edges = southbound_data(result)

    return Measured.of(
        result.record,
        alone=alone,
        pods=(pods,),
        together=spreads(result),
        load=(to_aggs.mean(), to_edges.mean()),
        # From each other pod one agg feeds an agg, with one pointer for this pod (section 7).
        pointers=(tree.pods - 1, most_feeding(scenario)),
    )


def sources(scenario: Scenario, block: int) -> list[Scenario]:
    """Return a scenario for each block of hosts (an edge's, a pod's), with its flows only."""
    flows = build(scenario).flows
    ends = np.stack([flows.source, flows.destination], axis=1)
    of_block = [
        ends[flows.source // block == number].tolist()
        for number in range(scenario.tree.hosts // block)
    ]

    size = scenario.collective.message_bytes
    return [
        scenario.model_copy(
            update={
                "collective": Collective(
                    matrix="pairs", message_bytes=size, pairs=tuple(map(tuple, pairs))
                )
            }
        )
        for pairs in of_block
    ]


def southbound_data(result: Result) -> tuple[Int64, Int64]:
    """Return data packets on links down to aggs, (aggs, cores), and to edges, (edges, aggs)."""
    tree = result.scenario.tree
    scenario = result.scenario
    ports = result.ports
    # Ports count packets and bytes of both classes together: with d data packets of n the bytes are
    # d data + (n - d) ack.
    data = (ports.bytes - scenario.ack_bytes * ports.packets) // (
        scenario.data_bytes - scenario.ack_bytes
    )
    layers = by_layer(tree, data)
    # (agg position, core index, pod) and (pod, agg position, edge position).
    from_cores = layers[2].reshape(tree.aggs_per_pod, tree.cores_per_agg, tree.pods)
    from_aggs = layers[3].reshape(tree.pods, tree.aggs_per_pod, tree.edges_per_pod)
    to_aggs = from_cores.transpose(2, 0, 1).reshape(tree.aggs, tree.cores_per_agg)

    return to_aggs, from_aggs.transpose(0, 2, 1).reshape(tree.edges, tree.aggs_per_pod)


def spreads(result: Result) -> tuple[int, int]:
    """Return the largest difference between the links down to one agg, and down to one edge."""
    aggs, edges = southbound_data(result)
    return int(np.ptp(aggs, axis=1).max()), int(np.ptp(edges, axis=1).max())


def most_feeding(scenario: Scenario) -> int:
    """Return from how many edges, each with a pointer for it, the busiest edge gets flows."""
    flows = build(scenario).flows
    source = flows.source // scenario.tree.hosts_per_edge
    destination = flows.destination // scenario.tree.hosts_per_edge
    # An edge has one pointer for another edge, however many flows share it: pairs count once.
    pairs = np.unique(np.stack([destination, source])[:, source != destination], axis=1)

    return int(np.bincount(pairs[0]).max())
