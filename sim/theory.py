"""The paper's closed forms, to be drawn over simulations and tested against brute force.

Times are integer picoseconds, queues are in data packets, k is the fat-tree's parameter. Each
function names the theorem or the appendix that it is taken from. Where the paper prints no formula
(N D/D/1, appendix E) we use Roberts' exact tail, and beside it the Gaussian bridge, which is our
reading of its "truncated normal".
"""

from dataclasses import dataclass
from math import ceil, comb, erfc, exp, floor, pi, prod, sqrt

from fattree.bounds import (
    Timing,
    ack_times_ps,
    arrival_ps,
    data_only_packets,
    plain_sum_ps,
    return_ps,
)
from fattree.experiment import Scenario
from fattree.topology import FatTree
from fattree.traffic import message_bytes, packet_count
from fattree.units import PS_PER_SECOND

__all__ = ["Timing", "ack_times_ps", "arrival_ps", "data_only_packets", "plain_sum_ps", "return_ps"]

HEADER_BYTES = 82
QUEUEING_PACKETS = 10
SWITCH_QUEUES = 5
DEFAULT_BUFFER_PACKETS = 200


# Bounds of the completion time (appendix B)


def packets_of(scenario: Scenario) -> int:
    """Return m, the data packets of a message."""
    return packet_count(scenario, message_bytes(scenario))


def permutation_bound_ps(scenario: Scenario, packets: int | None = None) -> int:
    """Return appendix B's lower bound of a permutation of `packets` (by default the scenario's):
    17,056,940 ps for 256.
    """
    return ack_times_ps(Timing.of(scenario), packets or packets_of(scenario))[-1]


def all_to_all_bound_ps(scenario: Scenario) -> int:
    """Return appendix B's recursion for an all-to-all: every host sends m' = (n - 1) m packets,
    1,391.8 us by default.
    """
    return permutation_bound_ps(scenario, (scenario.tree.hosts - 1) * packets_of(scenario))


def all_to_all_plain_sum_ps(scenario: Scenario) -> int:
    """Return the paper's all-to-all bound, data on the host's link and one empty round trip:
    1,364.6 us by default.
    """
    return plain_sum_ps(Timing.of(scenario), (scenario.tree.hosts - 1) * packets_of(scenario))


def last_interleaved_ack(timing: Timing, packets: int) -> int:
    """Return i_2 = m - i_1 + 1, the ACK after which hosts send ACKs only: 179 of 256 (appendix B,
    mode 3).
    """
    return packets - data_only_packets(timing) + 1


def sent_ps(timing: Timing, packets: int) -> int:
    """Return when the last bit of a host's data packet number `packets` has left, in modes 1 and 2
    (appendix B).
    """
    alone = min(packets, data_only_packets(timing))
    return (
        timing.data_ps
        + (alone - 1) * timing.data_slot_ps
        + (packets - alone) * (timing.data_slot_ps + timing.ack_slot_ps)
    )


# Synchronised pairs of flows (theorem 1, appendix C)


def northbound_probability(k: int) -> float:
    """Return the probability that no flow of an edge stays under it, in a random permutation
    (appendix C, property 1).
    """
    hosts = FatTree(k).hosts
    half = k // 2
    return prod((hosts - half - i) / (hosts - 1 - i) for i in range(half))


def hotspot_probability(k: int) -> float:
    """Return the probability that all flows of an edge go to one other edge (appendix C, property
    1).
    """
    hosts = FatTree(k).hosts
    half = k // 2
    return (hosts - half) / (hosts - 1) * prod((half - i) / (hosts - 1 - i) for i in range(1, half))


def red_probability(k: int) -> float:
    """Return the probability that an edge is red: all its flows leave it, and not all to the same
    edge (appendix C).
    """
    return northbound_probability(k) - hotspot_probability(k)


def safe_probability(k: int, gap_share: float) -> float:
    """Return the probability that no neighbour sends in a flow's critical window (appendix C,
    property 2).

    `gap_share` is T_IPG / T_SERVICE, the inter-packet gap as a part of a packet's slot.
    """
    return float((1 - 2 * gap_share) ** (k // 2 - 1))


def collision_probability(k: int, gap_share: float | None = None) -> float:
    """Return the probability that two given flows collide on an aggregation-edge link (appendix C).

    With JSQ both must be safe, so `gap_share` is given; without it this is Simple RR's.
    """
    hosts = FatTree(k).hosts
    half = k // 2
    safe = 1.0 if gap_share is None else safe_probability(k, gap_share)
    same_agg = 1 / half
    same_destination = (half - 1) / (hosts - 1 - half)

    return red_probability(k) ** 2 * safe**2 * same_agg * same_destination


def expected_pairs(k: int, gap_share: float | None = None, *, same_edge: bool = True) -> float:
    """Return the expected number of synchronised pairs: all pairs of flows times their probability
    (appendix C).

    The appendix counts all n (n - 1) / 2 pairs; without `same_edge`, only those of flows that begin
    at different edges, since two of one edge never share an uplink.
    """
    hosts = FatTree(k).hosts
    half = k // 2
    partners = hosts - 1 if same_edge else hosts - half

    return hosts * partners / 2 * collision_probability(k, gap_share)


def any_pair_probability(k: int, gap_share: float | None = None) -> float:
    """Return the probability of at least one pair if pairs were independent and rare, 1 -
    exp(-expected pairs).
    """
    return 1 - exp(-expected_pairs(k, gap_share))


def no_internal_traffic_bound(k: int) -> float:
    """Return the lower bound 1 - (k - 2)/(k^2 - 2) of `northbound_probability` (appendix D)."""
    return 1 - (k - 2) / (k * k - 2)


# Random spraying (theorem 2, appendix D)


def random_queue_packets(k: int, packets: float) -> float:
    """Return Q(m) = sqrt(1 - 2/k) sqrt(2 m / pi): the queue at an edge's uplink when the m-th
    packet of its flows arrives.
    """
    return sqrt(1 - 2 / k) * sqrt(2 * packets / pi)


# Periodic flows: N D/D/1 (theorem 3, appendices E and F)


@dataclass(frozen=True, slots=True)
class PeriodicFlows:
    """`flows` periodic flows with random phases, one packet each in `period` service times.

    Neither need be whole numbers.
    """

    flows: float
    period: float

    def __post_init__(self) -> None:
        if not 0 < self.flows <= self.period:
            raise ValueError(
                f"{self.flows} flows of period {self.period}: the load must be in (0, 1]"
            )

    @property
    def load(self) -> float:
        """Return rho = N / D."""
        return self.flows / self.period

    def tail(self, work: float) -> float:
        """Return P(V > x), V being the work that waits in service times.

        Between whole numbers of flows it is interpolated.
        """
        below = floor(self.flows)
        part = self.flows % 1
        tail = periodic_tail(below, self.period, work) if below else 0.0

        return (
            tail
            if part == 0
            else (1 - part) * tail
            + part * periodic_tail(below + 1, max(self.period, below + 1), work)
        )

    def mean_packets(self) -> float:
        """Return the mean number of packets that wait or are being sent: the sum of P(V > i) over i
        = 0, 1, ...
        """
        return sum(self.tail(i) for i in range(ceil(self.flows) + 1))

    def bridge_tail(self, work: float) -> float:
        """Return the Gaussian bridge's P(V > x) = exp(-2 x (x / N + 1 - rho))."""
        return exp(-2 * work * (work / self.flows + 1 - self.load))

    def bridge_mean_packets(self) -> float:
        """Return the Gaussian bridge's mean number of packets: its mean work and half a packet
        while one is being sent.
        """
        drift = 1 - self.load
        work = (
            sqrt(pi * self.flows / 8)
            * exp(self.flows * drift**2 / 2)
            * erfc(drift * sqrt(self.flows / 2))
        )

        return work + self.load / 2


def periodic_tail(flows: int, period: float, work: float) -> float:
    """Return P(V > x) of the N D/D/1 queue exactly (Roberts and Virtamo 1991), x in service times,
    N <= D.

    Sum over n > x of C(N, n) ((n - x)/D)^n (1 - (n - x)/D)^(N - n) (D - N + x)/(D - n + x).
    """
    if work <= 0:
        return flows / period if work == 0 else 1.0

    return sum(
        comb(flows, n)
        * ((n - work) / period) ** n
        * (1 - (n - work) / period) ** (flows - n)
        * (period - flows + work)
        / (period - n + work)
        for n in range(floor(work) + 1, flows + 1)
    )


def northbound_flows_of_edge(k: int) -> float:
    """Return the expected flows that leave an edge in a random permutation, k/2 (1 - (k/2 - 1)/(n -
    1)) (appendix E).
    """
    hosts = FatTree(k).hosts
    half = k // 2
    return half * (1 - (half - 1) / (hosts - 1))


def northbound_flows_of_pod(k: int) -> float:
    """Return the expected flows that leave a pod, (k/2)^2 (1 - ((k/2)^2 - 1)/(n - 1)) (appendix E)."""
    hosts = FatTree(k).hosts
    local = (k // 2) ** 2
    return local * (1 - (local - 1) / (hosts - 1))


def host_dr_queue(k: int, *, core: bool) -> PeriodicFlows:
    """Return Host DR's model (appendix E): an edge's flows of period k/2 at E>A and A>E, a pod's of
    (k/2)^2 at A>C and C>A.
    """
    half = k // 2
    return (
        PeriodicFlows(northbound_flows_of_pod(k), half**2)
        if core
        else PeriodicFlows(northbound_flows_of_edge(k), half)
    )


def ofan_queue(k: int, *, core: bool) -> PeriodicFlows:
    """Return Ofan's model (appendix F): as many flows as pointers, all of one rate, and the load
    that Host DR's flows have.
    """
    pointers = pointers_of_agg(k) if core else expected_pointers_of_edge(k)
    return PeriodicFlows(pointers, pointers / host_dr_queue(k, core=core).load)


# Pointers and schedules (section 6, appendix F)


def most_pointers_of_edge(k: int) -> int:
    """Return the pointers per class of an edge, one for every other edge: 2,047 at k = 64 (section
    6).
    """
    return FatTree(k).edges - 1


def pointers_of_agg(k: int) -> int:
    """Return the pointers per class of an aggregation switch, one for every other pod: 63 at k = 64
    (section 6).
    """
    return k - 1


def expected_pointers_of_edge(k: int) -> float:
    """Return the expected distinct destination edges of an edge's k/2 flows, about k/2 - 1/4
    (appendix F).
    """
    bins = k * k / 2
    return float(bins * (1 - (1 - 1 / bins) ** (k / 2)))


def schedule_saving(k: int) -> float:
    """Return how many times fewer schedules an edge keeps when all edges of a pod share one, k/2
    (appendix F).
    """
    return FatTree(k).edges / k


def consolidation_gain(k: int) -> float:
    """Return k^2 / (4 (k - 1)): Host DR's flows at a destination aggregation switch over Ofan's, at
    least (appendix F).
    """
    return k * k / (4 * (k - 1))


# Packet size (theorem 4, appendix G) and reordering (section 7.2)


def optimal_payload_bytes(
    message: float, header: float = HEADER_BYTES, queueing: float = QUEUEING_PACKETS
) -> float:
    """Return the payload sqrt(D H / alpha) that minimises the completion time if queues are alpha
    packets (appendix G).
    """
    return sqrt(message * header / queueing)


def modelled_send_bytes(
    payload: float, message: float, header: float = HEADER_BYTES, queueing: float = QUEUEING_PACKETS
) -> float:
    """Return P (D / (P - H) + alpha): the bytes that a link passes while a message and alpha queued
    packets go through it.
    """
    return (payload + header) * (message / payload + queueing)


def optimal_payload_of_square_root_bytes(
    message: float, header: float = HEADER_BYTES, factor: float = 1
) -> float:
    """Return the best payload where queues are factor sqrt(m) packets, to first order: (2 H sqrt(D)
    / factor)^(2/3), D^(1/3).

    For P >> H the bytes are D H / p + factor sqrt(D p), p = P - H; the derivative is 0 where
    p^(3/2) = 2 H sqrt(D) / factor.
    """
    return float((2 * header * sqrt(message) / factor) ** (2 / 3))


def modelled_cct_ps(scenario: Scenario, payload: float) -> float:
    """Return the modelled completion time of a permutation: sending, alpha packets of queueing and
    the zero-load RTT (appendix G).

    `scenario` gives message, rate, latency, header and gap; theorem "packet size" neglects what of
    the RTT depends on the packet.
    """
    header = scenario.packets.header_bytes + scenario.packets.gap_bytes
    sent = modelled_send_bytes(payload, message_bytes(scenario), header)
    return sent * 8 * PS_PER_SECOND / scenario.rate_bps + scenario.zero_load_rtt_ps


def reordering_bound(queue_packets: float, rate_share: float) -> float:
    """Return 5 q r / b: how many packets of a flow of rate r can overtake one that meets five full
    queues of q packets.
    """
    return SWITCH_QUEUES * queue_packets * rate_share
