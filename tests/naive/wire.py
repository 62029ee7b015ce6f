"""Sizes on the wire and the times that follow from them (simulator-model.md, "Model")."""

from fractions import Fraction
from math import floor

from fattree.experiment import Scenario
from tests.naive.schemes import SCHEMES

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_SECOND = 10**12
NEVER = 2**62
DEFAULT_BUFFER_BYTES = 800_000


class Wire:
    """What a scenario says of links and packets, in bytes and picoseconds."""

    def __init__(self, scenario: Scenario) -> None:
        fabric = scenario.fabric
        packets = scenario.packets
        options = scenario.load_balancer
        tunnel = packets.tunnel_bytes if scenario.policy == "host_dr" else 0

        self.rate_bps = round(fabric.rate_gbps * 10**9)
        self.latency_ps = round(fabric.latency_ns * PS_PER_NS)
        self.gap_bytes = packets.gap_bytes
        self.data_bytes = packets.payload_bytes + packets.header_bytes + tunnel
        self.ack_bytes = packets.ack_bytes + tunnel

        # An unlimited queue still has thresholds: those of the paper's 800 KB.
        self.queue_bytes = fabric.queue_bytes or NEVER
        self.buffer_bytes = fabric.threshold_bytes or fabric.queue_bytes or DEFAULT_BUFFER_BYTES
        percent = options.ecn_percent or SCHEMES[scenario.policy].ecn_percent
        share = Fraction(str(percent)) / 100
        self.ecn_bytes = floor(self.buffer_bytes * share) if percent else NEVER

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
        """Return six links' latency and transmission, for a data packet and for its ACK."""
        one_link = 2 * self.latency_ps + self.sending_ps(self.data_bytes)
        return 6 * (one_link + self.sending_ps(self.ack_bytes))
