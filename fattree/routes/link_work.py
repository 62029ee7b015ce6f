"""The load of flows on hosts' links: how long packets and ACKs hold them, and travel.

A link has its own rate, slow all the time or not; a NIC keeps its own rate besides. The last packet
of a message may be shorter than the others, and an ACK may be of many packets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows, path_links
from fattree.experiment.model import Scenario
from fattree.routes.failures import moves_between_planes
from fattree.routes.slow_links import FULL, host_shares
from fattree.shape.topology import Level

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LinkWork:
    """Times of each flow in ps; a computation has none.

    `sending_ps` is how long all its data hold its sender's link, `receiving_ps` its receiver's, and
    `acks_ps` how long its ACKs hold the receiver's; `data_slot_ps` and `ack_slot_ps` are of its
    longest packet and of an ACK. `first_ps` is when its first packet arrives at best, `full_ps` and
    `last_ps` are the ways of a full and of the last packet, `back_ps` is that of an ACK. The tails
    are the times after a link has been held: the way of the last packet, less its own slot, and its
    ACK's.
    """

    data_slot_ps: Int64
    ack_slot_ps: Int64
    sending_ps: Int64
    receiving_ps: Int64
    acks_ps: Int64
    first_ps: Int64
    full_ps: Int64
    last_ps: Int64
    back_ps: Int64
    sent_tail_ps: Int64
    received_tail_ps: Int64
    ack_tail_ps: Int64

    def arrived_ps(self, packets: Int64, pace_ps: Int64) -> Int64:
        """Return when all packets of each flow are there, if they leave at its pace from 0 on."""
        # The last one may be short, and overtake the one before.
        before = np.where(packets > 1, (packets - 2) * pace_ps + self.full_ps, 0)
        last: Int64 = np.maximum(packets - 1, 0) * pace_ps + self.last_ps
        return np.maximum(before, last)


def link_work(scenario: Scenario, flows: Flows) -> LinkWork:
    """Return each flow's load on hosts' links."""
    is_sent = flows.packets > 0
    data = np.full(len(flows), scenario.data_bytes)
    last = last_packets(scenario, flows)
    first = np.where(flows.packets > 1, data, last)
    ack = np.full(len(flows), scenario.ack_bytes)
    hops = path_links(scenario.tree, flows)

    def sending(sizes: Int64, hosts: Int64) -> Int64:
        return _slots(scenario, sizes, hosts, is_up=True)

    def receiving(sizes: Int64) -> Int64:
        return _slots(scenario, sizes, flows.destination, is_up=False)

    first_slot, last_slot = (sending(sizes, flows.source) for sizes in (first, last))
    first_got, last_got = receiving(first), receiving(last)
    ack_slot = sending(ack, flows.destination)
    data_way, last_way, ack_way = (_ways(scenario, sizes, hops) for sizes in (first, last, ack))
    # Rounded times of packets of several sizes do not add up to the picosecond.
    rounded = int((last[is_sent] != scenario.data_bytes).any())
    more = np.maximum(flows.packets - 1, 0)
    # A short packet may overtake the ones before.
    earliest = np.minimum(data_way, more * first_slot + last_way)
    columns = (
        first_slot,
        ack_slot,
        more * first_slot + last_slot,
        more * first_got + last_got,
        _acks(scenario, flows) * ack_slot,
        earliest,
        data_way,
        last_way,
        ack_way,
        np.minimum(data_way - first_slot, last_way - last_slot) + ack_way,
        ack_way - first_got - rounded,
        ack_way - ack_slot,
    )
    return LinkWork(*(np.where(is_sent, column, 0) for column in columns))


def last_packets(scenario: Scenario, flows: Flows) -> Int64:
    """Return the wire size of each flow's last packet."""
    headers = scenario.data_bytes - scenario.packets.payload_bytes
    sizes: Int64 = headers + flows.last_bytes
    return sizes


def packets_an_ack(scenario: Scenario) -> int:
    """Return of how many packets an ACK is at most.

    A NIC that puts packets in order acknowledges at once the packets that it has kept behind a gap.
    """
    return scenario.transport.packets_per_ack + scenario.transport.reorder_packets


def _acks(scenario: Scenario, flows: Flows) -> Int64:
    """Return the fewest ACKs that can report all packets of each flow."""
    acks: Int64 = -(-flows.packets // packets_an_ack(scenario))
    return acks


def _slots(scenario: Scenario, sizes: Int64, hosts: Int64, is_up: bool) -> Int64:
    """Return how long packets and their gaps hold the links of hosts, one way."""
    # Where packets may leave by other ports, those of a slow one do not all hold it.
    of_hosts = {} if moves_between_planes(scenario) else host_shares(scenario, is_up)
    shares = sorted({FULL, *of_hosts.values()})
    share_of = np.full(scenario.tree.hosts, shares.index(FULL))
    for host, share in of_hosts.items():
        share_of[host] = shares.index(share)

    limit = Fraction(str(scenario.transport.rate_limit or 1)) if is_up else Fraction(1)
    return _of_cases(
        sizes * len(shares) + share_of[hosts],
        lambda case: _slot_ps(scenario, case // len(shares), shares[case % len(shares)], limit),
    )


def _slot_ps(scenario: Scenario, size: int, share: float, limit: Fraction) -> int:
    held = size + scenario.packets.gap_bytes
    # The NIC has its own rate (`nics.nic`), whatever the link carries.
    return max(ceil(scenario.tx_ps(held) / limit), scenario.tx_ps(held, Level.HOST, share))


def _ways(scenario: Scenario, sizes: Int64, hops: Int64) -> Int64:
    """Return how long packets travel on empty paths of so many links."""
    return _of_cases(sizes * 8 + hops, lambda case: scenario.path_ps(case % 8, case // 8))


def _of_cases(keys: Int64, time_ps: Callable[[int], int]) -> Int64:
    """Return a time for each key, computed once for equal ones."""
    cases, case_of = np.unique(keys, return_inverse=True)
    return np.array([time_ps(case) for case in cases.tolist()], dtype=np.int64)[case_of.ravel()]
