"""Checks of a finished run's sums: no switch or host sends more than it can."""

import numpy as np

from fattree.errors import PhysicsError
from fattree.experiment.nics import nic
from fattree.shape.addressing import host_name, switch_name
from fattree.shape.topology import Level
from fattree.units import PS_PER_SECOND
from sim.arrays.wiring import inputs_of
from sim.runs.results import Int64, Result


def refuse_impossible(result: Result) -> None:
    """Raise PhysicsError where a switch has handled more than came, or a NIC beat its rate."""
    here = f"{result.scenario.balancer}, seed {result.scenario.seed}"
    tree = result.scenario.tree
    surplus = np.flatnonzero(handled(result) > arrived(result))
    if len(surplus):
        raise PhysicsError(
            f"{here}: {switch_name(tree, int(surplus[0]))} has sent on and dropped more packets "
            "than have come to it: this is a fault of ours, please report the experiment"
        )

    # Under failures the flows' own pace is slower than this.
    busy_ps = held_ps(result)
    pressed = np.flatnonzero(busy_ps > result.end_ps)
    if len(pressed):
        host = int(pressed[0])
        raise PhysicsError(
            f"{here}: {host_name(tree, host)} has sent what keeps its link busy for "
            f"{int(busy_ps[host]):,} ps, in {result.end_ps:,} ps: this is a fault of ours, please "
            "report the experiment"
        )


def arrived(result: Result) -> Int64:
    """Return how many packets have come to each switch at most: some are still on their way."""
    lost = result.ports.lost_to_failure
    sent = np.concatenate([result.ports.packets - lost, result.host_packets])
    packets = _by_switch(result, sent[inputs_of(result.scenario.tree)])
    # Edges' own packets come from no link.
    packets[: result.scenario.tree.edges] += result.probes
    return packets


def handled(result: Result) -> Int64:
    """Return how many packets each switch has queued or dropped at its ports."""
    return _by_switch(result, result.ports.packets + result.ports.dropped)


def held_ps(result: Result) -> Int64:
    """Return how long a host's packets keep its NIC, without the last packet."""
    # Bytes and gaps take their time at the NIC's rate, in packets of any size. A float's rounding
    # is far less than a packet.
    scenario = result.scenario
    limit = scenario.transport.rate_limit or 1
    bytes_ps = 8 * PS_PER_SECOND / (scenario.link_bps(Level.HOST) * limit)
    sent = result.host_bytes + scenario.packets.gap_bytes * result.host_packets
    pace = nic(scenario)
    return (sent * bytes_ps).astype(np.int64) - max(pace.data_ps, pace.ack_ps)


def _by_switch(result: Result, ports: Int64) -> Int64:
    tree = result.scenario.tree
    firsts = [tree.first_port(switch) for switch in range(tree.switches)]
    sums: Int64 = np.add.reduceat(ports, firsts)
    return sums
