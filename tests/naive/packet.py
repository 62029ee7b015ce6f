"""A packet without its size."""

from dataclasses import dataclass

DATA, ACK = 0, 1
Waypoint = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Packet:
    """`total`: how many packets of the flow the receiver has; `held`: with SACK, which.

    `waypoint`: Host DR's (agg position, core index). `trimmed`: data that a switch has cut to its
    headers, or its NACK. `asks`: data that ask for an ACK at once. `share`: how many flows share
    the link of an ACK's sender.
    """

    flow: int
    psn: int
    source: int
    destination: int
    kind: int
    label: int
    marked: bool = False
    total: int = 0
    held: frozenset[int] = frozenset()
    waypoint: Waypoint | None = None
    trimmed: bool = False
    asks: bool = True
    share: int = 1
