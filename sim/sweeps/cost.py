"""The rough cost of a run before it runs: for the order of runs, and the time that is left."""

import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fattree.demand.flows import Flows
from fattree.demand.traffic import message_bytes, packet_count, whole_flows
from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from sim.kernels.records import FRAMED, TRANSIT

# Between pods, as most pairs of hosts are, a packet passes six links and so does its ACK.
HOPS = 12
# The most of a processor of today: 10 million in the largest fabrics, 40 in the smallest.
MOST_HOPS_PER_SECOND = 40e6
# Less work than so many seconds ends sooner in a single process: each takes 3 s to start.
QUICK_SECONDS = 2.0
# The pool of packets is doubled when it is full.
POOL_GROWTH = 2
# Matrices of which no host receives faster than its link carries.
EVEN = ("permutation", "inter_pod_permutation", "all_to_all", "pairs")


class Cost(NamedTuple):
    """The cost of runs: packet-hops, possible further packet-hops, and the memory of packets.

    `more_hops` are sent where senders go on for a round trip, until they hear that a message is
    complete. `packet_bytes` is the most that the packets under way in one run take.
    """

    hops: int = 0
    more_hops: int = 0
    packet_bytes: int = 0


def packet_hops(scenario: Scenario) -> int:
    """Return roughly how many packet-hops a run has; 0 for traffic that cannot be built."""
    try:
        return _packets(scenario) * HOPS
    # The run itself will raise its error.
    except FabricError:
        return 0


def cost(scenarios: Iterable[Scenario]) -> Cost:
    """Return the cost of several runs; none for traffic that cannot be built."""
    total = Cost()
    for scenario in scenarios:
        hops = packet_hops(scenario)
        more = _surplus(scenario) if hops else 0
        total = Cost(
            total.hops + hops,
            total.more_hops + more * HOPS,
            max(total.packet_bytes, _packet_bytes(scenario, hops // HOPS + more)),
        )

    return total


def processors() -> int:
    """Return how many processors this process may use."""
    # In a container or under taskset those are fewer than the machine has; macOS cannot tell.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(scenarios: Iterable[Scenario]) -> int:
    """Return how many processes finish runs soonest: a single process for short runs."""
    return 1 if are_short(scenarios) else processors()


def are_short(scenarios: Iterable[Scenario]) -> bool:
    """Return whether runs end before further processes have started."""
    return least_seconds(cost(scenarios).hops) < QUICK_SECONDS


def least_seconds(hops: float) -> float:
    """Return how long one processor works on so many packet-hops at least."""
    return hops / MOST_HOPS_PER_SECOND


def _packets(scenario: Scenario) -> int:
    hosts = scenario.tree.hosts
    flows = {
        "permutation": hosts,
        "inter_pod_permutation": hosts,
        "all_to_all": hosts * (hosts - 1),
        "pairs": len(scenario.collective.pairs),
    }.get(scenario.collective.matrix)

    # Planes share a message, or carry it in turn.
    if flows is None or scenario.is_graph or scenario.fabric.planes:
        return int(whole_flows(scenario).packets.sum())

    return flows * packet_count(scenario, message_bytes(scenario))


def _surplus(scenario: Scenario) -> int:
    """Return how many packets senders may send beyond their messages at most.

    With erasure coding, a sender with dropped packets goes on at its rate until it hears that the
    message is complete, a round trip later.
    """
    lossless = is_paused(scenario) or not scenario.fabric.queue_bytes
    if scenario.transport.recovery != "erasure" or lossless:
        return 0
    if scenario.collective.matrix in EVEN and not scenario.is_graph:
        return 0

    flows = whole_flows(scenario)
    return len(_overrunning(scenario, flows)) * scenario.bdp_packets


def _overrunning(scenario: Scenario, flows: Flows) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return the senders to hosts with queues that do not hold all packets."""
    hosts = scenario.tree.hosts
    arriving = np.bincount(flows.destination, flows.packets, hosts) * scenario.data_bytes
    pairs = np.unique(np.stack([flows.source, flows.destination]), axis=1)
    senders = np.bincount(pairs[1], minlength=hosts)
    is_overrun = (arriving > scenario.fabric.queue_bytes) & (senders > 1)
    overrunning: np.ndarray[tuple[int], np.dtype[np.int64]] = np.unique(
        flows.source[is_overrun[flows.destination] & (flows.packets > 0)]
    )
    return overrunning


def _packet_bytes(scenario: Scenario, packets: int) -> int:
    """Return the most memory that so many packets of a run take while they are under way."""
    # A sender has no more under way than it sends in a round trip, and each has an ACK at most;
    # queues without a limit hold all.
    in_flight = 2 * packets
    if scenario.fabric.queue_bytes:
        waiting = scenario.tree.first_port(scenario.tree.switches) * (
            scenario.fabric.queue_bytes // scenario.ack_bytes
        )
        in_flight = min(in_flight, 2 * scenario.tree.hosts * scenario.bdp_packets + waiting)

    record = TRANSIT if scenario.program is None else FRAMED
    return POOL_GROWTH * in_flight * record.itemsize
