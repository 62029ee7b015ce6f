"""Lower bounds of the completion time: no queueing, no loss (appendix B).

The permutation's bound follows the three modes of a host that sends data and acknowledges at once:
data only, data and ACKs in turn, ACKs only. `T_d`, `T_a` are serialisation times without the gap,
`d`, `a` with it, `p` the one-way propagation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fattree.experiment import Scenario
from fattree.flows import Flows, chain_ends, generations, path_links
from fattree.traffic import gaps as line_rate_gaps
from fattree.traffic import shares

Int64 = NDArray[np.int64]
SENDERS_ALONE = (
    "bound: of each sender alone, on empty links. Where several send to one host at a time, its"
    " link needs longer than that, and the difference is over the bound."
)


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of appendix B in ps, for paths of so many links.

    `*_path_ps` is what a packet takes to be sent on all links of a path, one after the other; the
    rest is of the host's link.
    """

    data_ps: int
    ack_ps: int
    data_slot_ps: int
    ack_slot_ps: int
    propagation_ps: int
    data_path_ps: int
    ack_path_ps: int

    @classmethod
    def of(cls, scenario: Scenario, hops: int = 6, data_slot_ps: int | None = None) -> "Timing":
        """Return the scenario's times.

        `data_slot_ps` replaces T'_d by the paced gap under failures.
        """
        levels = scenario.tree.levels(hops)
        return cls(
            data_ps=scenario.tx_ps(scenario.data_bytes),
            ack_ps=scenario.tx_ps(scenario.ack_bytes),
            data_slot_ps=data_slot_ps or scenario.slot_ps,
            ack_slot_ps=scenario.ack_slot_ps,
            propagation_ps=sum(scenario.latencies_ps[level] for level in levels),
            data_path_ps=sum(scenario.tx_ps(scenario.data_bytes, level) for level in levels),
            ack_path_ps=sum(scenario.tx_ps(scenario.ack_bytes, level) for level in levels),
        )


def data_only_packets(timing: Timing) -> int:
    """Return i_1: how many data packets a host has begun when the first arrives (78 by default)."""
    # -(-a // b) is a divided by b, rounded up, in integers.
    travelled_ps = timing.propagation_ps + timing.data_path_ps - timing.data_ps
    return -(-travelled_ps // timing.data_slot_ps) + 1


def ack_times_ps(timing: Timing, packets: int) -> list[int]:
    """Return when the ACK of each of `packets` data packets arrives at best, in order.

    The host receives as many as it sends, so that its ACKs share its link with its data.
    Modes 1 and 2 give the ACKs up to i_2 = packets - i_1 + 1, mode 3 the later of its two
    constraints for the rest. A host that has sent all its data before the first packet arrives
    acknowledges each packet at once.
    """
    first_data = arrival_ps(timing)
    i1 = data_only_packets(timing)
    if packets < i1:
        return [
            first_data + index * timing.data_slot_ps + return_ps(timing) for index in range(packets)
        ]

    interleaved = packets - i1 + 1
    first_ack = first_data + (i1 - 1) * timing.data_slot_ps + timing.ack_slot_ps
    arrivals = [
        first_ack + index * (timing.data_slot_ps + timing.ack_slot_ps)
        for index in range(interleaved)
    ]

    for index in range(interleaved, packets):
        on_the_link = arrivals[interleaved - 1] + (index + 1 - interleaved) * timing.ack_slot_ps
        # The ACK of what left in mode 1 waits for nothing but its own way there and back.
        if index < i1 - 1:
            after_data = first_data + index * timing.data_slot_ps + return_ps(timing)
        else:
            # The second constraint of mode 3. The paper prints (H - 1) a, with the gap; the figure
            # that it prints beside it, 17.05694 us, is without.
            after_data = (
                arrivals[index - (i1 - 1)]
                + (timing.ack_path_ps - timing.ack_ps)
                + timing.propagation_ps
            )

        arrivals.append(max(on_the_link, after_data))

    return arrivals


def return_ps(timing: Timing) -> int:
    """Return how long an ACK travels on an empty path."""
    return timing.propagation_ps + timing.ack_path_ps


def arrival_ps(timing: Timing) -> int:
    """Return when the last bit of a first data packet arrives on an empty path."""
    return timing.propagation_ps + timing.data_path_ps


def plain_sum_ps(timing: Timing, packets: int) -> int:
    """Return the paper's all-to-all bound: a host's transmissions and one empty round trip."""
    return packets * timing.data_slot_ps + arrival_ps(timing) + return_ps(timing)


def one_way_ps(timing: Timing, packets: int) -> int:
    """Return when the last ACK arrives at a host that only sends."""
    return (packets - 1) * timing.data_slot_ps + arrival_ps(timing) + return_ps(timing)


def bound_ps(scenario: Scenario, flows: Flows, gaps: Int64 | None = None) -> int:
    """Return the lower bound of the CCT of `flows`.

    Each host's flows of one generation are one message; generations come in turn. A host that
    receives less than it sends is only held to its own sending. `gaps` are the paced gaps (under
    failures); by default those at line rate.
    """
    # Hosts of one generation are numbered through, so that one bincount serves all generations.
    tree = scenario.tree
    paced = line_rate_gaps(scenario, flows) if gaps is None else gaps
    if flows.share.any():
        return _graph_bound_ps(scenario, flows, paced // shares(tree, flows))

    generation = generations(tree, flows)
    together = generation * tree.hosts
    sends = np.bincount(together + flows.source, weights=flows.packets)
    receives = np.bincount(
        together + flows.destination, weights=flows.packets, minlength=len(sends)
    )[: len(sends)]
    hops = path_links(tree, flows)

    # The recursion is the same for all hosts with equal figures: each distinct case is run once.
    slots = paced // shares(tree, flows)
    sender = together + flows.source
    keys = np.stack(
        [hops, sends[sender].astype(np.int64), receives[sender] >= sends[sender], slots], axis=1
    )
    cases, case_of = np.unique(keys, axis=0, return_inverse=True)
    times = np.array([_case_ps(scenario, *case) for case in cases.tolist()], dtype=np.int64)[
        case_of.ravel()
    ]
    arrivals = (flows.packets - 1) * paced + _by_hops(scenario, arrival_ps)[hops // 2 - 1]
    ends = chain_ends(
        flows,
        generation,
        machines=tree.machines,
        at_source=times,
        at_destination=arrivals,
    )

    return int((ends - flows.start_ps).max(initial=0))


def leaves_out_receivers(scenario: Scenario) -> bool:
    """Return whether several hosts may send to one at a time, whose link the bound then leaves out.

    In all other matrices a host gets no more than it sends, or gets it from one host.
    """
    if len(scenario.jobs) > 1:
        return True

    return any(
        one.matrix in ("file", "workload")
        or one.algorithm == "double_tree"
        # A pair that is named twice is of one sender.
        or len({destination for _, destination in one.pairs}) < len({*one.pairs})
        for one in scenario.collectives
    )


def _graph_bound_ps(scenario: Scenario, flows: Flows, slots: Int64) -> int:
    """Return the bound of a graph of transfers and computations, which has no common rounds.

    Either its longest chain, each transfer alone at its host's whole rate (`slots`, per flow), or
    the host that sends most, without a break.
    """
    tree = scenario.tree
    is_sent = flows.packets > 0
    hops = path_links(tree, flows)
    begun = np.where(is_sent, (flows.packets - 1) * slots, flows.compute_ps)
    there = np.where(is_sent, _by_hops(scenario, arrival_ps)[hops // 2 - 1], 0)
    back = np.where(is_sent, _by_hops(scenario, return_ps)[hops // 2 - 1], 0)
    # What waits for a transfer at its source waits until it is sent, the end is its last ACK's.
    ends = there + back
    ends += chain_ends(
        flows,
        generations(tree, flows),
        machines=tree.machines,
        at_source=begun,
        at_destination=begun + there,
    )

    # Floats hold the sums of any run exactly: 2**53 ps are two and a half hours.
    sending = np.bincount(flows.source, weights=flows.packets * slots, minlength=tree.hosts)
    first = np.full(tree.hosts, np.iinfo(np.int64).max)
    np.minimum.at(first, flows.source, flows.start_ps)
    sent = np.where(sending > 0, first, 0) + np.maximum(sending - slots.max(), 0)
    busiest = sent.max() - flows.start_ps.max()

    return max(int((ends - flows.start_ps).max()), int(busiest))


def _by_hops(scenario: Scenario, time_ps: Callable[[Timing], int]) -> Int64:
    """Return a time for paths of 2, 4 and 6 links."""
    return np.array([time_ps(Timing.of(scenario, hops)) for hops in (2, 4, 6)], dtype=np.int64)


def _case_ps(scenario: Scenario, hops: int, packets: int, both_ways: int, slot_ps: int) -> int:
    timing = Timing.of(scenario, hops, slot_ps)
    return ack_times_ps(timing, packets)[-1] if both_ways else one_way_ps(timing, packets)
