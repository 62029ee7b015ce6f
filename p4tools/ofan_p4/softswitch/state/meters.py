"""Two-rate three-colour meters (RFC 2698), in picoseconds and integer tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.softswitch.base.units import PS_PER_SECOND

GREEN = 0
YELLOW = 1
RED = 2


@dataclass(frozen=True, slots=True)
class Rates:
    """Committed and peak rate (units per second) and burst (units).

    A unit is a packet or a byte.
    """

    cir: int
    cburst: int
    pir: int
    pburst: int


class Bucket:
    """A token bucket; tokens are counted in units x 10^12, so that refilling loses nothing."""

    __slots__ = ("_burst", "_last_ps", "_rate", "_tokens")

    def __init__(self, rate: int, burst: int) -> None:
        self._rate = rate
        self._burst = self._tokens = burst * PS_PER_SECOND
        self._last_ps: int | None = None

    def has(self, now_ps: int, units: int) -> bool:
        """Refill up to now and return whether so many tokens are there."""
        # Integer picoseconds times units per second: no rounding, however often it is refilled.
        if self._last_ps is not None and now_ps > self._last_ps:
            self._tokens = min(self._burst, self._tokens + (now_ps - self._last_ps) * self._rate)

        self._last_ps = now_ps
        return self._tokens >= units * PS_PER_SECOND

    def take(self, units: int) -> None:
        """Remove tokens that `has` has seen."""
        self._tokens -= units * PS_PER_SECOND


class Meter:
    """One cell: GREEN until it is configured."""

    __slots__ = ("_committed", "_peak", "by_bytes", "colors", "rates")

    def __init__(self, by_bytes: bool) -> None:
        self.by_bytes = by_bytes
        self.configure(None)
        self.clear()

    def clear(self) -> None:
        """Set the (packets, bytes) of every colour to 0."""
        self.colors = [[0, 0], [0, 0], [0, 0]]

    def configure(self, rates: Rates | None) -> None:
        """Set the rates, with full buckets; None switches the meter off."""
        self.rates = rates
        self._committed = Bucket(rates.cir, rates.cburst) if rates else None
        self._peak = Bucket(rates.pir, rates.pburst) if rates else None

    def execute(self, now_ps: int, length: int) -> int:
        """Return the colour of a packet of `length` bytes and count it under that colour."""
        color = self._color(now_ps, length if self.by_bytes else 1)
        count = self.colors[color]
        count[0] += 1
        count[1] += length

        return color

    def _color(self, now_ps: int, units: int) -> int:
        if self._committed is None or self._peak is None:
            return GREEN

        in_profile = self._committed.has(now_ps, units)
        if not self._peak.has(now_ps, units):
            return RED

        # RFC 2698, colour-blind: red takes no tokens, yellow from the peak bucket only, green from
        # both.
        self._peak.take(units)
        if not in_profile:
            return YELLOW

        self._committed.take(units)
        return GREEN
