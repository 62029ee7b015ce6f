"""Priority flow control, plainly: ports are served packet by packet, without a look ahead.

The order at equal times: packets leave, then free links take the next packet, then pauses and their
ends are sent, then all other events as without pauses; control frames count in order of arrival.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from fattree.experiment.model import Scenario
from tests.naive.network import Kind, Network
from tests.naive.packet import DATA, Packet
from tests.naive.tree import Place
from tests.naive.wire import NEVER, PS_PER_NS, PS_PER_SECOND, Wire

PAUSE_BYTES = 64


class Moment(IntEnum):
    """Further kinds of events at an instant, before and after `Kind`."""

    LEAVES = -3
    BEGINS = -2
    TELLS = -1
    HEEDS = 4


@dataclass(slots=True)
class Stay:
    """A packet at a port: its input port, its arrival, whether a pause held it."""

    packet: Packet
    size: int
    came_by: int
    since_ps: int
    is_held: bool


@dataclass(slots=True)
class Server:
    """A link and its waiting frames: control frames first, then packets, which a pause holds."""

    wire: Wire
    frames: deque[bool] = field(default_factory=deque)
    stays: deque[Stay] = field(default_factory=deque)
    is_sending: bool = False
    free_ps: int = 0
    closed_ps: int = NEVER
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
        return self.closed_ps != NEVER

    def bytes_at(self, now_ps: int) -> int:
        return self.waiting_bytes

    def byte_ps(self, end_ps: int) -> int:
        """Return the integral of the occupancy from 0 to `end_ps`."""
        return self.left_byte_ps + sum(one.size * (end_ps - one.since_ps) for one in self.stays)

    def stale_bytes_at(self, then_ps: int) -> int:
        """Return the bytes that waited at an instant in the past, before its arrivals."""
        here = sum(one.size for one in self.stays if one.since_ps < then_ps)
        return here + sum(
            size for since_ps, left_ps, size in self.gone if since_ps < then_ps < left_ps
        )

    def paused_until(self, end_ps: int) -> int:
        return self.paused_ps + (end_ps - self.closed_ps if self.is_closed else 0)


class LosslessNetwork(Network):
    """One run with pauses: all packets that came in by a port share one buffer."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        wires = [Wire(scenario, level) for level in range(3)]
        self.servers = {place: Server(wires[self.tree.level(*place)]) for place in self.ports}
        self.held = dict.fromkeys(self.servers, 0)
        # With a shared memory: what of it is in the headroom, apart.
        self.over = dict.fromkeys(self.servers, 0)
        self.pausing = dict.fromkeys(self.servers, False)
        self.bounds = {place: bounds(scenario, one.wire) for place, one in self.servers.items()}
        self.was_held: set[tuple[int, int, int]] = set()

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
        port = self.plan.links.port_down(switch, packet.destination)
        if port is None:
            queues = self.queues(switch, now_ps)
            uplink = self.balancers[switch].uplink(self.plan, packet, queues)
            assert uplink is not None
            port = self.tree.first_uplink(switch) + uplink

        server = self.servers[switch, port]
        size = self.size(packet)
        waiting = server.waiting_bytes
        is_marked = packet.size_class == DATA and not packet.marked and self.marks(switch, waiting)
        is_above = self.held[place] - self.over[place] + size > self.below_headroom(place)
        if not self.has_room(place, size, is_above):
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
        if is_above and not self.pausing[place]:
            self.pausing[place] = True
            self.tell(place, True, now_ps)

    @property
    def is_shared(self) -> bool:
        return self.scenario.fabric.buffer == "shared"

    def below_headroom(self, place: Place) -> int:
        """Return what a link may fill of its switch before it is paused."""
        if not self.is_shared:
            return self.bounds[place][1]
        beside = self.beside[place[0]]
        memory = self.memory(sum(self.bounds[other][1] for other in beside))
        held = sum(self.held[other] - self.over[other] for other in beside)
        return memory.most(self.held[place] - self.over[place], held)

    def has_room(self, place: Place, size: int, is_above: bool) -> bool:
        most, pause_above, _ = self.bounds[place]
        if self.is_shared:
            return not is_above or self.over[place] + size <= most - pause_above
        return self.held[place] + size <= most

    def may_go_on(self, place: Place) -> bool:
        """Return whether a paused link may: two packets below where it was paused, or all gone."""
        _, pause_above, resume_at = self.bounds[place]
        most = self.below_headroom(place) - (pause_above - resume_at)
        is_empty = self.is_shared and self.held[place] == 0
        return self.over[place] == 0 and (is_empty or self.held[place] <= most)

    def begin(self, place: Place, now_ps: int) -> None:
        """Let a free link take the next frame."""
        server = self.servers[place]
        if server.is_sending or server.free_ps > now_ps:
            return
        subject: bool | Stay
        if server.frames:
            size, subject = PAUSE_BYTES, server.frames.popleft()
        elif server.stays and not server.is_closed:
            size, subject = server.stays[0].size, server.stays[0]
        else:
            return

        wire = server.wire
        server.is_sending = True
        departure_ps = now_ps + wire.sending_ps(size)
        server.free_ps = now_ps + wire.sending_ps(size + wire.gap_bytes)
        self.at(departure_ps, Moment.LEAVES, *place, subject)
        self.at(server.free_ps, Moment.BEGINS, *place)

    def leave(self, place: Place, subject: bool | Stay, now_ps: int) -> None:
        server = self.servers[place]
        server.is_sending = False
        far = self.cables.get(place, (self.tree.switches + self.host_at(place), 0))
        then_ps = now_ps + server.wire.latency_ps
        if isinstance(subject, bool):
            self.at(then_ps, Moment.HEEDS, *far, subject)
            return

        server.stays.popleft()
        server.waiting_bytes -= subject.size
        server.left_byte_ps += subject.size * (now_ps - subject.since_ps)
        server.gone.append((subject.since_ps, now_ps, subject.size))
        if subject.is_held:
            self.was_held.add((*far, then_ps))
        self.at(then_ps, Kind.ARRIVE, *far, subject.packet)

        buffer = place[0], subject.came_by
        self.held[buffer] -= subject.size
        # What is in the headroom leaves first.
        self.over[buffer] = max(self.over[buffer] - subject.size, 0)
        if self.pausing[buffer] and self.may_go_on(buffer):
            self.pausing[buffer] = False
            self.at(now_ps, Moment.TELLS, *buffer, False)

    def tell(self, place: Place, is_pause: bool, now_ps: int) -> None:
        """Send a pause or its end back by the link that fills a buffer."""
        server = self.servers[place]
        server.pauses += is_pause
        server.frames.append(is_pause)
        self.begin(place, now_ps)

    def heed(self, place: Place, is_pause: bool, now_ps: int) -> None:
        if place[0] >= self.tree.switches:
            host = self.hosts[place[0] - self.tree.switches]
            host.is_closed = is_pause
            host.paused_ps += 0 if is_pause else now_ps - host.closed_ps
            host.closed_ps = now_ps
            self.wake(host, now_ps)
            return

        server = self.servers[place]
        if is_pause:
            server.closed_ps = now_ps
            for stay in list(server.stays)[server.is_sending and not self.sends_frame(place) :]:
                stay.is_held = True
            return
        server.paused_ps += now_ps - server.closed_ps
        server.closed_ps = NEVER
        self.begin(place, now_ps)

    def sends_frame(self, place: Place) -> bool:
        """Return whether a control frame is being sent."""
        return any(
            event[1] == Moment.LEAVES and event[2:4] == place and isinstance(event[5], bool)
            for event in self.events
        )

    @property
    def host_paused_ps(self) -> int:
        """Return the sum of the hosts' pauses."""
        still = sum(self.end_ps - host.closed_ps for host in self.hosts if host.is_closed)
        return still + sum(host.paused_ps for host in self.hosts)

    def stands_still(self, now_ps: int) -> bool:
        return False


def bounds(scenario: Scenario, wire: Wire) -> tuple[int, int, int]:
    """Return a buffer's size, and the bounds at which it pauses its link and lets it continue."""
    most = scenario.fabric.queue_bytes
    headroom = scenario.fabric.headroom_bytes
    if headroom is None:
        # What the link carries while news go there and back, behind a packet and another frame.
        frame_ps = wire.sending_ps(PAUSE_BYTES + wire.gap_bytes)
        time_ps = wire.data_slot_ps + 2 * frame_ps + 2 * wire.latency_ps
        carried = -(-time_ps * wire.rate_bps // (8 * PS_PER_SECOND))
        headroom = carried + 2 * wire.data_bytes
    return most, most - headroom, most - headroom - 2 * wire.data_bytes
