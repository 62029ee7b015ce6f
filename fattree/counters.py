"""The table of all counters: records, frames, reports and kernels' arrays are made from it.

A new counter is a field of `Counts`, with its sentence, and of `SenderCounts` or `PortCounts`. Then
each network counts it in one place; all other code reads the name from this table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

# A number, or an array with a number for each flow, or for each port.
Count = TypeVar("Count")


class Counts(BaseModel):
    """The counters of a run, in the order of a record's columns.

    Counters count packets, except where the sentence is about how often, or the name has a unit.
    Counters with a default are missing in older records.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dropped: int
    """Packets dropped at a full queue, or because their switch had no port for them (`unroutable`).
    """
    marked: int
    """Packets that got an ECN mark."""
    lost_to_failure: int
    """Packets sent into a failed link or a dead switch, and packets lost by `failures.losses`."""
    transmissions: int
    """Data packets that hosts have sent, with repeated packets and extra symbols of erasure coding.
    """
    packet_hops: int
    """Packets sent over links, ACKs included: each packet counts once for every link."""
    redraws: int
    """How often random failed links were drawn again because flows would have had no path."""
    freezes: int = 0
    """How often flows of REPS froze: then they use only labels that worked."""
    returns: int = 0
    """How often senders of go-back-N went back to a missing packet (`transport.recovery`)."""
    trimmed: int = 0
    """Data packets cut to their headers at a full queue (`transport.trimming`)."""
    pauses: int = 0
    """How often switches have paused a link (`fabric.flow_control`)."""
    paused_ps: int = 0
    """The sum of the times for which switch ports were paused."""
    host_paused_ps: int = 0
    """The sum of the times for which hosts were paused."""
    victims: int = 0
    """Packets that a pause has held at a switch and that then met an empty queue at the next
    switch: other packets had caused the pause.
    """
    unroutable: int = 0
    """Packets of `dropped` whose switch had no port for them: no route, or no such slot in a
    schedule.
    """


@dataclass(frozen=True, slots=True, eq=False)
class SenderCounts(Generic[Count]):
    """The counters of a flow's sender."""

    transmissions: Count
    freezes: Count
    returns: Count


@dataclass(frozen=True, slots=True, eq=False)
class PortCounts(Generic[Count]):
    """The counters of a switch port, in the order of a frame's columns."""

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
    """Return the counters of `keeper`, by name."""
    return {name: getattr(keeper, name) for name in counters}


def total(counters: Iterable[str], keepers: Sequence[object]) -> dict[str, int]:
    """Return the sum of each counter over all keepers."""
    return {name: sum(getattr(keeper, name) for keeper in keepers) for name in counters}
