"""The loop that moves packets.

One thread owns switch, queues and sockets; everything else hands it work with `submit`. Work that
takes long is a generator: between two of its steps packets get their turn, so that a controller's
large batch does not stop traffic. Nor does it stop other calls that touch no table; those that do
wait for it, as readers and writers of P4Runtime do for each other.
"""

from __future__ import annotations

import heapq
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, TypeVar

from ofan_p4.softswitch.base.units import PS_PER_US
from ofan_p4.softswitch.control.switch import Pending, Switch, Transmit
from ofan_p4.softswitch.daemon.bursts import Bursts
from ofan_p4.softswitch.daemon.clock import PS_PER_NS, Clock
from ofan_p4.softswitch.daemon.links import Links
from ofan_p4.softswitch.daemon.log import Log
from ofan_p4.softswitch.daemon.options import DEFAULT_DEPTH
from ofan_p4.softswitch.daemon.pausing import RETRY_PS, Action, Pauses
from ofan_p4.softswitch.daemon.ports import BLOCKED, Line, Port, Waiting
from ofan_p4.softswitch.daemon.sockets import drain
from ofan_p4.softswitch.native import burst_code, turn_code
from ofan_p4.softswitch.ports.pausable import NEVER
from ofan_p4.softswitch.ports.queue import Passage

# Frames from one port before another has its turn.
BATCH = 64
# How long work of the controller may hold up packets.
SLICE_NS = 500_000
Work = Iterator[None]
T = TypeVar("T")
# How many copies wait for an interface that takes no more.
MAX_WAITING = DEFAULT_DEPTH
# A warning, once a port.
CUTTING = (
    "a host leaves long segments to its interface, and the switch cuts them, which is slow;"
    " its end does it with: ethtool -K INTERFACE tx off tso off gso off"
)


class Dataplane:
    """Runs one switch on its ports until `stop` is called.

    `tick` and `next_tick_ps` are the control plane's own timers; `others` maps further readable
    sockets to handlers.
    """

    def __init__(
        self,
        switch: Switch,
        ports: Mapping[int, Port],
        clock: Clock,
        link_events: socket.socket,
        log: Log,
    ) -> None:
        self.switch = switch
        self.ports = ports
        self.tick: Callable[[], None] = lambda: None
        self.next_tick_ps: Callable[[], int | None] = lambda: None
        self._clock = clock
        self._log = log
        wants_rings = switch.engine != "python" and not log.wants("debug")
        self._bursts = Bursts(ports.values(), wants_rings)
        self._files = [
            file for port in ports.values() for file in (port.pcap_in, port.pcap_out) if file
        ]
        self._pauses = Pauses(ports, clock=clock, at=self._at, moved=self._await)
        self._links = Links(
            switch,
            ports,
            bursts=self._bursts,
            events=link_events,
            on_change=self._pauses.link_changed,
        )
        self.others: dict[socket.socket, Callable[[], None]] = {link_events: self._links.changed}
        self._events: list[tuple[int, int, Action]] = []
        # Events of the same time stay in order, and are never compared any further.
        self._order = count()
        # The loop's greatest lateness at a due event.
        self.late_ps = 0
        # Table work is done in order, one request after the other; short work goes in between.
        self._work: deque[Work] = deque()
        self._short: deque[Work] = deque()
        self._waker, self._wakened = socket.socketpair()
        self._waker.setblocking(False)
        self._wakened.setblocking(False)
        self._stopping = False

    def submit(self, work: Work, is_short: bool = False) -> None:
        """Run a generator between packets; from any thread.

        Work that `is_short` touches no table, and does not wait for table work.
        """
        (self._short if is_short else self._work).append(work)
        self.wake()

    def wake(self) -> None:
        """Make the loop look at its work; from any thread or signal handler."""
        # A full pair means that the loop is going to wake up anyway.
        with suppress(BlockingIOError):
            self._waker.send(b"\0")

    def stop(self) -> None:
        """End `run` soon; from any thread or signal handler."""
        self._stopping = True
        self.wake()

    def heed_signals(self) -> None:
        """Let a signal wake the loop also when it comes right before the loop begins to wait."""
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        """Move packets until stopped."""
        self._links.changed()
        self._bursts.wait_for([*self.others, self._wakened])
        while not self._stopping:
            # One pass: arrived frames, due events, the controller's requests.
            self._take_turns()
            self._run_due()
            if self._short:
                self._do(self._short)

            if self._work:
                self._do(self._work)

    def rates_changed(self, port: Port) -> None:
        """Switch a port between queues with a rate and sending at once, as its queues now say."""
        # Packets that still wait are not overtaken: with them the port goes on having queues.
        port.is_immediate = not any(line.queue.has_rate or line.waiting for line in port.lines)
        self._bursts.hold(port, held=not port.is_immediate)
        for line in port.lines:
            self._await(port, line)

    def close(self) -> None:
        """Close the sockets of the loop and of the ports."""
        for port in self.ports.values():
            port.close()

        for sock in (self._waker, self._wakened, self._links.events):
            sock.close()

    def enqueue(self, copies: Sequence[Pending]) -> None:
        """Put copies into the queues of their ports."""
        for pending in copies:
            port = self.ports.get(pending.egress_port)
            # The CPU port has no interface, and a port without rate no queue that could fill.
            if port is None or (port.is_immediate and not port.lines[0].waiting and port.takes):
                pending.enq_timestamp = self._clock() // PS_PER_US
                self._leave(pending, 0, 0)
            else:
                self._offer(port, pending)

    def _take_turns(self) -> None:
        """Wait, and move frames until an event is due; machine code moves those that it can."""
        pipeline = self.switch.pipeline
        end = self._bursts.take_turns(
            None if pipeline is None else pipeline.functions,
            deadline_ns=self._deadline_ns(),
            start_ns=self._clock.start_ns,
            counts=self.switch.counts,
        )
        if end <= burst_code.ASKED_EGRESS:
            self._go_on(self._bursts.port(), end)
        elif end == turn_code.FAILED:
            self._links.changed()
        elif end == turn_code.UNSENT:
            self._push(self._bursts.port())
        elif end == turn_code.DUE:
            # A good moment for the files, which readers may be following.
            for file in self._files:
                file.flush()

        # However that has ended: sockets that machine code does not read have their turn, too.
        self._answer(*self._bursts.readable())

    def _answer(self, ports: Sequence[Port], sockets: Sequence[socket.socket]) -> None:
        for port in ports:
            self._receive(port)

        for sock in sockets:
            if sock is self._wakened:
                drain(sock)
            else:
                self.others[sock]()

    def _deadline_ns(self) -> int:
        # With work waiting the loop only looks; otherwise it sleeps until the next event.
        if self._work or self._short:
            return 0

        due_ps = self._due_ps()
        # Not before it is due.
        return turn_code.NEVER if due_ps is None else self._clock.start_ns - -due_ps // PS_PER_NS

    def _due_ps(self) -> int | None:
        """Return when the next event, a pause's end or the control plane's tick is due."""
        first = self._events[0][0] if self._events else NEVER
        tick = self.next_tick_ps()
        due_ps = min(first, self._pauses.next_end_ps, NEVER if tick is None else tick)
        return due_ps if due_ps < NEVER else None

    def _go_on(self, port: Port, end: int) -> None:
        """Go on with a frame where a burst has handed it back."""
        assert port.ring is not None
        report = self._bursts.report
        if end == burst_code.PASSED:
            copies = self._guarded(
                self.switch.passed,
                port.number,
                self._bursts.frame(),
                int(report[burst_code.RESULT]),
            )
            port.ring.release()
            self.enqueue(copies)
        elif end == burst_code.ASKED_EGRESS:
            out = self._bursts.frame(), int(report[burst_code.RESULT]), int(report[burst_code.OUT])
            sent = self._guarded(self.switch.left, port.number, *out)
            port.ring.release()
            self._send(sent, None)
        else:
            # Without machine code others of the port would need Python just as well.
            pipeline = self.switch.pipeline
            is_single = pipeline is not None and pipeline.functions is not None
            self._receive(port, 1 if is_single else BATCH)

    def _receive(self, port: Port, count: int = BATCH) -> None:
        """Take at most `count` frames from a port."""
        for _ in range(count):
            try:
                frames = port.receive()
            # Nothing left at this port.
            except BlockingIOError:
                return
            except OSError:
                self._links.changed()
                return

            if len(frames) > 1 and port.counts.cut_frames == 1:
                self._log.write("warn", f"port {port.number} ({port.name}): {CUTTING}")

            for frame in frames:
                if self._events:
                    self._run_due()

                if port.gates and self._pauses.takes(port, frame):
                    continue

                port.received(frame)
                self.enqueue(self._guarded(self.switch.ingress, port.number, frame))

    def _at(self, when_ps: int, action: Action) -> None:
        heapq.heappush(self._events, (when_ps, next(self._order), action))

    def _guarded(self, process: Callable[..., list[T]], *arguments: Any) -> list[T]:
        """Run the pipeline; a program that makes our code fail costs its packet, not the switch."""
        try:
            return process(*arguments)
        except Exception as error:
            self._report(error)
            return []

    def _report(self, error: Exception) -> None:
        # Counted like every drop: the sums in `stats` must come out.
        self.switch.counts.dropped_internal_error += 1
        self._log.write("error", f"internal error: {error!r}")

    def _offer(self, port: Port, pending: Pending) -> None:
        """Queue a copy, or drop it."""
        # Without rates frames wait for the interface alone, as they came.
        priority = 0 if port.is_immediate else pending.priority
        # There is no such queue: dropped and counted.
        if priority >= len(port.lines):
            port.counts.priority_drops += 1
            return

        line = port.lines[priority]
        queue, waiting = line.queue, line.waiting
        buffer = None
        if port.gates:
            # Buffers say how much may wait, for whatever reason.
            buffer = self._pauses.room(port, pending)
            if buffer is None:
                queue.drops += 1
                return
        elif line.due_ps == BLOCKED and len(waiting) >= MAX_WAITING:
            port.counts.waiting_drops += 1
            return

        now = self._clock()
        size = pending.length
        passage = Passage(size, now, now) if port.is_immediate else queue.offer(now, size)
        if passage is None:
            return

        # The queue that the packet meets, without itself.
        pending.enq_qdepth = len(waiting)
        pending.enq_timestamp = now // PS_PER_US
        waiting.append(Waiting(pending, passage, buffer))
        if buffer is not None and buffer.take(size, port.number):
            self._pauses.full(pending)

        self._await(port, line)

    def _await(self, port: Port, line: Line) -> None:
        """Look at a line when its first copy may leave, as far as that is known."""
        if not line.waiting:
            return

        departure_ps = line.waiting[0].passage.departure_ps
        if departure_ps < line.due_ps:
            line.due_ps = departure_ps
            self._at(departure_ps, partial(self._serve, port, line))

    def _serve(self, port: Port, line: Line, when_ps: int) -> None:
        """Let the copies leave that may at a time, even if the loop comes to it later."""
        # Another time has been foreseen since.
        if when_ps != line.due_ps:
            return

        waiting = line.waiting
        while waiting and waiting[0].passage.departure_ps <= when_ps:
            if port.is_blocked and not port.takes:
                line.due_ps = BLOCKED
                self._retry_later(port)
                return

            pending, passage, buffer = waiting.popleft()
            # Both ends in whole microseconds, as v1model has them.
            waited_us = when_ps // PS_PER_US - pending.enq_timestamp
            self._leave(pending, len(waiting), waited_us, when_ps)
            if buffer is not None and buffer.give_back(passage.size, port.number):
                self._pauses.drained(pending)

        line.due_ps = NEVER
        self._await(port, line)

    def _push(self, port: Port) -> None:
        if not port.push():
            self._retry_later(port)

    def _retry_later(self, port: Port) -> None:
        # Polling for room would succeed at once in a ring from which the kernel takes no frame.
        if port.is_retrying:
            return

        port.is_retrying = True
        self._bursts.hold(port, held=True)
        self._at(self._clock() + RETRY_PS, partial(self._retry, port))

    def _retry(self, port: Port, _when_ps: int) -> None:
        """Send the packets that wait for an interface, as many as it takes now."""
        port.is_retrying = False
        is_free = port.push()
        for line in port.lines:
            if line.due_ps == BLOCKED:
                line.due_ps = self._clock()
                self._serve(port, line, line.due_ps)

        if port.is_blocked or not (is_free or port.push()):
            self._retry_later(port)
        elif not port.is_retrying:
            self._bursts.hold(port, held=False)

    def _run_due(self) -> None:
        events = self._events
        now = self._clock()
        self._pauses.end_due(now)
        if events and now - events[0][0] > self.late_ps:
            self.late_ps = now - events[0][0]

        while events and events[0][0] <= now:
            when, _, action = heapq.heappop(events)
            action(when)

        tick = self.next_tick_ps()
        if tick is not None and tick <= now:
            self.tick()

    def _leave(self, pending: Pending, depth: int, waited_us: int, when: int | None = None) -> None:
        """Send a copy that has left its queue."""
        self._send(self._guarded(self.switch.egress, pending, depth, waited_us), when)

    def _send(self, frames: Sequence[Transmit], when: int | None) -> None:
        """Put frames on their links, `when` they have left their queue, else now."""
        for sent in frames:
            port = self.ports.get(sent.port)
            if port is None:
                continue

            if port.delay_ps:
                # From the departure, not from now: lateness of the loop does not add to the link's
                # delay.
                arrival = (self._clock() if when is None else when) + port.delay_ps
                self._at(arrival, partial(_transmit, port, sent.frame))
            else:
                port.transmit(sent.frame)
                if port.stuck:
                    self._retry_later(port)

        # Egress may have made clones, which go through the queues like any packet.
        again = self.switch.take_requeued()
        if again:
            self.enqueue(again)

    def _do(self, work: deque[Work]) -> None:
        """Take steps of waiting work for a while; unfinished work stays first in line."""
        deadline = time.monotonic_ns() + SLICE_NS
        while work and time.monotonic_ns() < deadline:
            # A sentinel that no generator yields: this generator is done.
            if next(work[0], self) is self:
                work.popleft()

        self.enqueue(self.switch.take_requeued())


def _transmit(port: Port, frame: bytes, _when_ps: int) -> None:
    port.transmit(frame)
