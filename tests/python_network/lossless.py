"""The virtual network where switches pause links (priority flow control, IEEE 802.1Qbb).

Buffers belong to where packets come in: each link has `fabric.queue_bytes` at its far end, of which
all that has not left the switch takes its part, wherever it waits. One priority has all packets,
ACKs too; pauses themselves go ahead of them (`ofan_p4.softswitch.ports.pausable`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify
from typing import Any

from emulation.virtual.events import HEED, LEAVE, RENEW, TRIP, TURN, Clock, Event
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import PAUSE_BYTES, lasting, storms, watchdog
from fattree.routes.buffers import rooms
from fattree.routes.cycles import cycle
from fattree.routes.demand import Demand
from fattree.shape.addressing import switch_name
from fattree.texts.storms import storm_words
from ofan_p4.softswitch.control.switch import Pending, Switch
from ofan_p4.softswitch.ports.pausable import NEVER, Buffer, Held, PausableQueue
from ofan_p4.softswitch.ports.queue import Passage
from tests.python_network.network import Network, Queued
from tests.python_network.ports import Port, memory_of
from tests.python_network.shared import SharedBuffer
from tests.python_network.wires import Wires

# A port of a switch: an outgoing link, or the incoming one beside it.
Place = tuple[int, int]


@dataclass(slots=True)
class Frame:
    """A control frame of a port: its way out, and whether it is a pause when it begins."""

    port: Port
    passage: Passage
    is_pause: bool
    is_unlucky: bool


@dataclass(slots=True)
class Pause:
    """A pause of a port: since when, until when at most.

    `is_tripped`: the watchdog has acted on it.
    """

    since_ps: int
    until_ps: int
    is_tripped: bool = False


class LosslessNetwork(Network):
    """One run of a scenario with switches that pause links in place of dropping packets."""

    def __init__(
        self,
        demand: Demand,
        switches: Sequence[Switch],
        clock: Clock,
        wires: Wires,
        edge_header_bytes: int = 0,
    ) -> None:
        super().__init__(demand, switches, clock, wires, edge_header_bytes)
        scenario = demand.scenario
        self._buffers = [
            _buffers(scenario, switch, ports) for switch, ports in enumerate(self.ports)
        ]
        self._handlers |= {
            RENEW: self._renew,
            TURN: self._turn,
            TRIP: self._trip,
            HEED: self._heed,
        }
        self._frame_wires = {
            (switch, number): wires.frames_behind(switch, number)
            for switch, ports in enumerate(self.ports)
            for number in ports
        }
        self._watchdog = watchdog(scenario)
        # Packets that wait for the end of a pause have no event; and arrivals that a pause delayed.
        self._held: dict[Place, list[Queued]] = {}
        self._held_arrivals: set[tuple[int, int, int]] = set()
        self._pauses: dict[Place, Pause] = {}
        # The last control frame of each port, and when a pause is sent again.
        self._frames: dict[Place, Frame] = {}
        self._renew_ps: dict[Place, int] = {}
        self._integrals: dict[Port, int] = {}
        for storm in storms(scenario):
            edge, number = self.tree.access(storm.host)
            self._push(storm.from_ps, kind=TURN, node=edge, port=number, payload=storm)

    def _enqueue(
        self,
        node: int,
        time_ps: int,
        pending: Pending,
        *,
        size: int,
        is_marked: bool,
        is_urgent: bool,
    ) -> None:
        came_by, number = pending.ingress_port, pending.egress_port
        buffer = self._buffers[node][came_by]
        port = self.ports[node][number]
        pause = self._pauses.get((node, number))
        is_dropping = pause is not None and pause.is_tripped and self._watchdog.drops
        if is_dropping or not buffer.has_room(size):
            self._drop(node, number, size)
            return

        queue = _pausable(port)
        is_free = not queue.is_paused and queue.occupancy_bytes(time_ps) == 0
        port.counts["victims"] += is_free and (node, came_by, time_ps) in self._held_arrivals
        self._held_arrivals.discard((node, came_by, time_ps))
        super()._enqueue(
            node, time_ps, pending, size=size, is_marked=is_marked, is_urgent=is_urgent
        )
        if buffer.take(size, number):
            self._tell(time_ps, node, came_by, is_pause=True)
            port = self.ports[node][came_by]
            port.counts["pauses"] += 1
            self._renew_later(time_ps, node, came_by)

    def _drop(self, node: int, number: int, size: int) -> None:
        self.ports[node][number].counts["dropped"] += 1
        self.on_drop(node, number, size)
        self.dropped += 1

    def _is_unlucky(self, _port: Port) -> bool:
        # Chance counts transmissions: packets that a watchdog drops are not sent.
        return False

    def _judged(self, node: int, number: int, queued: Queued) -> Queued:
        # Only when a packet has left is it known when its transmission began.
        is_over = queued.passage.departure_ps <= self.clock.now_ps
        return super()._judged(node, number, queued) if is_over else queued

    def _await_leaving(self, node: int, number: int, queued: Queued) -> None:
        if queued.passage.departure_ps < NEVER:
            super()._await_leaving(node, number, queued)
        else:
            self._held.setdefault((node, number), []).append(queued)

    def _leave(self, time_ps: int, node: int, number: int, queued: Queued) -> None:
        passage = queued.passage
        assert isinstance(passage, Held)
        if passage.is_dropped:
            return

        is_now = passage.departure_ps == time_ps
        port = self.ports[node][number]
        if is_now:
            is_unlucky = port.wire.loses_next()
            queued = self._judged(node, number, queued._replace(is_unlucky=is_unlucky))

        if is_now and passage.is_held and not queued.is_lost:
            self._held_arrivals.add((port.far, port.far_port, time_ps + port.latency_ps))

        super()._leave(time_ps, node, number, queued)
        if is_now:
            self._give_back(time_ps, node, number, queued)

    def _give_back(self, time_ps: int, node: int, number: int, queued: Queued) -> None:
        """Take a packet off the buffer of the link by which it came, which may go on then."""
        came_by = queued.pending.ingress_port
        ports = self.ports[node]
        # The buffer holds it as it came, with the header of the link by which it came.
        size = queued.passage.size - ports[number].more_bytes + ports[came_by].more_bytes
        if self._buffers[node][came_by].give_back(size, number):
            self._renew_ps.pop((node, came_by))
            self._tell(time_ps, node, came_by, is_pause=False)

    def _tell(self, time_ps: int, node: int, number: int, is_pause: bool) -> None:
        """Send a pause, or its end, back by the link on which too much comes in.

        A control frame that still waits carries this in place of its earlier order.
        """
        last = self._frames.get((node, number))
        if last is not None and last.passage.start_ps > time_ps:
            last.is_pause = is_pause
            return

        port = self.ports[node][number]
        wire = self._frame_wires[node, number]
        passage = _pausable(port).tell(time_ps, PAUSE_BYTES)
        frame = Frame(port, passage, is_pause, is_unlucky=wire.loses_next())
        self._frames[node, number] = frame
        self._push(
            passage.departure_ps + port.latency_ps,
            kind=HEED,
            node=port.far,
            port=port.far_port,
            payload=frame,
        )

    def _renew_later(self, time_ps: int, node: int, number: int) -> None:
        again_ps = time_ps + lasting(self.scenario, self.ports[node][number].level).again_ps
        self._renew_ps[node, number] = again_ps
        self._push(again_ps, kind=RENEW, node=node, port=number, payload=None)

    def _renew(self, time_ps: int, node: int, number: int, _payload: None) -> None:
        """Send a pause again while its cause lasts, unless another has begun since."""
        if self._renew_ps.get((node, number)) == time_ps:
            self._tell(time_ps, node, number, is_pause=True)
            self._renew_later(time_ps, node, number)

    def _heed(self, time_ps: int, node: int, number: int, frame: Frame) -> None:
        """Pause a host or a port of a switch, or let it go on."""
        if frame.is_unlucky or frame.port.wire.is_down(frame.passage.start_ps):
            return

        is_pause = frame.is_pause
        self._note(HEED, time_ps, node, port=number, frame=b"pause" if is_pause else b"resume")
        if node >= self.tree.switches:
            self.hosts.heed(node - self.tree.switches, time_ps, is_pause)
        elif is_pause:
            lasts_ps = lasting(self.scenario, self.ports[node][number].level).lasts_ps
            self._pause(time_ps, node, number, time_ps + lasts_ps)
        else:
            self._go_on(time_ps, node, number)

    def _pause(self, time_ps: int, node: int, number: int, until_ps: int) -> None:
        """Pause a port until a time, or renew its pause."""
        port_key = node, number
        if port_key not in self._pauses:
            _pausable(self.ports[node][number]).pause(time_ps)
            self._pauses[port_key] = Pause(time_ps, until_ps)
            trips_ps = time_ps + self._watchdog.patience_ps
            if trips_ps < NEVER:
                self._push(trips_ps, kind=TRIP, node=node, port=number, payload=None)

        self._pauses[port_key].until_ps = until_ps
        if until_ps < NEVER:
            self._push(until_ps, kind=TURN, node=node, port=number, payload=None)

    def _turn(self, time_ps: int, node: int, number: int, storm: Any) -> None:
        """Begin a host's storm, or end a pause that has not been renewed."""
        pause = self._pauses.get((node, number))
        if storm is not None:
            self._pause(time_ps, node, number, storm.until_ps)
        elif pause is not None and pause.until_ps == time_ps:
            self._go_on(time_ps, node, number)

    def _trip(self, time_ps: int, node: int, number: int, _payload: None) -> None:
        """Take a pause for a storm if it is the pause that was to end by now."""
        pause = self._pauses.get((node, number))
        if pause is None or pause.since_ps + self._watchdog.patience_ps != time_ps:
            return

        pause.is_tripped = True
        if self._watchdog.drops:
            self._drop_all(time_ps, node, number)

        self._release(time_ps, node, number)

    def _drop_all(self, time_ps: int, node: int, number: int) -> None:
        """Drop all packets that wait at a port."""
        waiting = {
            id(event[5].passage): event[5]
            for event in self._still_queued()
            if event[2:4] == (node, number)
        }
        self._held.pop((node, number), None)
        for passage in _pausable(self.ports[node][number]).clear(time_ps):
            # Marks are counted at egress, where programs also take it out of their queue's length.
            self._egress(time_ps, node, number, waiting[id(passage)])
            self.ports[node][number].counts["dropped"] += 1
            self.dropped += 1
            self._give_back(time_ps, node, number, waiting[id(passage)])

    def _move(self, node: int, number: int) -> None:
        """Move a port's departures, and the arrivals of its control frames, to their new times."""
        port = self.ports[node][number]
        kept = []
        for event in self._events:
            time_ps, kind, event_node, event_port, sequence, payload = event
            if kind == HEED and payload.port is port:
                time_ps = payload.passage.departure_ps + port.latency_ps
            elif (kind, event_node, event_port) == (LEAVE, node, number):
                time_ps = payload.passage.departure_ps

            if time_ps < NEVER:
                kept.append((time_ps, kind, event_node, event_port, sequence, payload))
            else:
                self._held.setdefault((node, number), []).append(payload)

        heapify(kept)
        self._events[:] = kept

    def _go_on(self, time_ps: int, node: int, number: int) -> None:
        """End the pause of a port, if any."""
        pause = self._pauses.pop((node, number), None)
        if pause is not None:
            self.ports[node][number].counts["paused_ps"] += time_ps - pause.since_ps
            self._release(time_ps, node, number)

    def _release(self, time_ps: int, node: int, number: int) -> None:
        """Let the packets of a port begin again."""
        _pausable(self.ports[node][number]).resume(time_ps)
        for queued in self._held.pop((node, number), []):
            self._await_leaving(node, number, queued)

    def _still_queued(self) -> list[Event]:
        held = (
            (NEVER, LEAVE, node, number, index, queued)
            for (node, number), waiting in self._held.items()
            for index, queued in enumerate(waiting)
        )
        queued = (event for event in super()._still_queued() if not event[5].passage.is_dropped)
        return [*queued, *held]

    def _count_marks_in_queues(self) -> None:
        # Egress lets packets leave that the end has not seen leaving.
        self._integrals = self._integrals_now()
        super()._count_marks_in_queues()

    def _integrals_now(self) -> dict[Port, int]:
        """Return the integral of each port's queue until now, in byte picoseconds."""
        now_ps = self.clock.now_ps
        return {
            port: port.queue.occupancy_bytes(now_ps) * now_ps + port.queue.byte_ps
            for ports in self.ports
            for port in ports.values()
        }

    def _queued_beyond_the_end(self) -> dict[Port, int]:
        now_ps = self.clock.now_ps
        for (node, number), pause in self._pauses.items():
            self.ports[node][number].counts["paused_ps"] += now_ps - pause.since_ps
            pause.since_ps = now_ps

        integrals = self._integrals or self._integrals_now()
        return {port: port.queue.byte_ps - integral for port, integral in integrals.items()}

    def _unfinished(self, now_ps: int) -> str:
        held_ps = {
            port_key: self.ports[port_key[0]][port_key[1]].counts["paused_ps"]
            + now_ps
            - pause.since_ps
            for port_key, pause in self._pauses.items()
        }
        storms = storm_words(self.tree, held_ps)
        complaint = super()._unfinished(now_ps) + (f"; {storms}" if storms else "")
        members = cycle(self.waits())
        if not members:
            return complaint

        ring = " waits for ".join(
            f"{switch_name(self.tree, node)} port {number}"
            for node, number in (*members, members[0])
        )
        return f"{complaint}; deadlock, a cycle of paused ports: {ring}"

    def waits(self) -> dict[Place, list[Place]]:
        """Return which paused ports each paused port waits for.

        It waits for the buffer at the far end of its link, and that for the ports at which its
        packets are.
        """
        return {
            (node, number): list(self._blocking(self.ports[node][number]))
            for (node, number), pause in self._pauses.items()
            if not pause.is_tripped
        }

    def _blocking(self, port: Port) -> Iterator[Place]:
        # A host that pauses its link waits for no port.
        if port.far >= self.tree.switches:
            return

        buffer = self._buffers[port.far][port.far_port]
        for number, packets in buffer.waiting.items():
            if packets and (port.far, number) in self._pauses:
                yield port.far, number


def _buffers(scenario: Scenario, switch: int, ports: Mapping[int, Port]) -> dict[int, Buffer]:
    """Return the buffers of a switch by the ports at which packets come in."""
    more_bytes = max(port.more_bytes for port in ports.values())
    thresholds = rooms(scenario, switch, more_bytes=more_bytes)
    memory = memory_of(scenario, switch, more_bytes)
    if memory is None:
        return {number: Buffer(*thresholds[number]) for number in ports}

    return {number: SharedBuffer(*thresholds[number], memory=memory) for number in ports}


def _pausable(port: Port) -> PausableQueue:
    assert isinstance(port.queue, PausableQueue)
    return port.queue
