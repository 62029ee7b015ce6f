"""A switch of the virtual network: its interface, and the source of its random numbers."""

from typing import Protocol

from fattree.draws import Stream, component, mix
from ofan_p4.softswitch.control.switch import Pending, Transmit


class Node(Protocol):
    """The interface of a switch (`softswitch.control.switch.Switch`)."""

    def ingress(self, port: int, frame: bytes, length: int | None = None) -> list[Pending]:
        """Process a frame up to the queues."""

    def egress(
        self, pending: Pending, deq_qdepth: int = 0, deq_timedelta_us: int = 0
    ) -> list[Transmit]:
        """Process a copy that has left its queue."""

    @property
    def misdirected(self) -> tuple[int, int]:
        """Return how many packets were for ports that do not exist, and the highest of these."""


class SwitchDraws:
    """A switch's random source: draw n is `mix(seed, switch's component, n)`, scaled."""

    def __init__(self, seed: int, switch: int) -> None:
        self._seed = seed
        self._component = component(Stream.SWITCH, switch)
        self._count = 0

    def __call__(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        draw = int(mix(self._seed, self._component, self._count))
        self._count += 1

        # By multiplication, as the P4 programs scale their draws: no remainder is favoured.
        return low + (draw * (high - low + 1) >> 32)
