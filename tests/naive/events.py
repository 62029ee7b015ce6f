"""The kinds of events, in their order."""

from enum import IntEnum


class Kind(IntEnum):
    """The kinds of events, in their order at equal times; departures come before all of these."""

    LINKS = 0
    ROUTES = 1
    ARRIVE = 2
    SEND = 3
