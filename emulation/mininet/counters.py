"""The counters of a Mininet network's switches, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortCounters:
    """What one port of a switch has counted since it started.

    `missed` were not taken from the kernel in time.
    """

    packets: int = 0
    bytes: int = 0
    drops: int = 0
    lost: int = 0
    missed: int = 0
    received: int = 0
    max_queue_bytes: int = 0
    queue_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchCounters:
    """The counters of a switch: per port, and the packets that its program dropped."""

    ports: dict[int, PortCounters]
    unrouted: int
