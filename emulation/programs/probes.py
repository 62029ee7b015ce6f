"""The probes of programs: small packets that edges send to each other at an interval.

A probe enters its edge's ingress as a packet-out for the CPU port, so that the program's load
balancer chooses its port (p4src/include/probes.p4). In virtual time that is an event; on real
switches the controller sends packet-outs.
"""

from typing import NamedTuple

from emulation.errors import UnsupportedError
from emulation.programs.switch_program import CPU_PORT, SwitchProgram
from fattree.experiment.model import Scenario
from fattree.routes.standstill import Patience
from fattree.shape.addressing import host_ip
from fattree.shape.topology import FatTree, Level
from fattree.units import PS_PER_SECOND, PS_PER_US
from hostagent.forms import put_checksum
from hostagent.own_packet import scenario_packets
from hostagent.transports.roce import IPV4
from hostagent.transports.state import NEVER

ETHERNET = 14
# RFC 3692: for experimentation and testing.
PROTOCOL = 253
HOPS = 64
PACKET_OUT = (CPU_PORT << 7).to_bytes(2, "big")
# Probes of so many intervals may be lost before a program knows a path.
NEWS_INTERVALS = 3
# Of an edge's uplinks, the share that its probes may take at most.
MOST_PROBE_SHARE = 0.1


class Timer(NamedTuple):
    """The times of probes: `turns` an interval, in each of which an edge sends one probe."""

    interval_ps: int
    turns: int

    def due_ps(self, number: int) -> int:
        """Return the time of a turn, counted from 0 and beyond the first interval."""
        return number * self.interval_ps // self.turns if self.turns else NEVER


def timer_of(scenario: Scenario, program: SwitchProgram) -> Timer | None:
    """Return the timer of a program's probes, None without probes."""
    interval_us = program.probe_interval_us
    return Timer(interval_us * PS_PER_US, peers(scenario.tree)) if interval_us else None


def with_news(patience: Patience, timer: Timer | None) -> Patience:
    """Return the patience with runs of which a program's probes may change the paths."""
    if timer is None:
        return patience

    return patience._replace(wait_ps=patience.wait_ps + NEWS_INTERVALS * timer.interval_ps)


def peers(tree: FatTree) -> int:
    """Return how many other edges an edge can reach: those of its plane."""
    return tree.edges // tree.planes - 1


def destination(tree: FatTree, edge: int, turn: int) -> int:
    """Return the edge to which an edge sends the probe of a turn."""
    edges = peers(tree) + 1
    number = edge % edges
    return edge - number + (number + 1 + turn) % edges


def blank_frame(scenario: Scenario) -> bytes:
    """Return the frame of probes, as long as ACKs, without addresses and checksum.

    The controller's header is in front.
    """
    length = len(scenario_packets(scenario).forms.ack.template)
    ipv4 = bytearray(IPV4)
    ipv4[0] = 0x45
    ipv4[2:4] = (length - ETHERNET).to_bytes(2, "big")
    ipv4[8:10] = HOPS, PROTOCOL
    ethernet = bytes(ETHERNET - 2) + (0x0800).to_bytes(2, "big")
    return PACKET_OUT + (ethernet + bytes(ipv4)).ljust(length, b"\0")


def frame(scenario: Scenario, source: int, target: int) -> bytes:
    """Return the frame of a probe from one edge to another: between their first hosts' addresses.

    The controller's header is in front.
    """
    tree = scenario.tree
    packet = bytearray(blank_frame(scenario))
    begin = len(PACKET_OUT) + ETHERNET
    packet[begin + 12 : begin + 16] = _address(tree, source)
    packet[begin + 16 : begin + 20] = _address(tree, target)
    put_checksum(packet, begin)
    return bytes(packet)


def _address(tree: FatTree, edge: int) -> bytes:
    """Return the IPv4 address of an edge's first host."""
    return int(host_ip(tree, edge * tree.hosts_per_edge)).to_bytes(4, "big")


def refuse_probe_storm(scenario: Scenario, program: SwitchProgram) -> None:
    """Raise UnsupportedError where probes take too much of the links, or no edge has another."""
    timer = timer_of(scenario, program)
    if timer is None:
        return

    tree = scenario.tree
    size = scenario.ack_bytes + program.edge_header_bytes + scenario.packets.gap_bytes
    bits = timer.turns * size * 8
    most_bps = MOST_PROBE_SHARE * tree.edge_uplinks * scenario.link_bps(Level.EDGE_AGG)
    least_us = -(-bits * PS_PER_SECOND // (round(most_bps) * PS_PER_US))
    if timer.interval_ps < least_us * PS_PER_US:
        share = bits * PS_PER_SECOND / timer.interval_ps / most_bps * MOST_PROBE_SHARE
        raise UnsupportedError(
            f"PROBE_INTERVAL_US = {timer.interval_ps // PS_PER_US}: an edge's probes to"
            f" {timer.turns} others take {100 * share:.3g} % of its uplinks, and may take"
            f" {100 * MOST_PROBE_SHARE:g} %: at least -D PROBE_INTERVAL_US={least_us}"
        )
