"""The traffic of a scenario: its flows, the gap at which each is paced, and when it may first send.

Computed once and in one place, so that the three networks send the same packets at the same
picosecond.
"""

from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_never

from fattree.demand.flows import Flows, Message, cut, generations, split
from fattree.demand.matrices import (
    PLACEMENT,
    all_to_all,
    derangement,
    hierarchical_ring,
    inter_pod_permutation,
    pairs,
    refuse_one_pod,
    refuse_too_many,
    ring,
    shard_bytes,
    shuffle,
    uniform,
)
from fattree.demand.matrix_flows import read_connection_matrix
from fattree.demand.planes import one_plane, over_planes
from fattree.demand.workloads.jobs import job_flows, joined_flows
from fattree.draws import Stream, below, component, mix
from fattree.errors import TrafficError
from fattree.experiment.model import Scenario
from fattree.experiment.nics import LINE_RATE, data_slot
from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]

__all__ = [
    "Flows",
    "check_collective",
    "first_due",
    "flows",
    "gaps",
    "message_bytes",
    "packet_count",
    "phases",
    "shares",
    "whole_flows",
]


def flows(scenario: Scenario) -> Flows:
    """Return the scenario's flows, subflows expanded; raises TrafficError or MatrixError.

    They follow from the collective and the seed; a load balancer only decides into how many
    subflows each is split.
    """
    whole = whole_flows(scenario)
    return split(whole, scenario.scheme.subflows, scenario.packets.payload_bytes)


def whole_flows(scenario: Scenario) -> Flows:  # noqa: C901  # one case a matrix
    """Return the flows before they are split into subflows."""
    if scenario.fabric.planes and not scenario.is_graph:
        return over_planes(scenario, whole_flows(one_plane(scenario)))

    tree = scenario.tree
    collective = scenario.collective
    seed = scenario.seed
    if scenario.is_graph:
        return joined_flows([flows for _, flows in job_flows(scenario)])

    size = 0 if collective.matrix == "file" else message_bytes(scenario)
    message = Message(*cut(size, scenario.packets.payload_bytes))

    match collective.matrix:
        case "permutation":
            return uniform(np.arange(tree.hosts), derangement(seed, tree.hosts), message)
        case "inter_pod_permutation":
            return uniform(np.arange(tree.hosts), inter_pod_permutation(tree, seed), message)
        case "all_to_all":
            return uniform(*all_to_all(tree.hosts), message)
        case "ring":
            return ring(tree.hosts, collective.steps, message)
        case "hierarchical_ring":
            return hierarchical_ring(
                tree,
                servers=np.arange(tree.edges),
                servers_per_ring=collective.servers_per_ring,
                steps=collective.steps,
                message=message,
            )
        case "fsdp":
            # Rings visit the servers in a random order: jobs are seldom placed rack by rack.
            placement = shuffle(seed, PLACEMENT, tree.edges)
            return hierarchical_ring(
                tree,
                servers=placement,
                servers_per_ring=collective.servers_per_ring,
                steps=collective.steps or 1,
                message=message,
            )
        case "pairs":
            return uniform(*pairs(tree, collective.pairs), message)
        case "file":
            return _from_file(scenario)
        case "all_reduce" | "reduce_scatter" | "all_gather" | "broadcast" | "incast" | "workload":
            raise AssertionError("a graph, as above")
        case _:
            assert_never(collective.matrix)


def check_collective(scenario: Scenario) -> None:  # noqa: C901  # one case a matrix
    """Raise the error that `flows` would raise, without building large arrays that always fit."""
    if scenario.fabric.planes and not scenario.is_graph:
        check_collective(one_plane(scenario))
        return

    tree = scenario.tree
    collective = scenario.collective
    if scenario.is_graph:
        whole_flows(scenario)
        return

    match collective.matrix:
        case "permutation":
            pass
        case "inter_pod_permutation":
            refuse_one_pod(tree)
        case "all_to_all":
            refuse_too_many(tree.hosts * (tree.hosts - 1))
        case "ring":
            refuse_too_many(tree.hosts * (collective.steps or tree.hosts - 1))
        case "hierarchical_ring" | "fsdp" | "pairs" | "file":
            whole_flows(scenario)
        case "all_reduce" | "reduce_scatter" | "all_gather" | "broadcast" | "incast" | "workload":
            raise AssertionError("a graph, as above")
        case _:
            assert_never(collective.matrix)


def message_bytes(scenario: Scenario) -> int:
    """Return every message's size: `message_bytes`, or one layer's shard under FSDP.

    A file has sizes of its own; of several jobs it is the largest.
    """
    if scenario.jobs:
        return max(job.collective.message_bytes for job in scenario.jobs)

    collective = scenario.collective
    return (
        shard_bytes(collective, scenario.tree.machines)
        if collective.matrix == "fsdp"
        else collective.message_bytes
    )


def packet_count(scenario: Scenario, size: int) -> int:
    """Return the data packets of a message; the last one may be shorter than the others."""
    return cut(size, scenario.packets.payload_bytes)[0]


def _from_file(scenario: Scenario) -> Flows:
    collective = scenario.collective
    if collective.file is None:
        raise TrafficError('matrix file needs collective.file, for example file = "traffic.cm"')

    return read_connection_matrix(
        collective.file, scenario.tree, scenario.packets.payload_bytes, collective.start_unit
    )


def shares(tree: FatTree, flows: Flows) -> Int64:
    """Return among how many flows each flow's host shares its link: as given, else as counted."""
    if flows.share.all():
        return flows.share

    # The most of that host's flows in one generation. Generations may overlap, but a host's flows
    # are paced for its fullest one throughout, as a host has one rate (the ideal CCA).
    keys, sizes = np.unique(
        generations(tree, flows) * tree.hosts + flows.source, return_counts=True
    )
    largest = np.zeros(tree.hosts, dtype=np.int64)
    np.maximum.at(largest, keys % tree.hosts, sizes)

    return np.where(flows.share > 0, flows.share, largest[flows.source])


def gaps(scenario: Scenario, flows: Flows, rho: Fraction = LINE_RATE) -> Int64:
    """Return every flow's pacing gap in ps at line rate, or at rate `rho`, in (flows,).

    It is a slot of its host's NIC if active flows share the rate, else as many slots as flows share
    it for life. `rate_limit` makes it longer.
    """
    # After a short packet, too: it is its message's last, and the packet behind it has room enough.
    slot = data_slot(scenario, rho, scenario.data_bytes)
    if scenario.is_shared_actively:
        return np.full(len(flows), ceil(slot), dtype=np.int64)

    counts, of_flow = np.unique(shares(scenario.tree, flows), return_inverse=True)
    return np.array([ceil(slot * count) for count in counts.tolist()], dtype=np.int64)[of_flow]


def phases(scenario: Scenario, flows: Flows, gaps: Int64) -> Int64:
    """Return how long after its start each flow waits.

    It is a random part of its gap, or its rank among its host's flows in slots. If active flows
    share the rate, those that wait for others wait no longer than that, flows in turn go in the
    order of their numbers, and a rank is nothing.
    """
    if scenario.is_shared_actively:
        is_free = (np.diff(flows.after_offset) == 0) & (flows.in_turn == 0)
        drawn = _drawn_phases(scenario, gaps)
        return np.where(is_free & scenario.transport.random_phases, drawn, 0)

    # The paper's models are of periodic flows with random phases (appendix E).
    if scenario.transport.random_phases:
        return _drawn_phases(scenario, gaps)

    # Rank within equal keys: the position in the stable order, less where the key's run begins.
    together = generations(scenario.tree, flows) * scenario.tree.hosts + flows.source
    order = np.argsort(together, kind="stable")
    _, first, size = np.unique(together[order], return_index=True, return_counts=True)
    rank = np.empty(len(flows), dtype=np.int64)
    rank[order] = np.arange(len(flows)) - np.repeat(first, size)

    return rank * scenario.slot_ps


def _drawn_phases(scenario: Scenario, gaps: Int64) -> Int64:
    """Return a random part of each flow's gap."""
    streams = component(Stream.PHASE, 0) + np.arange(len(gaps))
    drawn: Int64 = below(mix(scenario.seed, streams, 0), gaps)
    return drawn


def first_due(scenario: Scenario, flows: Flows, gaps: Int64) -> Int64:
    """Return when each flow is first due: start + phase.

    A flow that waits for others is due `phases` after they are complete.
    """
    return flows.start_ps + phases(scenario, flows, gaps)
