"""A packet."""

from dataclasses import dataclass

DATA, ACK = 0, 1
# IPv4's total length, in which an ACK has less and a data packet this much beside its payload: IPv4
# itself, UDP, BTH and ICRC.
SMALL_BELOW = 256
HEADERS = 20 + 8 + 12 + 4
Waypoint = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Packet:
    """`total`: how many packets of the flow the receiver has; `held`: with SACK, which.

    `waypoint`: Host DR's (agg position, core index). `trimmed`: data that a switch has cut to its
    headers, or its NACK. `asks`: data that ask for an ACK at once. `share`: how many flows share
    the link of an ACK's sender. `payload`: the bytes of the message that data carry.
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
    payload: int = 0

    @property
    def size_class(self) -> int:
        """Return its class for switches, which only look at its length: data or an ACK."""
        is_small = self.kind == ACK or self.payload + HEADERS < SMALL_BELOW
        return ACK if is_small else DATA
