"""Sizes on the wire and the times that follow from them (simulator-model.md, "Model")."""

from fractions import Fraction
from math import floor

from fattree.experiment.model import Scenario
from tests.naive.schemes import SCHEMES
from tests.naive.tree import Tree

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_SECOND = 10**12
NEVER = 2**62
NSCC_ECN_PERCENT = 20
DCQCN_ECN_PERCENT = 12.5
DEFAULT_BUFFER_BYTES = 800_000


class Wire:
    """A scenario's packets and links of a level, in bytes and picoseconds.

    Levels are 0 at hosts, 1 between edges and aggs, 2 between aggs and cores.
    """

    def __init__(self, scenario: Scenario, level: int = 0, share: float = 1) -> None:
        self.scenario = scenario
        fabric = scenario.fabric
        packets = scenario.packets
        options = scenario.load_balancer
        is_wrapped = SCHEMES[scenario.policy].chooser in ("waypoint", "segments")
        tunnel = packets.tunnel_bytes if is_wrapped else 0

        tree = Tree.of(scenario)
        self.longest_path = tree.hops(
            0, tree.hosts - 1 if tree.cores_over_agg else tree.hosts_in_pod - 1
        )
        rates = (fabric.rate_gbps, fabric.edge_agg_gbps, fabric.agg_core_gbps)
        latencies = (
            fabric.latency_ns,
            fabric.edge_agg_latency_ns,
            fabric.agg_core_latency_ns,
        )
        full_bps = round((rates[level] or fabric.rate_gbps) * 10**9)
        # A slow link carries a share of its rate.
        self.rate_bps = max(1, round(Fraction(str(share)) * full_bps))
        self.latency_ps = round((latencies[level] or fabric.latency_ns) * PS_PER_NS)
        self.gap_bytes = packets.gap_bytes
        self.header_bytes = packets.header_bytes + tunnel
        self.data_bytes = self.size(packets.payload_bytes)
        self.ack_bytes = packets.ack_bytes + tunnel

        # An unlimited queue still has thresholds: those of the paper's 800 KB.
        self.queue_bytes = fabric.queue_bytes or NEVER
        self.buffer_bytes = fabric.threshold_bytes or fabric.queue_bytes or DEFAULT_BUFFER_BYTES
        congestion = scenario.transport.congestion
        default = {"nscc": NSCC_ECN_PERCENT, "dcqcn": DCQCN_ECN_PERCENT}.get(congestion, 0)
        percent = options.ecn_percent or SCHEMES[scenario.policy].ecn_percent or default
        limit = self.buffer_bytes * Fraction(str(percent)) / 100
        self.ecn_bytes = floor(limit) if percent else NEVER
        full = options.ecn_full_percent or (
            min(4 * percent, 100) if congestion == "dcqcn" else percent
        )
        # Above these all are marked; below, with a chance that grows in proportion.
        self.full_ecn_bytes = floor(self.buffer_bytes * Fraction(str(full)) / 100)
        self.ecn_chance = Fraction(str(options.ecn_chance))

    def size(self, payload: int) -> int:
        """Return the bytes of a data packet."""
        return payload + self.header_bytes

    def chance(self, waiting: int) -> int:
        """Return of 2**16 packets that find so much above the threshold how many are marked."""
        if waiting > self.full_ecn_bytes:
            return 2**16
        span = self.full_ecn_bytes - self.ecn_bytes
        return (waiting - self.ecn_bytes) * floor(self.ecn_chance * 2**32 / span) // 2**16

    def sending_ps(self, size: int) -> int:
        """Return how long a link is busy with so many bytes, rounded up."""
        bits = size * 8
        return -(-bits * PS_PER_SECOND // self.rate_bps)

    @property
    def data_slot_ps(self) -> int:
        return self.sending_ps(self.data_bytes + self.gap_bytes)

    @property
    def ack_slot_ps(self) -> int:
        return self.sending_ps(self.ack_bytes + self.gap_bytes)

    @property
    def zero_load_rtt_ps(self) -> int:
        """Return latency and transmission on the longest path, for a data packet and its ACK."""
        # A path goes up through the levels and down again.
        wires = [Wire(self.scenario, level) for level in range(self.longest_path // 2)]
        return 2 * sum(
            2 * wire.latency_ps + wire.sending_ps(wire.data_bytes) + wire.sending_ps(wire.ack_bytes)
            for wire in wires
        )
