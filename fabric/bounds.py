"""Lower bounds of the completion time: no queueing, no loss (appendix B).

The permutation's bound follows the three modes of a host that sends data and acknowledges at once: data only, data and ACKs in
turn, ACKs only. `T_d`, `T_a` are serialisation times without the gap, `d`, `a` with it, `p` the one-way propagation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.experiment import Scenario
from fabric.flows import Flows, generations
from fabric.traffic import gaps as line_rate_gaps
from fabric.traffic import shares

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of appendix B in ps, for paths of `hops` links."""

    data_ps: int
    ack_ps: int
    data_slot_ps: int
    ack_slot_ps: int
    propagation_ps: int
    hops: int

    @classmethod
    def of(cls, scenario: Scenario, hops: int = 6, data_slot_ps: int | None = None) -> "Timing":
        """Return the scenario's times; `data_slot_ps` replaces T'_d by the paced gap under failures."""
        return cls(
            data_ps=scenario.tx_ps(scenario.data_bytes),
            ack_ps=scenario.tx_ps(scenario.ack_bytes),
            data_slot_ps=data_slot_ps or scenario.slot_ps,
            ack_slot_ps=scenario.tx_ps(scenario.ack_bytes + scenario.packets.gap_bytes),
            propagation_ps=hops * scenario.latency_ps,
            hops=hops,
        )


def data_only_packets(timing: Timing) -> int:
    """Return i_1: how many data packets a host has begun when the first one arrives (78 by default)."""
    return -(-(timing.propagation_ps + (timing.hops - 1) * timing.data_ps) // timing.data_slot_ps) + 1


def ack_times_ps(timing: Timing, packets: int) -> list[int]:
    """Return when the ACK of each of `packets` data packets arrives at best, in order, at a host that also receives as many.

    Modes 1 and 2 give the ACKs up to i_2 = packets - i_1 + 1, mode 3 the later of its two constraints for the rest. A host
    that has sent all its data before the first packet arrives acknowledges each packet at once.
    """
    first_data = timing.propagation_ps + timing.hops * timing.data_ps
    i1 = data_only_packets(timing)
    if packets < i1:
        return [first_data + index * timing.data_slot_ps + return_ps(timing) for index in range(packets)]
    interleaved = packets - i1 + 1
    first_ack = first_data + (i1 - 1) * timing.data_slot_ps + timing.ack_slot_ps
    arrivals = [first_ack + index * (timing.data_slot_ps + timing.ack_slot_ps) for index in range(interleaved)]
    for index in range(interleaved, packets):
        on_the_link = arrivals[interleaved - 1] + (index + 1 - interleaved) * timing.ack_slot_ps
        after_data = arrivals[index - (i1 - 1)] + (timing.hops - 1) * timing.ack_ps + timing.propagation_ps
        arrivals.append(max(on_the_link, after_data))
    return arrivals


def return_ps(timing: Timing) -> int:
    """Return how long an ACK travels on an empty path."""
    return timing.propagation_ps + timing.hops * timing.ack_ps


def plain_sum_ps(timing: Timing, packets: int) -> int:
    """Return the paper's all-to-all bound: the sum of the host's transmissions and one empty round trip."""
    return packets * timing.data_slot_ps + timing.propagation_ps + timing.hops * timing.data_ps + return_ps(timing)


def one_way_ps(timing: Timing, packets: int) -> int:
    """Return when the last ACK arrives at a host that only sends."""
    return (packets - 1) * timing.data_slot_ps + timing.propagation_ps + timing.hops * timing.data_ps + return_ps(timing)


def bound_ps(scenario: Scenario, flows: Flows, gaps: Int64 | None = None) -> int:
    """Return the lower bound of the CCT of `flows`: each host's flows of one generation as one message, generations in sequence.

    `gaps` are the paced gaps (under failures); by default those at line rate.
    """
    tree = scenario.tree
    paced = line_rate_gaps(scenario, flows) if gaps is None else gaps
    together = generations(tree, flows) * tree.hosts
    sends = np.bincount(together + flows.source, weights=flows.packets)
    receives = np.bincount(together + flows.destination, minlength=len(sends))
    hops = np.where(flows.source // tree.half == flows.destination // tree.half, 2, 6)
    hops[(hops == 6) & (flows.source // tree.half**2 == flows.destination // tree.half**2)] = 4
    slots = paced // shares(tree, flows)
    keys = np.stack([hops, sends[together + flows.source].astype(np.int64), receives[together + flows.source] > 0, slots], axis=1)
    cases, case_of = np.unique(keys, axis=0, return_inverse=True)
    times = np.array([_case_ps(scenario, *case) for case in cases.tolist()], dtype=np.int64)[case_of.ravel()]
    return _longest_chain(flows, times)


def _case_ps(scenario: Scenario, hops: int, packets: int, receives: int, slot_ps: int) -> int:
    timing = Timing.of(scenario, hops, slot_ps)
    return ack_times_ps(timing, packets)[-1] if receives else one_way_ps(timing, packets)


def _longest_chain(flows: Flows, times: Int64) -> int:
    """Return the largest sum of `times` along flows that wait for each other."""
    if not len(flows.after):
        return int(times.max(initial=0))
    done = times.copy()
    waiting = np.repeat(np.arange(len(flows)), np.diff(flows.after_offset))
    while True:
        longer = times.copy()
        np.maximum.at(longer, waiting, done[flows.after] + times[waiting])
        if (longer == done).all():
            return int(done.max())
        done = longer
