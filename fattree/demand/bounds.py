"""Appendix B: how long hosts take that send data and acknowledge at once, on empty links.

The permutation's bound follows the three modes of such a host: data only, data and ACKs in turn,
ACKs only. `T_d`, `T_a` are serialisation times without the gap, `d`, `a` with it, `p` the one-way
propagation.
"""

from dataclasses import dataclass

from fattree.experiment.model import Scenario
from fattree.experiment.nics import nic


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of appendix B in ps, for paths of so many links.

    `*_path_ps` is the time of sending a packet on all links of a path, one after the other; the
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
        """Return the scenario's times; slots are the NIC's.

        `data_slot_ps` replaces T'_d by another gap.
        """
        levels = scenario.tree.levels(hops)
        pace = nic(scenario)
        return cls(
            data_ps=scenario.tx_ps(scenario.data_bytes),
            ack_ps=scenario.tx_ps(scenario.ack_bytes),
            data_slot_ps=data_slot_ps or pace.data_ps,
            ack_slot_ps=pace.ack_ps,
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
        # The ACK of a packet that left in mode 1 waits for its own way there and back alone.
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
