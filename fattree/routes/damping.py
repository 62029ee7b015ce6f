"""Flap damping: a link that comes and goes too often counts as failed until it has been quiet.

Every failure costs a link a penalty of 1, which halves every half-life. Above `suppress` the link
is left out although it may be up; below `reuse` it is used again as soon as it is up. The idea is
that of RFC 2439; as there, a ceiling bounds how long a link that has become quiet must wait:
CEILING times `suppress`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, log2

from fattree.experiment.failures import DAMPING_REUSE, DAMPING_SUPPRESS
from fattree.experiment.model import Controller
from fattree.units import PS_PER_US

CEILING = 4
Links = frozenset[int]


@dataclass(slots=True)
class Flaps:
    """A link's penalty at an instant."""

    penalty: float
    at_ps: int
    is_suppressed: bool = False


class Damping:
    """Follower of links that go down and up; returns those that count as failed.

    Times never run backwards.
    """

    def __init__(
        self, half_life_ps: int, suppress: float, reuse: float, down: Iterable[int] = ()
    ) -> None:
        self._half_life_ps = half_life_ps
        self._suppress = suppress
        self._reuse = reuse
        self._down = frozenset(down)
        self._flaps: dict[int, Flaps] = {}

    @property
    def suppressed(self) -> Links:
        """Return the links that are left out because they flap."""
        return frozenset(link for link, flaps in self._flaps.items() if flaps.is_suppressed)

    @property
    def longest_ps(self) -> int:
        """Return for how long a link that has become quiet is left out at most."""
        return ceil(self._half_life_ps * log2(CEILING * self._suppress / self._reuse))

    @property
    def next_release_ps(self) -> int | None:
        """Return when the next suppressed link will have been quiet for long enough."""
        return min(
            (self._released_ps(flaps) for flaps in self._flaps.values() if flaps.is_suppressed),
            default=None,
        )

    def on_change(self, now_ps: int, down: Links, up: Links) -> Links:
        """Take note of links that go down and up; return those that count as failed from now on."""
        # Only a link that was up can fail: a failure that is reported twice counts once.
        for link in down - self._down:
            self._count(now_ps, link)

        self._down = self._down - up | down
        return self.release(now_ps)

    def release(self, now_ps: int) -> Links:
        """Release links that have been quiet for long enough.

        Return the links that count as failed from now on.
        """
        for flaps in self._flaps.values():
            flaps.is_suppressed = flaps.is_suppressed and now_ps < self._released_ps(flaps)

        # A link that has been quiet may still be down: then it is its failure that counts.
        return self._down | self.suppressed

    def _count(self, now_ps: int, link: int) -> None:
        flaps = self._flaps.setdefault(link, Flaps(0, now_ps))
        # The old penalty has decayed until now; the ceiling bounds the cost of a storm of flaps.
        penalty = 1 + flaps.penalty * 0.5 ** ((now_ps - flaps.at_ps) / self._half_life_ps)
        flaps.penalty = min(penalty, CEILING * self._suppress)
        flaps.at_ps = now_ps
        flaps.is_suppressed = flaps.is_suppressed or flaps.penalty > self._suppress

    def _released_ps(self, flaps: Flaps) -> int:
        # penalty x 2^(-t / half-life) = reuse, solved for t; rounded up, so that a timer set for it
        # finds the link released.
        return flaps.at_ps + max(0, ceil(self._half_life_ps * log2(flaps.penalty / self._reuse)))


def damping(settings: Controller, down: Iterable[int] = ()) -> Damping | None:
    """Return the damping that the settings ask for; None where they do not."""
    if settings.damping_half_life_us is None:
        return None

    half_life_ps = max(1, round(settings.damping_half_life_us * PS_PER_US))
    return Damping(
        half_life_ps,
        settings.damping_suppress or DAMPING_SUPPRESS,
        settings.damping_reuse or DAMPING_REUSE,
        down,
    )
