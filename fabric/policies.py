"""POLICIES: the one table of load balancers; the CLI's choices, report labels, kernels and test parameters are read from it."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal


class Chooser(IntEnum):
    """How a switch picks the slot of a group's schedule; the integer that simulator kernels dispatch on."""

    HASH = 0
    ROUND_ROBIN = 1
    RESHUFFLED = 2
    BINNED = 3
    SHORTEST = 4
    RANDOM = 5
    WAYPOINT = 6
    ROTATION = 7
    ROTATION_SHORTEST_START = 8


class LabelRule(IntEnum):
    """How a host picks the flow label (UDP source port) of a packet."""

    FIXED = 0
    FRESH = 1
    PLB = 2
    REPS = 3


ROTATIONS = (Chooser.ROTATION, Chooser.ROTATION_SHORTEST_START)
RESHUFFLE_ORDERS = 16
RESHUFFLE_WRAPS = 5
SUBFLOWS = 4


@dataclass(frozen=True, slots=True)
class Policy:
    """One load balancer: the row of the paper's tables and what our parts need to run it."""

    slug: str
    label: str
    where: Literal["host", "switch"]
    state: str
    queue_law: str
    program: str
    chooser: Chooser
    label_rule: LabelRule = LabelRule.FIXED
    subflows: int = 1
    ecn_percent: int | None = None
    weighted: bool = True
    shuffled: bool = True

    @property
    def per_destination(self) -> bool:
        """Return whether groups are destinations (edges, pods) rather than next-hop sets."""
        return self.chooser in ROTATIONS


_ROWS = (
    Policy("flow", "Flow", "switch", "none", "", "ecmp", Chooser.HASH),
    Policy("subflow", "Subflow", "host", "none", "", "ecmp", Chooser.HASH, subflows=SUBFLOWS),
    Policy("host_flowlet_ar", "Host Flowlet AR", "host", "last good time", "", "ecmp", Chooser.HASH, LabelRule.PLB, ecn_percent=50),
    Policy("host_pkt", "Host Pkt", "host", "none", "sqrt(m)", "ecmp", Chooser.HASH, LabelRule.FRESH),
    Policy("host_pkt_ar", "Host Pkt AR", "host", "8-entry ring", "sqrt(m)", "ecmp", Chooser.HASH, LabelRule.REPS, ecn_percent=10),
    Policy("switch_pkt", "Switch Pkt", "switch", "1 counter, 1 order", "", "round_robin", Chooser.RESHUFFLED),
    Policy("simple_rr", "Simple RR", "switch", "1 counter", "linear", "round_robin", Chooser.ROUND_ROBIN),
    Policy("switch_pkt_ar", "Switch Pkt AR", "switch", "queue bins", "sqrt(m)", "adaptive", Chooser.BINNED),
    Policy("jsq", "JSQ", "switch", "queue lengths", "linear", "adaptive", Chooser.SHORTEST),
    Policy("rsq", "RSQ", "switch", "none", "sqrt(m)", "adaptive", Chooser.RANDOM),
    Policy("host_dr", "Host DR", "host", "pointer per destination host", "constant", "host_dr", Chooser.WAYPOINT),
    Policy("ofan", "Ofan", "switch", "pointer per destination edge or pod", "constant", "ofan", Chooser.ROTATION),
    Policy("ofan_fib", "Ofan (reachability)", "switch", "as Ofan", "constant", "ofan", Chooser.ROTATION, weighted=False),
    Policy(
        "ofan_jsq_start", "Ofan (JSQ start)", "switch", "as Ofan", "constant", "ofan_jsq_start",
        Chooser.ROTATION_SHORTEST_START, shuffled=False,
    ),
)  # fmt: skip

POLICIES: dict[str, Policy] = {row.slug: row for row in _ROWS}
PROGRAMS: tuple[str, ...] = tuple(dict.fromkeys(row.program for row in _ROWS))
