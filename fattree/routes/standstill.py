"""When a run is given up: at the horizon that its user has set, or when it stands still for good.

Progress is whatever a sender learns, a flow that starts, a computation that ends. A run that
progresses is never given up, however slow it is. Without progress most senders go on for ever: an
erasure sender makes new symbols, SACK sends its holes again. So a run stands still for good when

- no link and no route changes any more, and no computation is under way,
- since the last progress every flow that has started and is not done has tried `tries` times to
  deliver its missing packets, in at least three rounds, or a pause has held its host all the time,
- and longer than `wait_ps` ago: packets under way then have arrived or are lost, their ACKs too.

Tries are counted beside the time, as a timeout that has doubled 16 times takes so much longer. A
packet is a try, but of those that go-back-N sends in a row from the missing packet on, only the
first is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused, lasting, storms, watchdog
from fattree.experiment.sharing import is_shared
from fattree.policies import Chooser, LabelRule
from fattree.routes.failures import Links, Timeline
from fattree.routes.slow_links import slowest
from fattree.shape.addressing import link_name
from fattree.shape.topology import Level
from fattree.units import PS_PER_US

# As `hostagent.transports.state.NEVER`.
NEVER = 2**62

# A flow that takes the same path each time tries it so often: if all others stand still, only
# packets that were under way are in the way of the first try.
LEAST_TRIES = 8
# Of a burst one packet may have been asked to be acknowledged, and be lost: it is not all tries
# that there are.
LEAST_ROUNDS = 3
# A flow with a chance on each try is given up wrongly once in so many times.
TRUST = 10**9
# Round trips: the first for packets under way at the last progress, the second for the timeout that
# then changes a label, the third for the new label's effect.
ROUND_TRIPS = 3
# Packets in queues have been sent since the start, by so many hosts for each link at most.
SENDERS_A_LINK = 4
# Zero-load RTTs until a sender without a sample of its own takes a packet for lost.
FIRST_TIMEOUT_RTT = 3
NAMED = 3
UNKNOWN: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


class Patience(NamedTuple):
    """The time of a run without progress; until `settled_ps` changes may come by themselves.

    It is given `wait_ps`, and for its queues `queues_ps`, or as long as it may have taken to fill
    them if that is less.
    """

    settled_ps: int
    wait_ps: int
    queues_ps: int
    tries: int


class Standing(NamedTuple):
    """The progress of a run: `reached` grows with each progress, and only then.

    `tries` counts every flow's tries; `is_open` marks flows that have begun and are not done,
    `is_changing` whether an event other than a sender's is scheduled; `heard_ps` is when a sender
    has last got a packet, `held_ps` since when a pause holds each flow's host (NEVER: none does;
    empty on networks without pauses).
    """

    reached: int
    tries: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    is_changing: bool
    heard_ps: int
    held_ps: NDArray[np.int64] = UNKNOWN


class Senders(NamedTuple):
    """A network's view of every flow at its sender; times are NEVER if they are not yet known.

    `heard_ps` is 0 before the first ACK, `computes` marks computations, `held_ps` is as in
    `Standing`.
    """

    started_ps: NDArray[np.int64]
    done_ps: NDArray[np.int64]
    heard_ps: NDArray[np.int64]
    acked: NDArray[np.int64]
    tries: NDArray[np.int64]
    computes: NDArray[np.bool_]
    held_ps: NDArray[np.int64] = UNKNOWN


def standing(now_ps: int, senders: Senders, is_changing: bool = False) -> Standing:
    """Return how far a run is; `is_changing` where routes or links are about to change."""
    has_begun = senders.started_ps != NEVER
    is_done = has_begun & (senders.done_ps != NEVER)
    is_open = has_begun & ~is_done
    times = (
        np.where(is_done, senders.done_ps, 0),
        np.where(is_open, senders.heard_ps, 0),
        # A planned start may lie ahead.
        np.where(senders.started_ps <= now_ps, senders.started_ps, 0),
    )
    return Standing(
        reached=int(senders.acked.sum() + has_begun.sum() + is_done.sum()),
        tries=senders.tries,
        is_open=is_open,
        is_changing=is_changing or bool((is_open & senders.computes).any()),
        heard_ps=max(int(time_ps.max(initial=0)) for time_ps in times),
        held_ps=senders.held_ps,
    )


def patience(scenario: Scenario, events: Timeline) -> Patience:
    """Return the patience of a scenario's run."""
    rtt_ps = scenario.zero_load_rtt_ps
    timeout_ps = ceil(max(FIRST_TIMEOUT_RTT, scenario.transport.timer_floor_rtt) * rtt_ps)
    gap_ps = (scenario.transport.packets_per_ack - 1) * scenario.slot_ps
    storms_ps = [storm.until_ps for storm in storms(scenario) if storm.until_ps < NEVER]
    return Patience(
        settled_ps=max(events.last_change_ps, *storms_ps, 0),
        wait_ps=ROUND_TRIPS * _round_trip_ps(scenario, _slot_ps)
        + timeout_ps
        + gap_ps
        + _pause_ps(scenario),
        queues_ps=ROUND_TRIPS * _round_trip_ps(scenario, _full_queue_ps),
        tries=_tries(scenario),
    )


def _pause_ps(scenario: Scenario) -> int:
    """Return how long a pause may hold a link before it ends, or a watchdog ends it."""
    if not is_paused(scenario):
        return 0

    patience_ps = watchdog(scenario).patience_ps
    longest_ps = max(lasting(scenario, level).lasts_ps for level in Level)
    return longest_ps + (patience_ps if patience_ps < NEVER else 0)


def _round_trip_ps(scenario: Scenario, hop_ps: Callable[[Scenario, Level], int]) -> int:
    """Return the time of the longest path's hops, there and back, if all links are slow."""
    share = Fraction(str(slowest(scenario)))
    levels = scenario.tree.levels(scenario.tree.most_hops)
    return 2 * sum(ceil(hop_ps(scenario, Level(level)) / share) for level in levels)


def _slot_ps(scenario: Scenario, level: Level) -> int:
    """Return the time of a packet on a free link."""
    size = scenario.data_bytes + scenario.packets.gap_bytes
    return scenario.latencies_ps[level] + scenario.tx_ps(size, level)


def _full_queue_ps(scenario: Scenario, level: Level) -> int:
    """Return how long a full queue holds a packet up; NEVER where buffers have no limit."""
    if not scenario.fabric.queue_bytes:
        return NEVER

    # Of the smallest packets most gaps go into a buffer; a lane is as long again.
    # Where memory is shared, a queue may have nearly all of a switch's.
    queues = scenario.tree.most_ports if is_shared(scenario) else 1
    packets = ceil(queues * scenario.fabric.queue_bytes / scenario.ack_bytes)
    lanes = 2 if scenario.transport.trimming else 1
    size = scenario.ack_bytes + scenario.packets.gap_bytes
    return lanes * packets * scenario.tx_ps(size, level)


def _tries(scenario: Scenario) -> int:
    """Return after how many unanswered packets a flow counts as unable to progress."""
    # One path in all may be alive. Who takes the same one each time has tried all that it will.
    tree = scenario.tree
    is_fixed = scenario.host_rule is None and scenario.scheme.label_rule is LabelRule.FIXED
    is_fixed = is_fixed and scenario.scheme.chooser in (Chooser.HASH, Chooser.NUMBERED)
    paths = 1 if is_fixed else max(1, tree.edge_uplinks * max(1, tree.agg_uplinks))

    # On links with random losses, the packet and its ACK must both get through.
    losses = [loss for loss in scenario.failures.losses if loss.share < 1]
    worst = max((loss.share for loss in losses), default=0)
    crossed = min(tree.most_hops, sum(2 if loss.switch else 1 for loss in losses))
    chance = (1 - worst) ** (2 * crossed) / paths
    return LEAST_TRIES if chance == 1 else ceil(log(TRUST) / chance)


@dataclass(slots=True)
class Watch:
    """Looks at a run now and then, and sees when it stands still for good.

    A network asks `is_over` at `next_ps`: seldom, the less the longer nothing happens, so that it
    costs nothing.
    """

    patience: Patience
    next_ps: int
    since_ps: int = 0
    heard_ps: int = 0
    _reached: int = -1
    _last_tries: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _rounds: int = 0
    _was_changing: bool = False
    _tries: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, patience: Patience) -> "Watch":
        """Return a watch that first looks when a run could stand still since its start."""
        return cls(patience, next_ps=max(patience.wait_ps, patience.settled_ps))

    def is_over(self, now_ps: int, standing: Standing) -> bool:
        """Return whether nothing can happen any more; call it at `next_ps`."""
        # A change that was due at the last look may have happened just now.
        may_move = standing.is_changing or self._was_changing
        has_moved = standing.reached != self._reached or len(self._tries) == 0
        self._was_changing = standing.is_changing
        if has_moved or may_move or self.since_ps < self.patience.settled_ps:
            self._reached = standing.reached
            self._tries = self._last_tries = standing.tries.copy()
            self._rounds = 0
            self.since_ps = now_ps
            self.heard_ps = min(now_ps, standing.heard_ps)
            self.next_ps = now_ps + self._wait_ps
            return False

        # SACK's timeouts double, and so does the time between looks that see no packet.
        # A host that a pause holds sends nothing, however long that lasts.
        is_held = np.zeros(int(standing.is_open.sum()), dtype=bool)
        if len(standing.held_ps):
            is_held = standing.held_ps[standing.is_open] <= self.since_ps

        has_tried = (standing.tries - self._last_tries)[standing.is_open] > 0
        is_trying = bool(np.all(has_tried | is_held))
        self.next_ps = now_ps + (
            self._wait_ps if is_trying else max(self._wait_ps, now_ps - self.since_ps)
        )
        self.heard_ps = min(self.since_ps, standing.heard_ps)
        if not is_trying:
            return False

        # Packets sent just before a look may still be answered: the look before must have seen
        # enough.
        in_vain = (self._last_tries - self._tries)[standing.is_open]
        self._last_tries = standing.tries.copy()
        self._rounds += 1
        has_tried = (in_vain >= self.patience.tries) | is_held
        return self._rounds >= LEAST_ROUNDS and bool(np.all(has_tried))

    @property
    def _wait_ps(self) -> int:
        queues_ps = min(self.patience.queues_ps, SENDERS_A_LINK * self.heard_ps)
        return self.patience.wait_ps + queues_ps


def why_still(scenario: Scenario, events: Timeline, since_ps: int) -> str:
    """Say since when a run stands still, and why, where that is known."""
    reason = _reason(scenario, events)
    return (
        f"no progress since {since_ps / PS_PER_US:.3f} µs, and nothing can change that any more"
        f"{f': {reason}' if reason else ''}"
    )


def _reason(scenario: Scenario, events: Timeline) -> str:
    down = sorted(_down_for_good(events) - _avoided(events))
    if down and not scenario.failures.local_repair:
        links = ", ".join(link_name(scenario.tree, link) for link in down[:NAMED])
        more = f" and {len(down) - NAMED} more" if len(down) > NAMED else ""
        are = "is" if len(down) == 1 else "are"
        return f"{links}{more} {are} down for good, and routes still lead there"

    lossy = [loss.name for loss in scenario.failures.losses if loss.share == 1]
    return f"{lossy[0]} loses all its packets" if lossy else ""


def _down_for_good(events: Timeline) -> Links:
    down: Links = frozenset()
    for change in events.changes:
        down = down - change.up | change.down

    return down


def _avoided(events: Timeline) -> Links:
    return events.routes[-1].failed if events.routes else events.first_routes
