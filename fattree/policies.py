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
    NUMBERED = 9
    PARTS = 10


class LabelRule(IntEnum):
    """How a host picks the flow label (UDP source port) of a packet."""

    FIXED = 0
    FRESH = 1
    PLB = 2
    REPS = 3
    OWN = 4
    BITMAP = 5
    MRC = 6
    PRIME = 7


ROTATIONS = (Chooser.ROTATION, Chooser.ROTATION_SHORTEST_START)

# Out of so many orders Switch Pkt draws one anew, after so many wraparounds (a choice).
RESHUFFLE_ORDERS = 16
RESHUFFLE_WRAPS = 5

SUBFLOWS = 4


@dataclass(frozen=True, slots=True)
class Policy:
    """One load balancer: the row of the paper's tables and what our parts need to run it.

    `since` says where a row is from that the paper does not have (docs/load-balancers-since.md).
    """

    slug: str
    label: str
    where: Literal["host", "switch"]
    state: str
    program: str
    chooser: Chooser
    queue_law: str = ""
    label_rule: LabelRule = LabelRule.FIXED
    subflows: int = 1
    ecn_percent: int | None = None
    weighted: bool = True
    shuffled: bool = True
    since: str = ""

    @property
    def per_destination(self) -> bool:
        """Return whether groups are destinations (edges, pods) rather than next-hop sets."""
        return self.chooser in ROTATIONS


# `queue_law`: how queues grow with the message of m packets, where the paper says it. What each
# load balancer does is in its "Load Balancing Options", "Optimality" and "Ofan".
_ROWS = (
    # Hosts choose by the label, of which switches hash all fields alike.
    Policy(
        slug="flow",
        label="Flow",
        where="switch",
        state="none",
        program="ecmp",
        chooser=Chooser.HASH,
    ),
    Policy(
        slug="subflow",
        label="Subflow",
        where="host",
        state="none",
        program="ecmp",
        chooser=Chooser.HASH,
        subflows=SUBFLOWS,
    ),
    # PLB and REPS with the ECN thresholds of the paper's settings: 50 and 10 % of the buffer.
    Policy(
        slug="host_flowlet_ar",
        label="Host Flowlet AR",
        where="host",
        state="last good time",
        program="ecmp",
        chooser=Chooser.HASH,
        label_rule=LabelRule.PLB,
        ecn_percent=50,
    ),
    Policy(
        slug="host_pkt",
        label="Host Pkt",
        where="host",
        state="none",
        queue_law="sqrt(m)",
        program="ecmp",
        chooser=Chooser.HASH,
        label_rule=LabelRule.FRESH,
    ),
    Policy(
        slug="host_pkt_ar",
        label="Host Pkt AR",
        where="host",
        state="8-entry ring",
        queue_law="sqrt(m)",
        program="ecmp",
        chooser=Chooser.HASH,
        label_rule=LabelRule.REPS,
        ecn_percent=10,
    ),
    # Switches choose, whatever the destination: round robin, then by the queues, then at random.
    Policy(
        slug="switch_pkt",
        label="Switch Pkt",
        where="switch",
        state="1 counter, 1 order",
        program="round_robin",
        chooser=Chooser.RESHUFFLED,
    ),
    Policy(
        slug="simple_rr",
        label="Simple RR",
        where="switch",
        state="1 counter",
        queue_law="linear",
        program="round_robin",
        chooser=Chooser.ROUND_ROBIN,
    ),
    Policy(
        slug="switch_pkt_ar",
        label="Switch Pkt AR",
        where="switch",
        state="queue bins",
        queue_law="sqrt(m)",
        program="adaptive",
        chooser=Chooser.BINNED,
    ),
    Policy(
        slug="jsq",
        label="JSQ",
        where="switch",
        state="queue lengths",
        queue_law="linear",
        program="adaptive",
        chooser=Chooser.SHORTEST,
    ),
    Policy(
        slug="rsq",
        label="RSQ",
        where="switch",
        state="none",
        queue_law="sqrt(m)",
        program="adaptive",
        chooser=Chooser.RANDOM,
    ),
    # Pointers per destination: DRB's at hosts, Ofan's at switches, and Ofan's two variants.
    Policy(
        slug="host_dr",
        label="Host DR",
        where="host",
        state="pointer per destination host",
        queue_law="constant",
        program="host_dr",
        chooser=Chooser.WAYPOINT,
    ),
    Policy(
        slug="ofan",
        label="Ofan",
        where="switch",
        state="pointer per destination edge or pod",
        queue_law="constant",
        program="ofan",
        chooser=Chooser.ROTATION,
    ),
    Policy(
        slug="ofan_fib",
        label="Ofan (reachability)",
        where="switch",
        state="as Ofan",
        queue_law="constant",
        program="ofan",
        chooser=Chooser.ROTATION,
        weighted=False,
    ),
    Policy(
        slug="ofan_jsq_start",
        label="Ofan (JSQ start)",
        where="switch",
        state="as Ofan",
        queue_law="constant",
        program="ofan_jsq_start",
        chooser=Chooser.ROTATION_SHORTEST_START,
        shuffled=False,
    ),
    # Not the paper's: one that rotates per flow without a pointer, and one that adapts at hosts.
    Policy(
        slug="themis",
        label="Themis",
        where="switch",
        state="none",
        program="themis",
        chooser=Chooser.NUMBERED,
        shuffled=False,
        since="EuroSys 2026",
    ),
    # With the ECN threshold of Host Pkt AR, so that the two differ in their rule only.
    Policy(
        slug="uet_bitmap",
        label="UET Bitmap",
        where="host",
        state="64 penalties",
        program="ecmp",
        chooser=Chooser.HASH,
        label_rule=LabelRule.BITMAP,
        ecn_percent=10,
        since="Ultra Ethernet's htsim, 2025",
    ),
    Policy(
        slug="mrc",
        label="MRC over ECMP",
        where="host",
        state="128 entropy values",
        program="ecmp",
        chooser=Chooser.HASH,
        label_rule=LabelRule.MRC,
        ecn_percent=10,
        since="Open Compute Project, 2026",
    ),
    # Named after what we could read of it: the rest of its rule is ours.
    Policy(
        slug="prime",
        label="PRIME (abstract)",
        where="host",
        state="a penalty an uplink",
        program="prime",
        chooser=Chooser.PARTS,
        label_rule=LabelRule.PRIME,
        ecn_percent=10,
        shuffled=False,
        since="arXiv:2507.23012, 2025",
    ),
)

POLICIES: dict[str, Policy] = {row.slug: row for row in _ROWS}

# The load balancers that the paper compares: those of the report and of its claims.
PAPER_POLICIES: dict[str, Policy] = {slug: row for slug, row in POLICIES.items() if not row.since}

# What may be said in place of slugs.
POLICY_SETS: dict[str, tuple[str, ...]] = {
    "all": tuple(PAPER_POLICIES),
    "everything": tuple(POLICIES),
}
