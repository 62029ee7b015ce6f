"""Runs that repeat: whole periods are skipped, and the result stays the same to the digit.

Under a rotation all that happens may become periodic: after some hundred packets every switch does
again what it did one round of all pointers before, only later and with higher packet numbers. Two
moments are compared: all that decides what comes next, relative to the clock and to what each flow
has sent. If nothing differs, the run goes on from the second moment as it did from the first, so
that the same changes can be added many times at once (`docs/decisions/periods.md`).

It is skipped only as far as no flow comes to its last packets, and no route changes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fattree.counters import PORT_COUNTERS, SENDER_COUNTERS
from fattree.policies import LabelRule
from hostagent.transports.state import NEVER, PACKET, Congestion, Recovery
from sim.arrays.network import Network
from sim.kernels.ports import LEVELS
from sim.kernels.state import (
    ACK,
    CLOCK,
    DATA,
    LAST_DONE,
    LIVE,
    UNFINISHED,
    UNROUTABLE,
    World,
    records,
)
from sim.kernels.under_way import hash_under_way, move
from sim.kernels.windows import settle_all

Int64 = NDArray[np.int64]

# What may differ between two moments that are alike. Everything else must be the same: so a field
# of which this module knows nothing forbids to skip.
LINK_TIMES = ("free_ps",)
LINK_COUNTS = ("byte_ps", "data_packets", "ack_packets")
HOST_TIMES = ("free_ps", "data_free_ps")
PLACES = ("taken", "tail", "cursor")
SENDER_TIMES = ("due_ps", "left_ps", "heard_ps")
SENDER_NUMBERS = ("sent", "acked", "highest")
COUNTERS = (LIVE, UNFINISHED, LAST_DONE, UNROUTABLE)

# Moments are so many windows apart at least, so that to look costs little beside what is served.
WINDOWS_APART = 8


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at an instant: what decides what comes next, and what only adds up.

    `sent` are the packet numbers of each flow, `alike` arrays that must be equal, `counts` those
    that grow.
    """

    time_ps: int
    sent: Int64
    alike: list[NDArray[Any]]
    counts: list[NDArray[Any]]


class Periods:
    """Looks at a run now and then, and skips what repeats.

    `next_ps` is when it wants to look (NEVER: not any more), `skipped_ps` how much it has skipped.
    """

    def __init__(self, network: Network, wanted: bool) -> None:
        self.skipped_ps = 0
        self._apart_ps = _apart_ps(network) if wanted and _may_repeat(network) else NEVER
        self._before: Moment | None = None
        self._draws = network.world.switches.draws.copy()
        self.next_ps = self._apart_ps

    def look(self, world: World, stop_ps: int) -> None:
        """Compare the run with what it was, if it is time; skip periods that end by `stop_ps`."""
        now_ps = int(world.counters[CLOCK])
        if now_ps != self.next_ps:
            return

        # The next time in a while that is a quarter longer: it costs little, however late it is.
        rounds = now_ps // self._apart_ps
        before, self._before = self._before, None
        if self._is_drawing(world):
            self.next_ps = (rounds + max(1, rounds // 4)) * self._apart_ps
            return

        # Ports look at their queues late, each when it has to.
        settle_all(world, now_ps, False)
        if before is None:
            self._before, self.next_ps = _moment(world, now_ps), now_ps + self._apart_ps
            return

        self.next_ps = (rounds + rounds // 4) * self._apart_ps
        if not _are_alike(before, _alike(world, now_ps)):
            return

        now = _moment(world, now_ps)
        times = _times(world, before, now, stop_ps)
        if times > 0:
            _skip(world, before, now, times)
            self.skipped_ps += times * self._apart_ps

        # What stopped it may be over a period later; otherwise the end is near.
        is_near = times == 0 and stop_ps - now_ps >= self._apart_ps
        self.next_ps = NEVER if is_near else int(world.counters[CLOCK]) + self._apart_ps

    def _is_drawing(self, world: World) -> bool:
        """Return whether a switch has drawn a random number since this was last asked."""
        draws = world.switches.draws.copy()
        before, self._draws = self._draws, draws
        return not np.array_equal(before, draws)


def _may_repeat(network: Network) -> bool:
    """Return whether a run is of the kind that this module knows."""
    constants, rules = network.world.constants, network.world.rules
    is_plain = constants.lanes + constants.is_lossy + constants.is_slowed + constants.is_stale == 0

    return (
        is_plain
        and len(network.routes) == 1
        and rules.recovery == Recovery.ERASURE
        and rules.congestion == Congestion.FIXED
        and rules.label_rule == LabelRule.FIXED
        and not (rules.tells_share or rules.jitter_permille)
    )


def _apart_ps(network: Network) -> int:
    """Return how far apart two moments are that may be alike: whole rounds of all pointers."""
    constants, table = network.world.constants, network.world.flows.table
    routes = network.routes[0].routes
    # Edges and aggs walk schedules, one within the other; a host's waypoints are both at once.
    # Groups that nobody uses have lengths that mean nothing.
    schedule = _common(routes.group_table.length)
    waypoints = _common(np.diff(routes.waypoint_offset))
    sources = np.unique(table.source[table.packets > 0], return_counts=True)[1]
    rounds = lcm(schedule**2, waypoints) * lcm(*sources.tolist())

    # Of hosts' links. A host that receives as well has an ACK to send between as many packets as an
    # ACK tells of.
    few = network.world.rules.packets_per_ack
    senders, receivers = set(table.source.tolist()), set(table.destination.tolist())
    slots_ps, nics = network.world.passages.slot_ps, network.world.nics
    ack_ps = max(int(slots_ps[LEVELS * ACK]), int(nics.kept_ps[ACK])) if senders & receivers else 0
    data_ps = max(int(slots_ps[LEVELS * DATA]), int(nics.kept_ps[DATA]))
    gap_ps = int(table.gap_ps.max()) // int(sources.max(initial=1))
    slot_ps = max(few * data_ps + ack_ps, few * gap_ps)
    period_ps: int = rounds * slot_ps

    return -(-WINDOWS_APART * constants.window_ps // period_ps) * period_ps


def _common(lengths: NDArray[Any]) -> int:
    """Return the least common multiple of those above 0, 1 without any."""
    return lcm(*(length for length in set(lengths.tolist()) if length > 0))


def _moment(world: World, now_ps: int) -> Moment:
    return Moment(
        now_ps,
        sent=world.flows.senders.sent.copy(),
        alike=[each.copy() for each in _alike(world, now_ps)],
        counts=[counts.copy() for counts in _counts(world)],
    )


def _alike(world: World, now_ps: int) -> Iterator[NDArray[Any]]:
    """Yield what must be equal at two moments, as it is relative to this one.

    What most moments differ in comes first.
    """
    flows, senders = world.flows, _plain(world.flows.senders)
    links, hosts = _plain(world.links), _plain(world.hosts)
    is_active = _active(world)

    # What was free before now is free.
    yield from (np.maximum(links[name] - now_ps, 0) for name in LINK_TIMES)
    yield _under_way(world, now_ps)
    yield from (np.maximum(hosts[name] - now_ps, 0) for name in HOST_TIMES)
    yield from (_relative(senders[name], now_ps, is_active) for name in SENDER_TIMES)
    yield from (
        np.where(is_active, senders[name] - senders["sent"], senders[name])
        for name in SENDER_NUMBERS
    )
    yield from _others(links, (*LINK_TIMES, *LINK_COUNTS, *PLACES))
    yield from _others(_plain(world.ledgers), PORT_COUNTERS)
    yield from _others(_plain(world.switches), ())
    yield from _others(hosts, (*HOST_TIMES, "ready_ps", *PLACES))
    yield from _others(senders, (*SENDER_TIMES, *SENDER_NUMBERS, *SENDER_COUNTERS))
    yield _relative(hosts["ready_ps"], now_ps, hosts["ready_ps"] != NEVER)
    yield _relative(flows.ready_ps, now_ps, is_active)
    yield np.where(is_active, flows.received - senders["sent"], flows.received)
    yield from (flows.waiting, flows.blocked, flows.started_ps)
    yield from world.pointers
    yield world.counters[list(COUNTERS)]


def _under_way(world: World, now_ps: int) -> NDArray[Any]:
    hashes = np.zeros(2, dtype=np.uint64)
    # Hashes wrap around, of which numpy warns where nothing is compiled.
    with np.errstate(over="ignore"):
        hash_under_way(world, now_ps, hashes)

    return hashes


def _plain(table: Any) -> NDArray[Any]:
    """Return records without attributes, whose fields numpy finds ten times as fast."""
    plain: NDArray[Any] = table.view(np.ndarray)
    return plain


def _others(table: NDArray[Any], but: Sequence[str]) -> Iterator[NDArray[Any]]:
    yield from (table[name] for name in table.dtype.names or () if name not in but)


def _counts(world: World) -> Iterator[NDArray[Any]]:
    """Yield what only adds up."""
    yield from (world.links[name] for name in LINK_COUNTS)
    yield from (world.ledgers[name] for name in PORT_COUNTERS)
    yield from (world.flows.senders[name] for name in SENDER_COUNTERS)


def _active(world: World) -> NDArray[np.bool_]:
    """Return which flows send: begun, and not done."""
    senders = world.flows.senders
    active: NDArray[np.bool_] = (senders.packets > 0) & (senders.done_ps == NEVER)
    return active


def _relative(times: Int64, now_ps: int, moving: NDArray[np.bool_]) -> Int64:
    return np.where(moving & (times != NEVER), times - now_ps, times)


def _are_alike(before: Moment, now: Iterator[NDArray[Any]]) -> bool:
    pairs = zip(before.alike, now, strict=True)
    return all(np.array_equal(earlier, later) for earlier, later in pairs)


def _times(world: World, before: Moment, now: Moment, stop_ps: int) -> int:
    """Return how many periods may be skipped."""
    period_ps = now.time_ps - before.time_ps
    further = now.sent - before.sent
    # All that a flow does anew at its end, it does once it has sent as many packets as it has.
    left = world.flows.senders.packets - 1 - now.sent
    moving = further > 0
    most = (left[moving] // further[moving]).min(initial=NEVER)

    return max(0, min(int(most), (stop_ps - now.time_ps) // period_ps)) if moving.any() else 0


def _skip(world: World, before: Moment, now: Moment, times: int) -> None:
    """Add what a period changes so many times at once."""
    flows, senders = world.flows, world.flows.senders
    shift_ps = times * (now.time_ps - before.time_ps)
    further = times * (now.sent - before.sent)
    is_active = _active(world)
    room = records(int(flows.table.ring_length.max()), PACKET)
    move(world, shift_ps, further, room)

    for counts, earlier in zip(_counts(world), before.counts, strict=True):
        counts += times * (counts - earlier)

    for table, names in ((world.links, LINK_TIMES), (world.hosts, (*HOST_TIMES, "ready_ps"))):
        for name in names:
            table[name][table[name] != NEVER] += shift_ps

    for name in SENDER_TIMES:
        senders[name][is_active] += shift_ps

    for name in SENDER_NUMBERS:
        senders[name] += further

    flows.received[:] += further
    flows.ready_ps[is_active & (flows.ready_ps != NEVER)] += shift_ps
    world.counters[CLOCK] += shift_ps
