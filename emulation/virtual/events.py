"""Virtual time, and the order of events at equal times."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol, TypeAlias


class Kind(IntEnum):
    """The kinds of events, in their order at equal times (design, decision 8)."""

    # Packets that leave at an instant make room for packets that arrive at it. A link that fails
    # at an instant loses packets that start then, new routes hold for packets that arrive then, and
    # hosts come last, when they have heard everything. A pause holds for packets that begin after
    # it has come; where switches pause links, pauses are renewed, end by themselves and trip
    # watchdogs when packets have left.
    LEAVE = 0
    RENEW = 1
    TURN = 2
    TRIP = 3
    LINK = 4
    CONTROL = 5
    ARRIVE = 6
    SEND = 7
    HEED = 8


# As plain numbers: the heap compares them all the time, and members of an IntEnum are slower.
LEAVE, RENEW, TURN, TRIP, LINK, CONTROL, ARRIVE, SEND, HEED = map(int, Kind)

# (time, kind, node, port, sequence number, payload). No two events share a sequence number, so that
# payloads are never compared, and events that are equal otherwise happen in order of scheduling.
Event: TypeAlias = tuple[int, int, int, int, int, Any]


class Push(Protocol):
    """A function that schedules events."""

    def __call__(self, time_ps: int, kind: int, node: int, port: int, payload: Any) -> None:
        """Schedule an event."""


# Schedules an action: a link event or an act of the controller.
At: TypeAlias = Callable[[int, Kind, Callable[[], object]], None]


class Clock:
    """Virtual time."""

    __slots__ = ("now_ps",)

    def __init__(self) -> None:
        self.now_ps = 0

    def __call__(self) -> int:
        """Return the time in picoseconds."""
        return self.now_ps
