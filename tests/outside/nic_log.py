"""A log of the frames that hosts of the virtual network have sent and got, and its judge.

The judge shares no rule with the hosts: it knows the figures of the experiment (rate, sizes, when
flows begin) and the rules of a link. It does not know pacers, recoveries or queues of ACKs.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from fattree.demand.flows import Flows
from fattree.experiment.model import Scenario
from tests.python_network.fabric import PythonFabric

PS_A_BIT_AT_1_GBPS = 1000
FOR_EVER_PS = 1 << 60


class Sent(NamedTuple):
    """A frame that left a host: when, of which flow (-1: an ACK), and its bytes on the wire."""

    time_ps: int
    flow: int
    size: int

    @property
    def is_ack(self) -> bool:
        return self.flow < 0


@dataclass
class Log:
    """Departures and arrivals of data by host in their order, and bytes by their fate."""

    sent: defaultdict[int, list[Sent]] = field(default_factory=lambda: defaultdict(list))
    data_ps: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_dropped: int = 0


def flow_of(frame: bytes) -> int:
    """Return the flow of a data frame: its RoCEv2 destination QP, behind Ethernet, IPv4 and UDP."""
    return int.from_bytes(frame[14 + 20 + 8 + 5 : 14 + 20 + 8 + 8], "big")


def is_ack(frame: bytes) -> bool:
    """Tell an ACK by the BTH's opcode (17: reliable connection, acknowledge)."""
    return frame[14 + 20 + 8] == 17


def payload_of(frame: bytes) -> int:
    """Return the bytes that a data frame carries, by its IPv4 length: behind IPv4, UDP, BTH."""
    # Before the four bytes of the invariant CRC.
    return int.from_bytes(frame[14 + 2 : 14 + 4], "big") - 20 - 8 - 12 - 4


def size_of(scenario: Scenario, frame: bytes) -> int:
    """Return a frame's bytes on the wire, by the experiment's settings."""
    if is_ack(frame):
        return scenario.ack_bytes

    return scenario.packets.header_bytes + payload_of(frame)


def logged(scenario: Scenario) -> Log:
    """Run an experiment to its end, and on until nothing is under way any more."""
    fabric = PythonFabric(scenario)
    network, log = fabric.network, Log()
    receive, arrive = network.hosts.receive, network.hosts._arrive

    def received(host: int, time_ps: int, frame: bytes) -> None:
        log.bytes_out += size_of(scenario, frame)
        if not is_ack(frame):
            log.data_ps[host].append(time_ps)
        receive(host, time_ps, frame)

    def departed(host: int, time_ps: int, departure: object) -> None:
        frame = departure.frame  # type: ignore[attr-defined]
        size = size_of(scenario, frame)
        log.bytes_in += size
        log.sent[host].append(Sent(time_ps, -1 if is_ack(frame) else flow_of(frame), size))
        arrive(host, time_ps, departure)  # type: ignore[arg-type]

    def dropped(switch: int, port: int, size: int) -> None:
        log.bytes_dropped += size
        forget(switch, port, size)

    forget, network.on_drop = network.on_drop, dropped
    network.hosts.receive, network.hosts._arrive = received, departed  # type: ignore[method-assign]
    fabric.run()
    while network.advance(FOR_EVER_PS, 100_000):
        pass
    return log


def slot_ps(scenario: Scenario, size: int) -> int:
    """Return how long a packet keeps a host's link at its limited rate, with the gap behind it."""
    limit = Fraction(str(scenario.transport.rate_limit or 1))
    bits = 8 * (size + scenario.packets.gap_bytes)
    on_wire = ceil(Fraction(bits * PS_A_BIT_AT_1_GBPS, int(scenario.fabric.rate_gbps)))
    return ceil(on_wire / limit)


def faults(scenario: Scenario, flows: Flows, log: Log) -> list[str]:
    """Return events that links cannot have: too early, or idle while a packet could go."""
    # A flow's packets are as far apart as full packets, its last packet, too.
    apart_ps = slot_ps(scenario, scenario.data_bytes)
    complaints = []
    for host, sent in log.sent.items():
        free_ps, acks = 0, 0
        departures: defaultdict[int, list[int]] = defaultdict(list)
        own_flows = [flow for flow in range(len(flows)) if flows.source[flow] == host]
        for packet in sent:
            # Times from which a packet could go: the next ACK, or the next new packet of a flow.
            could = [
                max(
                    int(flows.start_ps[flow]),
                    departures[flow][-1] + apart_ps if departures[flow] else 0,
                )
                for flow in own_flows
                if len(departures[flow]) < flows.packets[flow]
            ]
            could += log.data_ps[host][acks : acks + 1]
            if packet.time_ps < free_ps:
                complaints.append(f"host {host}: {packet} before {free_ps}")
            if could and packet.time_ps > max(free_ps, min(could)):
                complaints.append(f"host {host}: idle from {max(free_ps, min(could))} to {packet}")

            free_ps = packet.time_ps + slot_ps(scenario, packet.size)
            acks += packet.is_ack
            if not packet.is_ack:
                departures[packet.flow].append(packet.time_ps)

    return complaints
