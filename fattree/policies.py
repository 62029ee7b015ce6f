"""POLICIES: the one table of load balancers.

The CLI's choices, report labels, kernels and test parameters are read from it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal


class Chooser(IntEnum):
    """How a switch picks the slot of a group's schedule.

    The integer that simulator kernels dispatch on.
    """

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
    Policy("flow", label="Flow", where="switch", state="none", queue_law="", program="ecmp", chooser=Chooser.HASH),
    Policy("subflow", label="Subflow", where="host", state="none", queue_law="", program="ecmp", chooser=Chooser.HASH, subflows=SUBFLOWS),
    Policy("host_flowlet_ar", label="Host Flowlet AR", where="host", state="last good time", queue_law="", program="ecmp", chooser=Chooser.HASH, label_rule=LabelRule.PLB, ecn_percent=50),
    Policy("host_pkt", label="Host Pkt", where="host", state="none", queue_law="sqrt(m)", program="ecmp", chooser=Chooser.HASH, label_rule=LabelRule.FRESH),
    Policy("host_pkt_ar", label="Host Pkt AR", where="host", state="8-entry ring", queue_law="sqrt(m)", program="ecmp", chooser=Chooser.HASH, label_rule=LabelRule.REPS, ecn_percent=10),
    Policy("switch_pkt", label="Switch Pkt", where="switch", state="1 counter, 1 order", queue_law="", program="round_robin", chooser=Chooser.RESHUFFLED),
    Policy("simple_rr", label="Simple RR", where="switch", state="1 counter", queue_law="linear", program="round_robin", chooser=Chooser.ROUND_ROBIN),
    Policy("switch_pkt_ar", label="Switch Pkt AR", where="switch", state="queue bins", queue_law="sqrt(m)", program="adaptive", chooser=Chooser.BINNED),
    Policy("jsq", label="JSQ", where="switch", state="queue lengths", queue_law="linear", program="adaptive", chooser=Chooser.SHORTEST),
    Policy("rsq", label="RSQ", where="switch", state="none", queue_law="sqrt(m)", program="adaptive", chooser=Chooser.RANDOM),
    Policy("host_dr", label="Host DR", where="host", state="pointer per destination host", queue_law="constant", program="host_dr", chooser=Chooser.WAYPOINT),
    Policy("ofan", label="Ofan", where="switch", state="pointer per destination edge or pod", queue_law="constant", program="ofan", chooser=Chooser.ROTATION),
    Policy("ofan_fib", label="Ofan (reachability)", where="switch", state="as Ofan", queue_law="constant", program="ofan", chooser=Chooser.ROTATION, weighted=False),
    Policy(
        "ofan_jsq_start", label="Ofan (JSQ start)", where="switch", state="as Ofan", queue_law="constant", program="ofan_jsq_start",
        chooser=Chooser.ROTATION_SHORTEST_START, shuffled=False,
    ),
)  # fmt: skip

POLICIES: dict[str, Policy] = {row.slug: row for row in _ROWS}
PROGRAMS: tuple[str, ...] = tuple(dict.fromkeys(row.program for row in _ROWS))
