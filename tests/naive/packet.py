"""A packet, as far as anything but its size is concerned."""

from dataclasses import dataclass

DATA, ACK = 0, 1
Waypoint = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Packet:
    """`total`: how many packets of the flow the receiver has; `held`: with SACK, which.

    `waypoint`: Host DR's (agg position, core index). `trimmed`: data that a switch has cut to its
    headers, or the ACK that tells of it, a NACK. `asks`: data that want their ACK at once. `share`:
    among how many flows the link of an ACK's sender is shared.
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
