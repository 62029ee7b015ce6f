"""Priority flow control, plainly: ports are served packet by packet, without a look ahead.

The order at equal times: packets leave, then free links take the next packet, then pauses and their
ends are sent, pauses are sent again, pauses run out and storms begin, watchdogs act; then all other
events as without pauses; control frames count in order of arrival.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from fattree.experiment.model import Scenario
from tests.naive import draws
from tests.naive.events import Kind
from tests.naive.network import Network
from tests.naive.packet import DATA, Packet
from tests.naive.tree import Place
from tests.naive.wire import NEVER, PS_PER_NS, PS_PER_SECOND, PS_PER_US, Wire

PAUSE_BYTES = 64
# The longest time that the standard has, in quanta of 512 bits.
QUANTA = 65_535
HALF_QUANTA = 32_767


class Moment(IntEnum):
    """Further kinds of events at an instant, before and after `Kind`."""

    LEAVES = -6
    BEGINS = -5
    TELLS = -4
    RENEWS = -3
    TURNS = -2
    TRIPS = -1
    HEEDS = 4


@dataclass(slots=True)
class Stay:
    """A packet at a port: its input port, its arrival, whether a pause held it."""

    packet: Packet
    size: int
    came_by: int
    since_ps: int
    is_held: bool
    is_lost: bool = False


@dataclass(slots=True)
class Frame:
    """A control frame: a pause, or the end of a pause."""

    is_pause: bool
    is_lost: bool = False


@dataclass(slots=True)
class Server:
    """A link and its waiting frames: a control frame first, then packets, which a pause holds.

    `slow` has the times from which on the link has another rate. The port was paused at
    `closed_ps` (NEVER: it is not paused), until `until_ps`; a watchdog has given it up when it
    `is_tripped`. `begun` and `framed` count packets and control frames.
    """

    wire: Wire
    slow: list[tuple[int, Wire]]
    frame: Frame | None = None
    stays: deque[Stay] = field(default_factory=deque)
    sends: Stay | Frame | None = None
    free_ps: int = 0
    closed_ps: int = NEVER
    until_ps: int = NEVER
    is_tripped: bool = False
    begun: int = 0
    framed: int = 0
    waiting_bytes: int = 0
    packets: int = 0
    load_bytes: int = 0
    max_bytes: int = 0
    left_byte_ps: int = 0
    # When they had come, when they left, their bytes.
    gone: list[tuple[int, int, int]] = field(default_factory=list)
    drops: int = 0
    trims: int = 0
    marks: int = 0
    lost: int = 0
    pauses: int = 0
    paused_ps: int = 0
    victims: int = 0

    @property
    def is_closed(self) -> bool:
        return self.closed_ps != NEVER and not self.is_tripped

    def wire_at(self, now_ps: int) -> Wire:
        return [self.wire, *(wire for since, wire in self.slow if since <= now_ps)][-1]

    def bytes_at(self, now_ps: int) -> int:
        return self.waiting_bytes

    def byte_ps(self, end_ps: int) -> int:
        """Return the integral of the occupancy from 0 to `end_ps`."""
        return self.left_byte_ps + sum(stay.size * (end_ps - stay.since_ps) for stay in self.stays)

    def stale_bytes_at(self, then_ps: int) -> int:
        """Return the bytes that waited at an instant in the past, before its arrivals."""
        here = sum(stay.size for stay in self.stays if stay.since_ps < then_ps)
        return here + sum(
            size for since_ps, left_ps, size in self.gone if since_ps < then_ps < left_ps
        )

    def paused_until(self, end_ps: int) -> int:
        return self.paused_ps + max(end_ps - self.closed_ps, 0)


class LosslessNetwork(Network):
    """One run with pauses: all packets that came in by a port share one buffer."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        wires = [Wire(scenario, level) for level in range(3)]
        self.servers = {
            port: Server(wires[self.tree.level(*port)], self.slow_at(*port)) for port in self.ports
        }
        self.held = dict.fromkeys(self.servers, 0)
        # With a shared memory: the bytes of `held` that are in the headroom.
        self.over = dict.fromkeys(self.servers, 0)
        # Since when a link is paused that fills a buffer, None where it is not.
        self.pausing: dict[Place, int | None] = dict.fromkeys(self.servers)
        self.bounds = {
            port: bounds(scenario, server.wire, self.meeting(port))
            for port, server in self.servers.items()
        }
        self.was_held: set[tuple[int, int, int]] = set()
        fabric = scenario.fabric
        self.patience_ps = round((fabric.pause_watchdog_us or 0) * PS_PER_US)
        self.drops_storms = fabric.pause_watchdog != "ignore"
        for storm in scenario.failures.storms:
            until_ps = NEVER if storm.until_ns is None else round(storm.until_ns * PS_PER_NS)
            edge, index = divmod(self.tree.host_named(storm.host), self.tree.hosts_at_edge)
            self.at(round(storm.at_ns * PS_PER_NS), Moment.TURNS, edge, index + 1, until_ps)

    def meeting(self, place: Place) -> list[tuple[int, Wire]]:
        """Return the fastest rate at which a port's link fills it, by the wire of its own frames.

        From each change of a rate on: a frame that begins then goes at that wire's rate.
        """
        back = self.servers[place]
        if place in self.cables:
            far = self.servers[self.cables[place]]
            wire, slow = far.wire, far.slow
        else:
            wire = back.wire
            slow = self.slow_wires(self.slow_hosts, 0, self.host_at(place), up=True)
        times = {0, *(since for since, _ in (*slow, *back.slow))}
        return [
            (
                max(
                    [wire, *(slowed for since, slowed in slow if since <= later)][-1].rate_bps
                    for later in times
                    if later >= time
                ),
                back.wire_at(time),
            )
            for time in times
        ]

    def queues(self, switch: int, now_ps: int) -> list[int]:
        first = self.tree.first_uplink(switch)
        servers = [
            self.servers[switch, first + uplink] for uplink in range(self.tree.uplinks(switch))
        ]
        stale_ps = round(self.scenario.load_balancer.queue_staleness_ns * PS_PER_NS)
        if not stale_ps:
            return [server.waiting_bytes for server in servers]
        return [server.stale_bytes_at(now_ps // stale_ps * stale_ps) for server in servers]

    def happen(
        self, now_ps: int, kind: int, node: int, port: int, pushed: int, subject: Any
    ) -> None:
        self.now_ps = now_ps
        match kind:
            case Moment.LEAVES:
                self.leave((node, port), subject, now_ps)
            case Moment.BEGINS:
                self.begin((node, port), now_ps)
            case Moment.TELLS:
                self.tell((node, port), subject, now_ps)
            case Moment.RENEWS:
                self.renew((node, port), subject, now_ps)
            case Moment.TURNS:
                self.turn((node, port), subject, now_ps)
            case Moment.TRIPS:
                self.trip((node, port), subject, now_ps)
            case Moment.HEEDS:
                self.heed((node, port), subject, now_ps)
            case Kind.ARRIVE if node < self.tree.switches:
                packet = subject[0] if isinstance(subject, tuple) else subject
                self.come_in((node, port), packet, now_ps)
            case Kind.ARRIVE:
                self.receive(self.hosts[node - self.tree.switches], subject, now_ps)
            case _:
                super().happen(now_ps, Kind(kind), node, port, pushed, subject)

    def come_in(self, place: Place, packet: Packet, now_ps: int) -> None:
        switch, came_by = place
        plan = self.plan_of(switch)
        port = plan.links.port_down(switch, packet.destination)
        if port is None:
            queues = self.queues(switch, now_ps)
            uplink = self.balancers[switch].uplink(plan, packet, queues)
            if uplink is None:
                self.unrouted += 1
                return
            port = self.tree.first_uplink(switch) + uplink

        server = self.servers[switch, port]
        size = self.size(packet)
        waiting = server.waiting_bytes
        is_marked = packet.size_class == DATA and not packet.marked and self.marks(switch, waiting)
        is_above = self.held[place] - self.over[place] + size > self.below_headroom(place)
        is_given_up = server.is_tripped and self.drops_storms
        if is_given_up or not self.has_room(place, size, is_above):
            server.drops += 1
            return

        if is_marked:
            server.marks += 1
            packet = replace(packet, marked=True)
        was_held = (*place, now_ps) in self.was_held
        server.victims += was_held and waiting == 0 and not server.is_closed
        server.stays.append(Stay(packet, size, came_by, now_ps, server.is_closed))
        server.waiting_bytes += size
        server.max_bytes = max(server.max_bytes, server.waiting_bytes)
        server.packets += 1
        server.load_bytes += size
        self.begin((switch, port), now_ps)

        self.held[place] += size
        if self.is_shared:
            self.over[place] += size if is_above else 0
            # The packet itself leaves less free.
            is_above |= self.held[place] - self.over[place] > self.below_headroom(place)
        if is_above and self.pausing[place] is None:
            self.pausing[place] = now_ps
            self.servers[place].pauses += 1
            self.tell(place, True, now_ps)
            self.renew_later(place, now_ps, now_ps)

    @property
    def is_shared(self) -> bool:
        return self.scenario.fabric.buffer == "shared"

    def below_headroom(self, place: Place) -> int:
        """Return the bytes that a link may fill in its switch before it is paused."""
        if not self.is_shared:
            return self.bounds[place][1]
        beside = self.beside[place[0]]
        memory = self.memory(sum(self.bounds[port][1] for port in beside))
        held = sum(self.held[port] - self.over[port] for port in beside)
        return memory.most(self.held[place] - self.over[place], held)

    def has_room(self, place: Place, size: int, is_above: bool) -> bool:
        capacity, pause_above, _ = self.bounds[place]
        if self.is_shared:
            return not is_above or self.over[place] + size <= capacity - pause_above
        return self.held[place] + size <= capacity

    def may_go_on(self, place: Place) -> bool:
        """Return whether a paused link may: two packets below where it was paused, or all gone."""
        _, pause_above, resume_at = self.bounds[place]
        limit = self.below_headroom(place) - (pause_above - resume_at)
        is_empty = self.is_shared and self.held[place] == 0
        return self.over[place] == 0 and (is_empty or self.held[place] <= limit)

    def begin(self, place: Place, now_ps: int) -> None:
        """Let a free link take the next frame."""
        server = self.servers[place]
        if server.sends or server.free_ps > now_ps:
            return
        subject: Frame | Stay
        if server.frame:
            size, subject, server.frame = PAUSE_BYTES, server.frame, None
            links = len(self.ports) + len(self.hosts)
            subject.is_lost = self.loses(place, links, server.framed, now_ps)
            server.framed += 1
        elif server.stays and not server.is_closed:
            size, subject = server.stays[0].size, server.stays[0]
            subject.is_lost = self.loses(place, 0, server.begun, now_ps)
            server.begun += 1
        else:
            return

        wire = server.wire_at(now_ps)
        server.sends = subject
        departure_ps = now_ps + wire.sending_ps(size)
        server.free_ps = now_ps + wire.sending_ps(size + wire.gap_bytes)
        self.at(departure_ps, Moment.LEAVES, *place, subject)
        self.at(server.free_ps, Moment.BEGINS, *place)

    def loses(self, place: Place, links: int, count: int, now_ps: int) -> bool:
        """Return whether a frame that starts now is lost: the `count`th of its kind at the link."""
        drawn = draws.number(
            self.scenario.seed, draws.Purpose.LOSS, links + self.directed[place], count
        )
        return drawn < self.threshold(place) or self.is_down(place, now_ps)

    def leave(self, place: Place, subject: Frame | Stay, now_ps: int) -> None:
        server = self.servers[place]
        server.sends = None
        far = self.cables.get(place, (self.tree.switches + self.host_at(place), 0))
        then_ps = now_ps + server.wire.latency_ps
        if isinstance(subject, Frame):
            if not subject.is_lost:
                self.at(then_ps, Moment.HEEDS, *far, subject.is_pause)
            return

        server.lost += subject.is_lost
        if not subject.is_lost:
            if subject.is_held:
                self.was_held.add((*far, then_ps))
            self.at(then_ps, Kind.ARRIVE, *far, subject.packet)
        self.give_back(place, now_ps)

    def give_back(self, place: Place, now_ps: int) -> None:
        """Take the first packet off a port, and off the buffer of the link that it came by."""
        server = self.servers[place]
        subject = server.stays.popleft()
        server.waiting_bytes -= subject.size
        server.left_byte_ps += subject.size * (now_ps - subject.since_ps)
        server.gone.append((subject.since_ps, now_ps, subject.size))
        buffer = place[0], subject.came_by
        self.held[buffer] -= subject.size
        # The bytes in the headroom leave first.
        self.over[buffer] = max(self.over[buffer] - subject.size, 0)
        if self.pausing[buffer] is not None and self.may_go_on(buffer):
            self.pausing[buffer] = None
            self.at(now_ps, Moment.TELLS, *buffer, False)

    def tell(self, place: Place, is_pause: bool, now_ps: int) -> None:
        """Send a pause or its end back by the link that fills a buffer, not a frame that waits."""
        self.servers[place].frame = Frame(is_pause)
        self.begin(place, now_ps)

    def renew_later(self, place: Place, since_ps: int, now_ps: int) -> None:
        again_ps = self.quanta_ps(place, HALF_QUANTA)
        self.at(now_ps + again_ps, Moment.RENEWS, *place, since_ps)

    def renew(self, place: Place, since_ps: int, now_ps: int) -> None:
        """Send a pause again if its cause has lasted all the time."""
        if self.pausing[place] == since_ps:
            self.tell(place, True, now_ps)
            self.renew_later(place, since_ps, now_ps)

    def quanta_ps(self, place: Place, quanta: int) -> int:
        return quanta * 512 * PS_PER_SECOND // self.servers[place].wire.rate_bps

    def heed(self, place: Place, is_pause: bool, now_ps: int) -> None:
        if place[0] >= self.tree.switches:
            host = self.hosts[place[0] - self.tree.switches]
            edge_port = divmod(host.number, self.tree.hosts_at_edge)
            lasts_ps = self.quanta_ps((edge_port[0], edge_port[1] + 1), QUANTA)
            host.pause(now_ps, lasts_ps if is_pause else 0)
            self.wake(host, now_ps)
        elif is_pause:
            self.close(place, now_ps, now_ps + self.quanta_ps(place, QUANTA))
        else:
            self.go_on(place, now_ps)

    def close(self, place: Place, now_ps: int, until_ps: int) -> None:
        """Pause a port until a time, which replaces an earlier end."""
        server = self.servers[place]
        server.until_ps = until_ps
        self.at(until_ps, Moment.TURNS, *place)
        if server.closed_ps != NEVER:
            return
        server.closed_ps = now_ps
        for stay in server.stays:
            stay.is_held |= stay is not server.sends
        if self.patience_ps:
            self.at(now_ps + self.patience_ps, Moment.TRIPS, *place, now_ps)

    def turn(self, place: Place, storm_ps: int | None, now_ps: int) -> None:
        """Begin a host's storm, which has an end, or end a pause that was not renewed."""
        if storm_ps is not None:
            self.close(place, now_ps, storm_ps)
        elif self.servers[place].until_ps == now_ps:
            self.go_on(place, now_ps)

    def go_on(self, place: Place, now_ps: int) -> None:
        """End a port's pause."""
        server = self.servers[place]
        if server.closed_ps != NEVER:
            server.paused_ps += now_ps - server.closed_ps
            server.closed_ps = NEVER
            server.is_tripped = False
            self.begin(place, now_ps)

    def trip(self, place: Place, closed_ps: int, now_ps: int) -> None:
        """Give up a port that has been paused all the time since then: it drops, or it sends."""
        server = self.servers[place]
        if server.closed_ps != closed_ps:
            return
        server.is_tripped = True
        if not self.drops_storms:
            self.begin(place, now_ps)
            return
        begun = [server.stays.popleft()] if server.stays and server.stays[0] is server.sends else []
        while server.stays:
            server.drops += 1
            self.give_back(place, now_ps)
        server.stays.extend(begun)

    @property
    def host_paused_ps(self) -> int:
        """Return the sum of the hosts' pauses."""
        return sum(host.paused_ps(self.end_ps) for host in self.hosts)

    def stands_still(self, now_ps: int) -> bool:
        return False


def bounds(scenario: Scenario, wire: Wire, meeting: list[tuple[int, Wire]]) -> tuple[int, int, int]:
    """Return a buffer's size, and the bounds at which it pauses its link and lets it continue."""
    capacity = scenario.fabric.queue_bytes
    headroom = scenario.fabric.headroom_bytes
    if headroom is None:
        longest = max(wire.data_bytes, wire.ack_bytes, PAUSE_BYTES)
        headroom = 0
        for rate_bps, back in [(wire.rate_bps, wire), *meeting]:
            # The link's bytes while news go there and back, behind a packet and a frame.
            frame_ps = back.sending_ps(PAUSE_BYTES + wire.gap_bytes)
            packet_ps = back.sending_ps(longest + wire.gap_bytes)
            time_ps = packet_ps + 2 * frame_ps + 2 * wire.latency_ps
            carried = -(-time_ps * rate_bps // (8 * PS_PER_SECOND))
            headroom = max(headroom, carried + 2 * longest)
    return capacity, capacity - headroom, capacity - headroom - 2 * wire.data_bytes
