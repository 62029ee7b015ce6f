"""What runs count: one table, from which records, frames, reports and kernels' arrays are made.

A new counter is a field of `Counts`, with its sentence, and of who keeps it: `SenderCounts` or
`PortCounts`. Then each network counts it in one place, and all else takes it from here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

# A number, or an array of them: one for each flow, or for each port.
Count = TypeVar("Count")


class Counts(BaseModel):
    """What a run has counted, in the order of a record's columns.

    Counters count packets, but for those whose sentence says how often something was. A counter
    with a default is younger than some of the records that people keep.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dropped: int
    """Packets that found a queue full, or no port to go to (`unroutable`)."""
    marked: int
    """Packets that got an ECN mark."""
    lost_to_failure: int
    """Packets that went into a failed link or a dead switch, or that `failures.losses` took."""
    transmissions: int
    """Data packets that hosts have sent, those sent again and further symbols of erasure coding
    included.
    """
    packet_hops: int
    """Packets put on links, ACKs included: each counts once for every link."""
    redraws: int
    """How often links that fail at random were drawn anew because they would have cut flows off."""
    freezes: int = 0
    """How often flows of REPS froze: from then on they take labels that worked."""
    returns: int = 0
    """How often senders of go-back-N went back to a missing packet (`transport.recovery`)."""
    trimmed: int = 0
    """Data packets that found a queue full and were cut to their headers (`transport.trimming`)."""
    pauses: int = 0
    """How often switches have paused a link (`fabric.flow_control`)."""
    paused_ps: int = 0
    """How long ports of switches were paused, all together."""
    host_paused_ps: int = 0
    """How long hosts were paused, all together."""
    victims: int = 0
    """Packets that a pause has held at a switch and that then found nothing before them at the next
    one: the pause was for others.
    """
    unroutable: int = 0
    """Of the `dropped`, packets for which their switch had no port: no route, or no such slot in a
    schedule.
    """


@dataclass(frozen=True, slots=True, eq=False)
class SenderCounts(Generic[Count]):
    """What the sender of a flow counts."""

    transmissions: Count
    freezes: Count
    returns: Count


@dataclass(frozen=True, slots=True, eq=False)
class PortCounts(Generic[Count]):
    """What a switch port counts, in the order of a frame's columns."""

    dropped: Count
    trimmed: Count
    marked: Count
    lost_to_failure: Count
    pauses: Count
    paused_ps: Count
    victims: Count


SENDER_COUNTERS = tuple(field.name for field in fields(SenderCounts))
PORT_COUNTERS = tuple(field.name for field in fields(PortCounts))


def kept(counters: Iterable[str], keeper: object) -> dict[str, Any]:
    """Return counters by name, as `keeper` has them."""
    return {name: getattr(keeper, name) for name in counters}


def total(counters: Iterable[str], keepers: Sequence[object]) -> dict[str, int]:
    """Return the sum of each counter over all who keep it."""
    return {name: sum(getattr(keeper, name) for keeper in keepers) for name in counters}
