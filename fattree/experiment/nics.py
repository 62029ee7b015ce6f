"""The NICs of hosts: the time that a packet occupies a NIC, and its rate of data."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from fattree.experiment.model import Scenario

LINE_RATE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Nic:
    """The paces of a host's NIC, for packets of all flows; in ps, from start to start.

    `data_ps` and `ack_ps` are how long a data packet of some size and an ACK keep the NIC,
    `between_ps` lies at least between that data packet and the next.
    """

    data_ps: int
    ack_ps: int
    between_ps: int


def nic(scenario: Scenario, rho: Fraction = LINE_RATE, payload: int | None = None) -> Nic:
    """Return the paces of NICs: line rate x `rate_limit`, and data at rate `rho`.

    Data packets have `payload` bytes, a full packet's by default.
    """
    limit = Fraction(str(scenario.transport.rate_limit or 1))
    size = scenario.data_bytes if payload is None else scenario.packet_bytes(payload)
    # Where shares are for life the flows' own gaps keep the rate of data.
    data = data_slot(scenario, rho if scenario.is_shared_actively else LINE_RATE, size)
    return Nic(
        data_ps=ceil(scenario.tx_ps(size + scenario.packets.gap_bytes) / limit),
        ack_ps=ceil(scenario.ack_slot_ps / limit),
        between_ps=ceil(data),
    )


def data_slot(scenario: Scenario, rho: Fraction, size: int) -> Fraction:
    """Return the time from a data packet's start to the next at a host that sends at rate `rho`.

    Below line rate the bottleneck also carries ACKs, so that a slot is (T'_d + T'_a) / rho (load
    balancers, "Hosts").
    """
    own_ps = scenario.tx_ps(size + scenario.packets.gap_bytes)
    slot = Fraction(own_ps if rho >= 1 else own_ps + scenario.ack_slot_ps)
    # In fractions, which callers round up: a rate of 1/3 has no exact double, and a gap that is too
    # short by a picosecond would overload the link that rho was found for.
    return slot / (min(rho, LINE_RATE) * Fraction(str(scenario.transport.rate_limit or 1)))
