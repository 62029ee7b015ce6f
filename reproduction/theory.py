"""The paper's closed forms, to be drawn over simulations and tested against brute force.

Times are integer picoseconds, queues are in data packets, k is the fat-tree's parameter and n its
k**3 / 4 hosts. Each function names the theorem or the appendix that it is taken from. Where the
paper prints no formula (N D/D/1, appendix E) we use Roberts' exact tail, and beside it the Gaussian
bridge, which is our reading of its "truncated normal".
"""

from dataclasses import dataclass
from math import ceil, comb, erfc, exp, floor, pi, prod, sqrt

from fattree.demand.bounds import Timing, ack_times_ps, data_only_packets
from fattree.demand.traffic import message_bytes, packet_count
from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_SECOND

# Appendix G: headers with the gap between packets (62 + 20), and alpha.
HEADER_BYTES = 82
QUEUEING_PACKETS = 10
# Section 8.2: a path through the core meets five output queues of switches.
SWITCH_QUEUES = 5


# Bounds of the completion time (appendix B)


def packets_of(scenario: Scenario) -> int:
    """Return m, the data packets of a message."""
    return packet_count(scenario, message_bytes(scenario))


def permutation_bound_ps(scenario: Scenario, packets: int | None = None) -> int:
    """Return appendix B's lower bound of a permutation: 17,056,940 ps for 256 packets.

    `packets` are by default the scenario's.
    """
    return ack_times_ps(Timing.of(scenario), packets or packets_of(scenario))[-1]


def last_interleaved_ack(timing: Timing, packets: int) -> int:
    """Return i_2 = m - i_1 + 1, the ACK after which hosts send ACKs only: 179 of 256.

    Appendix B, mode 3.
    """
    return packets - data_only_packets(timing) + 1


def sent_ps(timing: Timing, packets: int) -> int:
    """Return when the last bit of a host's data packet number `packets` has left (appendix B)."""
    # Mode 1, one after the other, for the first i_1; in mode 2 an ACK goes between any two.
    alone = min(packets, data_only_packets(timing))
    return (
        timing.data_ps
        + (alone - 1) * timing.data_slot_ps
        + (packets - alone) * (timing.data_slot_ps + timing.ack_slot_ps)
    )


# Synchronised pairs of flows (theorem 1, appendix C)


def northbound_probability(k: int) -> float:
    """Return the probability that no flow of an edge stays under it, in a random permutation.

    P_northbound of appendix C, property 1.
    """
    # Flow i chooses among n - 1 - i ends, and n - k/2 - i of them are outside if those before it
    # went outside too.
    hosts = FatTree(k).hosts
    half = k // 2
    return prod((hosts - half - i) / (hosts - 1 - i) for i in range(half))


def hotspot_probability(k: int) -> float:
    """Return the probability that all flows of an edge go to one other edge.

    P_hotspot of appendix C, property 1.
    """
    # The first flow chooses the edge, the others meet there: k/2 - i of its hosts are left.
    hosts = FatTree(k).hosts
    half = k // 2
    return (hosts - half) / (hosts - 1) * prod((half - i) / (hosts - 1 - i) for i in range(1, half))


def red_probability(k: int) -> float:
    """Return the probability that an edge is red: its flows leave it, not all to the same edge.

    P_Red of appendix C: a hotspot is northbound, so the difference remains.
    """
    return northbound_probability(k) - hotspot_probability(k)


def safe_probability(k: int, gap_share: float) -> float:
    """Return the probability that no neighbour sends in a flow's critical window.

    P_safe of appendix C, property 2: T_IPG before and after, for each of k/2 - 1 neighbours.
    `gap_share` is T_IPG / T_SERVICE, the inter-packet gap as a part of a packet's slot.
    """
    return float((1 - 2 * gap_share) ** (k // 2 - 1))


def collision_probability(k: int, gap_share: float | None = None) -> float:
    """Return the probability that two given flows collide on an aggregation-edge link.

    P_collision of appendix C. With JSQ both must be safe, so `gap_share` is given; without it this
    is Simple RR's.
    """
    hosts = FatTree(k).hosts
    half = k // 2
    safe = 1.0 if gap_share is None else safe_probability(k, gap_share)
    # Properties 3 and 4: the same agg position on the way up, which is the one on the way down
    # (there is one way from a core to a pod), and another host below the same edge.
    same_agg = 1 / half
    same_destination = (half - 1) / (hosts - 1 - half)

    return red_probability(k) ** 2 * safe**2 * same_agg * same_destination


def expected_pairs(k: int, gap_share: float | None = None, *, same_edge: bool = True) -> float:
    """Return the expected number of synchronised pairs: all pairs times their probability.

    Appendix C counts all n (n - 1) / 2 pairs; without `same_edge`, only those of flows that begin
    at different edges, since two of one edge never share an uplink.
    """
    hosts = FatTree(k).hosts
    half = k // 2
    partners = hosts - 1 if same_edge else hosts - half

    return hosts * partners / 2 * collision_probability(k, gap_share)


def any_pair_probability(k: int, gap_share: float | None = None) -> float:
    """Return the probability of at least one pair if pairs were independent and rare.

    1 - exp(-expected pairs), Poisson's.
    """
    return 1 - exp(-expected_pairs(k, gap_share))


def no_internal_traffic_bound(k: int) -> float:
    """Return the lower bound 1 - (k - 2)/(k^2 - 2) of `northbound_probability` (appendix D)."""
    return 1 - (k - 2) / (k * k - 2)


# Random spraying (theorem 2, appendix D)


def random_queue_packets(k: int, packets: float) -> float:
    """Return Q(m) = sqrt(1 - 2/k) sqrt(2 m / pi): an uplink's queue when packet m arrives.

    In every packet time an edge's k/2 hosts send a packet each, to a random uplink of k/2, and a
    packet leaves it: a random walk of variance 1 - 2/k that cannot pass below 0 (appendix D).
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
        # Expected numbers of flows are not whole (appendices E and F), but the exact tail asks for
        # whole ones. At full load one more would be too many, so its period grows with it.
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
        """Return the mean number of packets that wait or are being sent.

        They are the work rounded up; their mean is the sum of P(V > i) over i = 0, 1, ...
        """
        return sum(self.tail(i) for i in range(ceil(self.flows) + 1))

    def bridge_mean_packets(self) -> float:
        """Return the Gaussian bridge's mean number of packets.

        Its mean work, the integral of P(V > x) = exp(-2 x (x / N + 1 - rho)), and half a packet
        while a packet is being sent.
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
    # P(V > 0) is the load; the sum is for x > 0.
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
    """Return the expected flows that leave an edge in a random permutation (appendix E).

    k/2 (1 - (k/2 - 1)/(n - 1)).
    """
    hosts = FatTree(k).hosts
    half = k // 2
    return half * (1 - (half - 1) / (hosts - 1))


def northbound_flows_of_pod(k: int) -> float:
    """Return the expected flows that leave a pod in a random permutation (appendix E).

    (k/2)^2 (1 - ((k/2)^2 - 1)/(n - 1)).
    """
    hosts = FatTree(k).hosts
    local = (k // 2) ** 2
    return local * (1 - (local - 1) / (hosts - 1))


def host_dr_queue(k: int, *, core: bool) -> PeriodicFlows:
    """Return Host DR's model (appendix E): flows of an edge at E>A and A>E, of a pod at the core.

    Each spreads over all uplinks in rotation, so a link sees every (k/2)-th packet of an edge's
    flows, every (k/2)^2-th of a pod's.
    """
    half = k // 2
    return (
        PeriodicFlows(northbound_flows_of_pod(k), half**2)
        if core
        else PeriodicFlows(northbound_flows_of_edge(k), half)
    )


def ofan_queue(k: int, *, core: bool) -> PeriodicFlows:
    """Return Ofan's model (appendix F): as many flows as pointers, and the load of Host DR's."""
    # Pointers carry equally much, so their rate is the load over their number.
    pointers = pointers_of_agg(k) if core else expected_pointers_of_edge(k)
    return PeriodicFlows(pointers, pointers / host_dr_queue(k, core=core).load)


# Pointers and schedules (section 7, appendix F)


def most_pointers_of_edge(k: int) -> int:
    """Return an edge's pointers per class, one pointer for every other edge: 2,047 at k = 64.

    Section 7, "2K pointers".
    """
    return FatTree(k).edges - 1


def pointers_of_agg(k: int) -> int:
    """Return an agg's pointers per class, one pointer for every other pod: 63 at k = 64."""
    return k - 1


def expected_pointers_of_edge(k: int) -> float:
    """Return the expected distinct destination edges of an edge's k/2 flows, about k/2 - 1/4.

    Appendix F: k/2 balls in k^2/2 bins.
    """
    bins = k * k / 2
    return float(bins * (1 - (1 - 1 / bins) ** (k / 2)))


def schedule_saving(k: int) -> float:
    """Return how many times fewer schedules an edge keeps when all edges of a pod share a schedule.

    k/2, appendix F.
    """
    return FatTree(k).edges / k


def consolidation_gain(k: int) -> float:
    """Return how many more flows Host DR has at a destination agg than Ofan, at least (appendix F).

    k^2 / (4 (k - 1)): a flow for each host of the pod instead of a flow for each other agg.
    """
    return k * k / (4 * (k - 1))


# Packet size (theorem 5, appendix G) and reordering (section 8.2)


def optimal_payload_bytes(
    message: float, header: float = HEADER_BYTES, queueing: float = QUEUEING_PACKETS
) -> float:
    """Return sqrt(D H / alpha), the best payload if queues are alpha packets (appendix G)."""
    return sqrt(message * header / queueing)


def modelled_send_bytes(
    payload: float, message: float, header: float = HEADER_BYTES, queueing: float = QUEUEING_PACKETS
) -> float:
    """Return the bytes that a link passes for a message and alpha queued packets (appendix G).

    P (D / (P - H) + alpha), with the payload P - H.
    """
    return (payload + header) * (message / payload + queueing)


def modelled_cct_ps(scenario: Scenario, payload: float) -> float:
    """Return the modelled completion time of a permutation (appendix G).

    Sending, alpha packets of queueing and the zero-load RTT. `scenario` gives message, rate,
    latency, header and gap; theorem "packet size" neglects the RTT's dependence on the packet.
    """
    header = scenario.packets.header_bytes + scenario.packets.gap_bytes
    sent = modelled_send_bytes(payload, message_bytes(scenario), header)
    return sent * 8 * PS_PER_SECOND / scenario.rate_bps + scenario.zero_load_rtt_ps


def reordering_bound(queue_packets: float, rate_share: float) -> float:
    """Return how many packets of a flow can overtake a packet in five full queues (section 8.2).

    5 q r / b, with queues of q packets and a flow of the share r / b of the rate.
    """
    return SWITCH_QUEUES * queue_packets * rate_share
