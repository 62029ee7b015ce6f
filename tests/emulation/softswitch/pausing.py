"""Whole switch processes but for their sockets, in virtual time: frames as bytes on ideal wires."""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.clock import Clock
from ofan_p4.softswitch.daemon.dataplane import Dataplane
from ofan_p4.softswitch.daemon.gates import Gate
from ofan_p4.softswitch.daemon.log import Log
from ofan_p4.softswitch.daemon.offloads import COMPLETE
from ofan_p4.softswitch.daemon.ports import Port
from ofan_p4.softswitch.daemon.sockets import open_link_events
from ofan_p4.softswitch.ports.pausable import Buffer, PausableQueue
from ofan_p4.softswitch.ports.pause_frames import read_pause
from tests.emulation.softswitch.bmv2_json import Bmv2

RATE_BPS = 800 * 10**9
PACKET = 4158
GAP = 20
# At 800 Gbit/s: a packet, with its gap, a control frame.
T, SLOT, FRAME = 41_580, 41_780, 640
LATENCY = 500_000


class VirtualClock(Clock):
    """A virtual clock and its queue of events."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ps = 0
        self._order = count()
        self._events: list[tuple[int, int, Callable[[], None]]] = []

    def __call__(self) -> int:
        return self.now_ps

    def at(self, when_ps: int, action: Callable[[], None]) -> None:
        heappush(self._events, (when_ps, next(self._order), action))

    def run(self, switches: list[Dataplane], until_ps: int) -> None:
        """Let everything happen that is due until then: packets leave before others arrive."""
        while True:
            due = [when for dataplane in switches if (when := dataplane._due_ps()) is not None]
            due += [self._events[0][0]] if self._events else []
            if not due or min(due) > until_ps:
                return

            self.now_ps = min(due)
            for dataplane in switches:
                dataplane._run_due()

            while self._events and self._events[0][0] <= self.now_ps:
                heappop(self._events)[2]()

            for dataplane in switches:
                for port in dataplane.ports.values():
                    if port.socket.waiting:  # type: ignore[attr-defined]
                        dataplane._receive(port)


class End(socket.socket):
    """A port's end of a wire that takes no time: the far end has a sent frame at once."""

    def __init__(self) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.waiting: deque[bytes] = deque()
        self.deliver: Callable[[bytes], None] = lambda _frame: None
        self.is_full = False

    def send(self, data: Any, *_flags: int) -> int:
        if self.is_full:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        self.deliver(bytes(data)[len(COMPLETE) :])
        return len(data)

    def recvmsg(self, *_sizes: Any) -> Any:
        if not self.waiting:
            raise BlockingIOError

        return COMPLETE + self.waiting.popleft(), [], 0, None


def program() -> bytes:
    """Return a program for frames with an address that ends with a priority and an output port."""
    p = Bmv2()
    p.header("h", address=32, priority=8, out=8)
    p.state("start", [p.extract("h")])
    p.run(
        "out",
        [
            p.call("assign", "standard_metadata.egress_spec", "h.out"),
            p.call("assign", "standard_metadata.priority", "h.priority"),
        ],
    )
    return p.source()


def frame_to(port: int, number: int, priority: int = 0, size: int = PACKET) -> bytes:
    """Return a frame that leaves a switch by a port."""
    head = bytes([2, 0, 0, 0, priority, port]) + bytes(6) + b"\x88\xb5" + number.to_bytes(4, "big")
    return head.ljust(size, b"\0")


def switch(
    clock: VirtualClock,
    ports: int,
    limits: tuple[int, int, int],
    engine: Engine = "python",
    priorities: int = 1,
) -> Dataplane:
    """Return a switch with pausing ports, from 1 on, all of the same room, rate and latency."""
    device = Switch(
        1, clock, random=lambda low, _high: low, ports=range(1, ports + 1), engine=engine
    )
    device.load(program())
    made = {}
    for number in range(1, ports + 1):
        gates = tuple(
            Gate(RATE_BPS, PausableQueue(RATE_BPS, GAP), Buffer(*limits)) for _ in range(priorities)
        )
        made[number] = Port(
            number,
            f"p{number}",
            End(),
            tuple(gate.queue for gate in gates),
            is_immediate=False,
            delay_ps=LATENCY,
            gates=gates,
            address=bytes([2, 0, 0, 0, 0, 0x10 + number]),
        )

    return Dataplane(device, made, clock, open_link_events(), Log("off", None))


@dataclass
class Host:
    """A host that sends frames back to back at line rate, but for pauses, and records arrivals."""

    clock: VirtualClock
    far: End
    out: int
    frames: int
    sent: int = 0
    free_ps: int = 0
    is_paused: bool = False
    received: list[tuple[int, bytes]] = field(default_factory=list)
    pauses: list[tuple[int, int]] = field(default_factory=list)

    def start(self) -> None:
        self.clock.at(self.clock.now_ps, self._next)

    def take(self, frame: bytes) -> None:
        told = read_pause(frame)
        if told is None:
            self.received.append((self.clock.now_ps, frame))
            return

        self.pauses.append((self.clock.now_ps, told[0]))
        self.is_paused = told[0] > 0
        if not self.is_paused:
            self.clock.at(max(self.clock.now_ps, self.free_ps), self._next)

    def _next(self) -> None:
        now_ps = self.clock.now_ps
        if self.is_paused or self.sent == self.frames or now_ps < self.free_ps:
            return

        frame = frame_to(self.out, self.sent)
        self.sent += 1
        self.free_ps = now_ps + SLOT
        self.clock.at(now_ps + T + LATENCY, lambda: self.far.waiting.append(frame))
        self.clock.at(self.free_ps, self._next)


def end_of(dataplane: Dataplane, number: int) -> End:
    """Return a port's end of its wire."""
    end = dataplane.ports[number].socket
    assert isinstance(end, End)
    return end


def attach(clock: VirtualClock, dataplane: Dataplane, number: int, out: int, frames: int) -> Host:
    """Put a host on a port; its frames leave the switch by port `out`."""
    far = end_of(dataplane, number)
    host = Host(clock, far, out, frames)
    far.deliver = host.take
    return host


def join(first: End, second: End, clock: Clock) -> list[tuple[int, str, bytes]]:
    """Join two ports by a wire; return its crossings: the time, the direction, the frame."""
    seen: list[tuple[int, str, bytes]] = []

    def crossing(way: str, to: End) -> Callable[[bytes], None]:
        def cross(frame: bytes) -> None:
            seen.append((clock(), way, frame))
            to.waiting.append(frame)

        return cross

    first.deliver = crossing("forth", second)
    second.deliver = crossing("back", first)
    return seen


def counts(dataplane: Dataplane, name: str) -> Iterator[Any]:
    """Yield a counter of every port."""
    for port in dataplane.ports.values():
        yield port.statistics(dataplane.switch.clock())[name]
