"""Priority flow control on real links (IEEE 802.1Qbb): which ports wait, and whom they pause.

Queue n of a port has the traffic of priority n. Buffers belong to the ports where packets come in;
a sender of too much is paused for the longest time that a frame can hold, again and again until
enough has left, so that a lost frame stops no sender for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ofan_p4.softswitch.base.units import PS_PER_US
from ofan_p4.softswitch.control.switch import Pending
from ofan_p4.softswitch.daemon.gates import Gate
from ofan_p4.softswitch.daemon.ports import Line, Port
from ofan_p4.softswitch.ports.pausable import NEVER, Buffer
from ofan_p4.softswitch.ports.pause_frames import (
    MOST_QUANTA,
    WIRE_BYTES,
    is_control,
    pause_frame,
    pause_ps,
    read_pause,
)

Action = Callable[[int], None]
# How soon an interface that takes no more is tried again.
RETRY_PS = 200 * PS_PER_US


class Pauses:
    """The gates and buffers of a switch's ports where these pause, which all do or none.

    `at` schedules a call with its time; `moved` is called for a port's line with new departures.
    """

    def __init__(
        self,
        ports: Mapping[int, Port],
        *,
        clock: Callable[[], int],
        at: Callable[[int, Action], None],
        moved: Callable[[Port, Line], None],
    ) -> None:
        self._ports = ports
        self._clock = clock
        self._at = at
        self._moved = moved
        # The priorities of ports that are paused, and a time before which no pause ends: no events,
        # as each frame may name another time, earlier or later.
        self._paused: dict[Gate, tuple[Port, Line]] = {}
        self.next_end_ps = NEVER
        # The controller's packets have come in by no link, and have as much buffer as a port's.
        capacity = max(
            (gate.buffer.most for port in ports.values() for gate in port.gates), default=0
        )
        self._of_controller = Buffer(capacity, pause_above=capacity, resume_at=0)

    def takes(self, port: Port, frame: bytes) -> bool:
        """Heed a control frame; return whether it is a control frame, which no program gets."""
        if not is_control(frame):
            return False

        port.heard(frame)
        quanta = read_pause(frame)
        if quanta is None:
            port.counts.control_malformed += 1
            return True

        now_ps = self._clock()
        for priority, gate in enumerate(port.gates):
            told = quanta.get(priority)
            if told:
                gate.pause(now_ps, now_ps + pause_ps(told, gate.rate_bps))
                self._paused[gate] = port, port.lines[priority]
                self.next_end_ps = min(self.next_end_ps, gate.due_ps)
            elif told == 0:
                self._go_on(gate, port, port.lines[priority], now_ps)

        return True

    def room(self, port: Port, pending: Pending) -> Buffer | None:
        """Return the buffer of the port that a copy came by, if both ports take the copy."""
        source = self._ports.get(pending.ingress_port)
        buffer = self._of_controller if source is None else source.gates[pending.priority].buffer
        is_dropping = port.gates[pending.priority].is_dropping
        return None if is_dropping or not buffer.has_room(pending.length) else buffer

    def full(self, pending: Pending) -> None:
        """Pause the link by which a copy came, as its buffer asks for that."""
        source = self._ports.get(pending.ingress_port)
        if source is not None:
            source.counts.pauses += 1
            self._pause(source, pending.priority, self._clock())

    def drained(self, pending: Pending) -> None:
        """Let the link by which a copy came go on, as its buffer has room again."""
        source = self._ports.get(pending.ingress_port)
        if source is not None:
            self._tell(source, pending.priority, quanta=0)

    def link_changed(self, port: Port) -> None:
        """Forget the far end's pauses, as it may be another switch by now, and send ours anew."""
        now_ps = self._clock()
        for priority, gate in enumerate(port.gates):
            self._go_on(gate, port, port.lines[priority], now_ps)
            if port.is_up and gate.buffer.is_pausing:
                self._pause(port, priority, now_ps)

    def end_due(self, now_ps: int) -> None:
        """End the pauses that no frame has renewed, and those that are storms."""
        if now_ps < self.next_end_ps:
            return

        for gate, (port, line) in list(self._paused.items()):
            if gate.until_ps <= now_ps:
                self._go_on(gate, port, line, gate.until_ps)
            elif gate.due_ps <= now_ps:
                self._take_for_storm(gate, port, line, gate.due_ps)

        self.next_end_ps = min((gate.due_ps for gate in self._paused), default=NEVER)

    def _take_for_storm(self, gate: Gate, port: Port, line: Line, now_ps: int) -> None:
        """Drop packets that a pause holds for too long, or send them."""
        dropped = [line.waiting.pop() for _ in range(gate.take_for_storm(now_ps))]
        for pending, passage, buffer in reversed(dropped):
            gate.queue.drops += 1
            if buffer is not None and buffer.give_back(passage.size, port.number):
                self.drained(pending)

        self._moved(port, line)

    def _go_on(self, gate: Gate, port: Port, line: Line, now_ps: int) -> None:
        self._paused.pop(gate, None)
        gate.go_on(now_ps)
        self._moved(port, line)

    def _pause(self, port: Port, priority: int, now_ps: int) -> None:
        """Pause a link for the longest time, and again when half of that is over."""
        gate = port.gates[priority]
        gate.told_ps = now_ps
        self._tell(port, priority, quanta=MOST_QUANTA)
        again_ps = now_ps + pause_ps(MOST_QUANTA // 2, gate.rate_bps)
        self._at(again_ps, partial(self._renew, port, priority, now_ps))

    def _renew(self, port: Port, priority: int, told_ps: int, when_ps: int) -> None:
        gate = port.gates[priority]
        # A later pause has a renewal of its own.
        if gate.buffer.is_pausing and gate.told_ps == told_ps:
            self._pause(port, priority, when_ps)

    def _tell(self, port: Port, priority: int, quanta: int) -> None:
        """Send a control frame, ahead of all that waits at the port."""
        passage = port.gates[priority].queue.tell(self._clock(), WIRE_BYTES)
        # Nothing changes when it leaves.
        self._at(passage.departure_ps + port.delay_ps, partial(self._send, port, priority, quanta))

    def _send(self, port: Port, priority: int, quanta: int, when_ps: int) -> None:
        if not port.tell(pause_frame(port.address, {priority: quanta})):
            self._at(when_ps + RETRY_PS, partial(self._send_again, port, priority))

    def _send_again(self, port: Port, priority: int, when_ps: int) -> None:
        # The state of now: a pause must not come after its end.
        quanta = MOST_QUANTA if port.gates[priority].buffer.is_pausing else 0
        self._send(port, priority, quanta, when_ps)
