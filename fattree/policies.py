"""POLICIES: the only table of load balancers.

The CLI's choices, report labels, kernels and test parameters are read from it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal


class Chooser(IntEnum):
    """The way in which a switch picks a slot of a group's schedule; numbers are for kernels."""

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
    SEGMENTS = 10


class LabelRule(IntEnum):
    """The way in which a host picks the flow label (UDP source port) of a packet."""

    FIXED = 0
    FRESH = 1
    PLB = 2
    REPS = 3
    OWN = 4
    BITMAP = 5
    MRC = 6


# Rules that remember paths, and take a packet for lost if no ACK names it.
LEARNING = (LabelRule.REPS, LabelRule.BITMAP, LabelRule.MRC)
# Hosts name the way, in a header that they put in front, of so many bytes: IPv4's, IPv6's.
OUTER_BYTES = {Chooser.WAYPOINT: 20, Chooser.SEGMENTS: 40}
ROTATIONS = (Chooser.ROTATION, Chooser.ROTATION_SHORTEST_START)

# Switch Pkt draws a new order out of so many, after so many wraparounds (our choice).
RESHUFFLE_ORDERS = 16
RESHUFFLE_WRAPS = 5

SUBFLOWS = 4


@dataclass(frozen=True, slots=True)
class Policy:
    """One load balancer: the row of the paper's tables and all that our parts need to run it.

    `rule` describes it in a sentence (docs/load-balancers.md). `since` is the source of a row that
    the paper does not have (docs/load-balancers-since.md). With `pauses` False its publication has
    PFC off.
    """

    slug: str
    label: str
    rule: str
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
    pauses: bool = True
    since: str = ""

    @property
    def per_destination(self) -> bool:
        """Return whether groups are destinations (edges, pods) rather than next-hop sets."""
        return self.chooser in ROTATIONS

    @property
    def outer_bytes(self) -> int:
        """Return the bytes of the header that hosts put in front to name the way, 0 without any."""
        return OUTER_BYTES.get(self.chooser, 0)

    @property
    def reorders(self) -> bool:
        """Return whether packets of a flow overtake each other in all traffic, on many paths."""
        keeps_label = self.label_rule in (LabelRule.FIXED, LabelRule.PLB)
        return not (self.chooser == Chooser.HASH and keeps_label)


# `queue_law`: how queues grow with a message of m packets, if the paper has it. The paper has
# the load balancers in "Load Balancing Options", "Optimality" and "Ofan".
_ROWS = (
    # Hosts choose the label; all switches hash the same fields.
    Policy(
        slug="flow",
        label="Flow",
        rule="A hash of the five-tuple gives all packets of a flow the same path (ECMP).",
        where="switch",
        state="none",
        program="ecmp",
        chooser=Chooser.HASH,
    ),
    Policy(
        slug="subflow",
        label="Subflow",
        rule="A flow is split into four subflows, each with a quarter of the message and its own "
        "label, and so its own path.",
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
        rule="A flow changes its label, and so its path, when too many of its latest ACKs carry "
        "congestion marks (PLB).",
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
        rule="Every packet carries a new random label, and so takes a random path.",
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
        rule="A label whose ACK comes back without a mark is used once more; all other labels are "
        "random (REPS).",
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
        rule="Packets take the uplinks in turn, in a random order that is drawn anew after every "
        "five rounds.",
        where="switch",
        state="1 counter, 1 order",
        program="round_robin",
        chooser=Chooser.RESHUFFLED,
    ),
    Policy(
        slug="simple_rr",
        label="Simple RR",
        rule="Packets take the uplinks in turn, always in the same order, for all destinations.",
        where="switch",
        state="1 counter",
        queue_law="linear",
        program="round_robin",
        chooser=Chooser.ROUND_ROBIN,
    ),
    Policy(
        slug="switch_pkt_ar",
        label="Switch Pkt AR",
        rule="A packet takes a random uplink among those whose queues are in the lowest of four "
        "bins.",
        where="switch",
        state="queue bins",
        queue_law="sqrt(m)",
        program="adaptive",
        chooser=Chooser.BINNED,
    ),
    Policy(
        slug="jsq",
        label="JSQ",
        rule="Join Shortest Queue: a packet takes the uplink with the shortest queue, or a random "
        "one of several with equal queues.",
        where="switch",
        state="queue lengths",
        queue_law="linear",
        program="adaptive",
        chooser=Chooser.SHORTEST,
    ),
    Policy(
        slug="rsq",
        label="RSQ",
        rule="Randomized Switch Queueing: a packet takes a random uplink, without regard to "
        "queues.",
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
        rule="Destination-based rotation at the host: packets to one destination host take all "
        "paths in turn, and carry their path (DRB).",
        where="host",
        state="pointer per destination host",
        queue_law="constant",
        program="host_dr",
        chooser=Chooser.WAYPOINT,
    ),
    Policy(
        slug="ofan",
        label="Ofan",
        rule="Destination-based rotation at the switch: packets take the uplinks in turn for each "
        "destination edge (at edges) or pod (at aggs).",
        where="switch",
        state="pointer per destination edge or pod",
        queue_law="constant",
        program="ofan",
        chooser=Chooser.ROTATION,
    ),
    Policy(
        slug="ofan_fib",
        label="Ofan (reachability)",
        rule="Ofan without weights after failures: all uplinks that still lead to the destination "
        "have equal turns.",
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
        rule="Ofan whose turns begin at the uplink with the shortest queue; the orders are "
        "not shuffled.",
        where="switch",
        state="as Ofan",
        queue_law="constant",
        program="ofan_jsq_start",
        chooser=Chooser.ROTATION_SHORTEST_START,
        shuffled=False,
    ),
    # Newer than the paper: a rotation per flow without a pointer, and load balancers of hosts.
    Policy(
        slug="themis",
        label="Themis",
        rule="A flow's packets take the paths in turn by their sequence numbers, starting at the "
        "flow's hash.",
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
        rule="A flow takes 64 labels in turn, each round in another order, and skips labels "
        "with marks, trims or losses.",
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
        rule="A connection takes 128 labels in turn, skips a label once after a mark, and after a "
        "loss until a probe with this label comes back.",
        where="host",
        state="128 entropy values",
        program="ecmp",
        chooser=Chooser.HASH,
        label_rule=LabelRule.MRC,
        ecn_percent=10,
        pauses=False,
        since="Open Compute Project, 2026",
    ),
    Policy(
        slug="mrc_srv6",
        label="MRC over SRv6",
        rule="As MRC over ECMP, but a value names a path, and the packet carries it as "
        "micro-segments; routes never change.",
        where="host",
        state="128 entropy values",
        program="mrc_srv6",
        chooser=Chooser.SEGMENTS,
        label_rule=LabelRule.MRC,
        ecn_percent=10,
        pauses=False,
        since="Open Compute Project, 2026",
    ),
)

POLICIES: dict[str, Policy] = {row.slug: row for row in _ROWS}

# The publications after which the paper models its load balancers (its table of contenders, and
# DRB): experiments and commands take these names, too.
PUBLISHED: dict[str, str] = {
    "ecmp": "flow",
    "mptcp": "subflow",
    "plb": "host_flowlet_ar",
    "ops": "host_pkt",
    "reps": "host_pkt_ar",
    "spectrum_x": "switch_pkt_ar",
    "drb": "host_dr",
}

# The load balancers that the paper compares: those of the report and of its claims.
PAPER_POLICIES: dict[str, Policy] = {slug: row for slug, row in POLICIES.items() if not row.since}

# Names for sets of load balancers.
POLICY_SETS: dict[str, tuple[str, ...]] = {
    "all": tuple(PAPER_POLICIES),
    "everything": tuple(POLICIES),
}


def slug_of(name: str) -> str:
    """Return a load balancer's own name for a published name; other names stay."""
    return PUBLISHED.get(name, name)
