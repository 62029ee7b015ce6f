"""Flows that lose every packet between a core link's failure and the routes' convergence.

Appendix F, "All-to-All with failure": at full rate the pointers of Ofan turn in step with an
all-to-all, so that each flow meets one core only.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fattree.experiment.model import Scenario
from reproduction.report.figure import Measured
from sim.arrays.network import Network, build
from sim.runs.engine import advanced, run
from sim.runs.standing import counted

# After 20 packets a flow that is paced 5 % slower is a whole gap behind all others; a congestion
# control, which the appendix expects to undo the anchoring, takes steps of that size.
SLOWER = 1.05
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


def silenced_flows(scenario: Scenario) -> Measured:
    """Return shares of flows that lose all that they send in `all_lost`'s window.

    `share`: of all flows at full rate. `slowed`: one lost flow is 5 % slower: the share of all
    flows, of the flows of the same pair of pods, and whether the slowed flow itself loses all.
    `slowed_each`: one lost flow of every pair of pods is slower.
    """
    lost = all_lost(scenario, np.zeros(0, dtype=np.int64))
    pairs = pods_of_flows(scenario)
    values: dict[str, Sequence[float]] = {"share": (lost.mean(), lost.sum())}

    # Without a silenced flow there is none to slow down.
    if lost.any():
        first = np.flatnonzero(lost)[:1]
        after = all_lost(scenario, first)
        same = pairs == pairs[first]
        values["slowed"] = (
            after.mean(),
            after[same].mean(),
            after[first[0]],
            lost[same].mean(),
        )

        # The first silenced flow of every pair of pods; that of -1, all flows that get through, is
        # not silenced and falls out again.
        _, firsts = np.unique(np.where(lost, pairs, -1), return_index=True)
        values["slowed_each"] = (all_lost(scenario, firsts[lost[firsts]]).mean(),)

    return Measured.of(run(scenario).record, **values)


def pods_of_flows(scenario: Scenario) -> Int64:
    """Return a number for every flow's pair of source and destination pod."""
    flows = build(scenario).flows
    pod = scenario.tree.hosts_per_pod
    return flows.source // pod * scenario.tree.pods + flows.destination // pod


def all_lost(scenario: Scenario, slower: Int64) -> Bools:
    """Return which flows send in the window and get nothing through.

    The flows `slower` are paced 5 % slower.
    """
    # Packets beyond the link when it failed have arrived one round trip later, so that no earlier
    # packet counts. Routes change at the end of the window: until then those of time 0 are right.
    failed_ps = round(scenario.failures.events[0].down_ns * 1000)
    begin_ps = failed_ps + scenario.zero_load_rtt_ps
    end_ps = failed_ps + (scenario.convergence_ps or 0)
    before, after = (_progress(paced(scenario, slower), time_ps) for time_ps in (begin_ps, end_ps))
    sent = after[0] - before[0]
    received = after[1] - before[1]
    silenced: Bools = (sent > 0) & (received == 0)

    return silenced


def paced(scenario: Scenario, slower: Int64) -> Network:
    """Return the network of a scenario in which some flows have a longer gap."""
    # Nothing has been sent yet, so that the pace holds from the first packet on.
    network = build(scenario)
    gaps = network.world.flows.table.gap_ps
    gaps[slower] = (gaps[slower] * SLOWER).astype(np.int64)

    return network


def _progress(network: Network, time_ps: int) -> tuple[Int64, Int64]:
    """Return every flow's transmissions, and the packets that its receiver has."""
    flows = advanced(network, time_ps).flows
    return counted(flows).transmissions, flows.received.astype(np.int64)
