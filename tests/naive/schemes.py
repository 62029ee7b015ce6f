"""The table of load-balancers.md: each load balancer at switches and at hosts."""

from dataclasses import dataclass
from typing import Literal

Chooser = Literal[
    "hash",
    "round robin",
    "reshuffled",
    "bins",
    "shortest",
    "random",
    "waypoint",
    "rotation",
    "rotation from the shortest",
    "number",
    "segments",
]
Labels = Literal["fixed", "fresh", "plb", "reps", "bitmap", "mrc"]


@dataclass(frozen=True)
class Scheme:
    """One row of the table."""

    chooser: Chooser
    labels: Labels = "fixed"
    subflows: int = 1
    ecn_percent: int = 0
    weighted: bool = True
    shuffled: bool = True

    @property
    def rotates(self) -> bool:
        """Whether pointers belong to destinations; else they belong to next-hop sets."""
        return self.chooser in ("rotation", "rotation from the shortest")


SCHEMES = {
    "flow": Scheme("hash"),
    "subflow": Scheme("hash", subflows=4),
    "host_flowlet_ar": Scheme("hash", labels="plb", ecn_percent=50),
    "host_pkt": Scheme("hash", labels="fresh"),
    "host_pkt_ar": Scheme("hash", labels="reps", ecn_percent=10),
    "switch_pkt": Scheme("reshuffled"),
    "simple_rr": Scheme("round robin"),
    "switch_pkt_ar": Scheme("bins"),
    "jsq": Scheme("shortest"),
    "rsq": Scheme("random"),
    "host_dr": Scheme("waypoint"),
    "ofan": Scheme("rotation"),
    "ofan_fib": Scheme("rotation", weighted=False),
    "ofan_jsq_start": Scheme("rotation from the shortest", shuffled=False),
    "themis": Scheme("number", shuffled=False),
    "uet_bitmap": Scheme("hash", labels="bitmap", ecn_percent=10),
    "mrc": Scheme("hash", labels="mrc", ecn_percent=10),
    "mrc_srv6": Scheme("segments", labels="mrc", ecn_percent=10),
}
