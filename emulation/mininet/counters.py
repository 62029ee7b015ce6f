"""The counters of a Mininet network's switches, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortCounters:
    """The counters of one port since its switch started.

    `missed` were not taken from the kernel in time; the switch `failed` to send others, and the
    kernel `refused` some, for links that are down or lose them, which it counts from the network's
    beginning. Some switches do not report their longest queue.

    Control frames are in none of these: only the kernel counts them among all others.
    """

    packets: int = 0
    bytes: int = 0
    drops: int = 0
    failed: int = 0
    refused: int = 0
    missed: int = 0
    received: int = 0
    max_queue_bytes: int | None = None
    queue_bytes: int = 0
    pauses: int = 0
    paused_ps: int = 0
    control_sent: int = 0
    control_received: int = 0
    control_refused: int = 0

    @property
    def arrived(self) -> int:
        """Return how many packets have come to it, taken from the kernel or not."""
        return self.received + self.missed

    @property
    def lost(self) -> int:
        """Return how many packets have been lost on the link."""
        return self.failed + self.uncarried

    @property
    def uncarried(self) -> int:
        """Return how many packets the kernel has refused: control frames are none."""
        return self.refused - self.control_refused


@dataclass(frozen=True, slots=True)
class SwitchCounters:
    """The counters of a switch: per port, and the packets that its program dropped.

    `strays` are lines about accesses beyond the end of arrays, where switches count them.
    `controlled` is the number of packets that the controller has sent through the switch, less
    those that it has got from it.

    The kernel counts packets that have `arrived` at the switch's interfaces and `left` them, also
    while its process is frozen or dead; each start of the process begins another `life`. Where the
    switch `is_silent`, its own counters are those of its last report.
    """

    ports: dict[int, PortCounters]
    unrouted: int
    controlled: int = 0
    arrived: int = 0
    left: int = 0
    life: int = 0
    is_silent: bool = False
    strays: tuple[str, ...] = ()

    @property
    def gone(self) -> int:
        """Return the number of packets that the switch has dropped by its own counters."""
        return self.unrouted + sum(
            port.drops + port.missed + port.failed for port in self.ports.values()
        )

    @property
    def refused(self) -> int:
        """Return how many packets the kernel has not carried away from it."""
        return sum(port.uncarried for port in self.ports.values())
