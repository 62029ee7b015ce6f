"""The virtual network where switches pause links (priority flow control, IEEE 802.1Qbb).

Buffers belong to where packets come in: each link has `fabric.queue_bytes` at its far end, of which
all that has not left the switch takes its part, wherever it waits. One priority has all packets,
ACKs too; pauses themselves go ahead of them (`ofan_p4.softswitch.pausable`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emulation.virtual.events import HEED, LEAVE, Clock, Event
from emulation.virtual.network import Network, Queued
from emulation.virtual.nodes import Node
from emulation.virtual.ports import Port, memory_of
from emulation.virtual.wires import Wires
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import PAUSE_BYTES, room
from fattree.routes.cycles import cycle
from fattree.shape.addressing import switch_name
from ofan_p4.softswitch.pausable import NEVER, Buffer, Held, PausableQueue
from ofan_p4.softswitch.shared import SharedBuffer
from ofan_p4.softswitch.switch import Pending

# A port of a switch: an outgoing link, or the incoming one beside it.
Place = tuple[int, int]


class LosslessNetwork(Network):
    """One run of a scenario whose switches pause links in place of dropping packets."""

    def __init__(
        self, scenario: Scenario, switches: Sequence[Node], clock: Clock, wires: Wires
    ) -> None:
        super().__init__(scenario, switches, clock, wires)
        self._buffers = [
            _buffers(scenario, switch, ports) for switch, ports in enumerate(self.ports)
        ]
        self._handlers = (*self._handlers, self._heed)
        # What waits for the end of a pause has no event; and whose arrivals were held by one.
        self._held: dict[Place, list[Queued]] = {}
        self._held_arrivals: set[tuple[int, int, int]] = set()
        self._paused_since: dict[Place, int] = {}
        self._integrals: dict[Port, int] = {}

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
        if not buffer.has_room(size):
            port.counts["dropped"] += 1
            self.on_drop(node, number, size)
            self.dropped += 1
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

    def _await_leaving(self, node: int, number: int, queued: Queued) -> None:
        if queued.passage.departure_ps < NEVER:
            super()._await_leaving(node, number, queued)
        else:
            self._held.setdefault((node, number), []).append(queued)

    def _leave(self, time_ps: int, node: int, number: int, queued: Queued) -> None:
        passage = queued.passage
        assert isinstance(passage, Held)
        is_now = passage.departure_ps == time_ps
        port = self.ports[node][number]
        if is_now and passage.is_held:
            self._held_arrivals.add((port.far, port.far_port, time_ps + port.latency_ps))

        super()._leave(time_ps, node, number, queued)
        came_by = queued.pending.ingress_port
        if is_now and self._buffers[node][came_by].give_back(passage.size, number):
            self._tell(time_ps, node, came_by, is_pause=False)

    def _tell(self, time_ps: int, node: int, number: int, is_pause: bool) -> None:
        """Send a pause, or its end, back by the link on which too much comes in."""
        port = self.ports[node][number]
        port.counts["pauses"] += is_pause
        frame = _pausable(port).tell(time_ps, PAUSE_BYTES)
        self._push(
            frame.departure_ps + port.latency_ps,
            kind=HEED,
            node=port.far,
            port=port.far_port,
            payload=is_pause,
        )

    def _heed(self, time_ps: int, node: int, number: int, is_pause: Any) -> None:
        """Pause a host or a port of a switch, or let it go on."""
        self._note(HEED, time_ps, node, port=number, frame=b"pause" if is_pause else b"resume")
        if node >= self.tree.switches:
            self.hosts.heed(node - self.tree.switches, time_ps, is_pause)
            return

        port = self.ports[node][number]
        queue = _pausable(port)
        if is_pause:
            queue.pause(time_ps)
            self._paused_since[node, number] = time_ps
            return

        queue.resume(time_ps)
        port.counts["paused_ps"] += time_ps - self._paused_since.pop((node, number))
        for queued in self._held.pop((node, number), []):
            self._await_leaving(node, number, queued)

    def _still_queued(self) -> list[Event]:
        held = (
            (NEVER, LEAVE, node, number, place, queued)
            for (node, number), waiting in self._held.items()
            for place, queued in enumerate(waiting)
        )
        return [*super()._still_queued(), *held]

    def _count_marks_in_queues(self) -> None:
        # Egress lets packets leave that the end has not seen leaving.
        self._integrals = self._integrals_now()
        super()._count_marks_in_queues()

    def _integrals_now(self) -> dict[Port, int]:
        """Return what has waited at each port until now, in byte picoseconds."""
        now_ps = self.clock.now_ps
        return {
            port: port.queue.occupancy_bytes(now_ps) * now_ps + port.queue.byte_ps
            for ports in self.ports
            for port in ports.values()
        }

    def _queued_beyond_the_end(self) -> dict[Port, int]:
        now_ps = self.clock.now_ps
        for (node, number), since_ps in self._paused_since.items():
            self.ports[node][number].counts["paused_ps"] += now_ps - since_ps
            self._paused_since[node, number] = now_ps

        integrals = self._integrals or self._integrals_now()
        return {port: port.queue.byte_ps - integral for port, integral in integrals.items()}

    def _unfinished(self, now_ps: int) -> str:
        found = cycle(self.waits())
        if not found:
            return super()._unfinished(now_ps)

        ring = " waits for ".join(
            f"{switch_name(self.tree, node)} port {number}" for node, number in (*found, found[0])
        )
        return f"{super()._unfinished(now_ps)}; deadlock, a cycle of paused ports: {ring}"

    def waits(self) -> dict[Place, list[Place]]:
        """Return which paused ports each paused port waits for.

        It waits for the buffer at the far end of its link, and that for the ports at which its
        packets are.
        """
        return {
            (node, number): list(self._blocking(self.ports[node][number]))
            for node, number in self._paused_since
        }

    def _blocking(self, port: Port) -> Iterator[Place]:
        buffer = self._buffers[port.far][port.far_port]
        for number, packets in buffer.waiting.items():
            if packets and (port.far, number) in self._paused_since:
                yield port.far, number


def _buffers(scenario: Scenario, switch: int, ports: Mapping[int, Port]) -> dict[int, Buffer]:
    """Return the buffers of a switch by the ports at which packets come in."""
    rooms = {number: room(scenario, port.level) for number, port in ports.items()}
    memory = memory_of(scenario, switch)
    if memory is None:
        return {number: Buffer(*each) for number, each in rooms.items()}

    return {number: SharedBuffer(*each, memory=memory) for number, each in rooms.items()}


def _pausable(port: Port) -> PausableQueue:
    assert isinstance(port.queue, PausableQueue)
    return port.queue
