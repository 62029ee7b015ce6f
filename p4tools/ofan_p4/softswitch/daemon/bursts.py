"""Many frames in one call: from ports' rings through machine code to the rings of other ports."""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from ofan_p4.softswitch.control.switch import Counts
from ofan_p4.softswitch.daemon.ports import Port
from ofan_p4.softswitch.daemon.rings import Ring
from ofan_p4.softswitch.native import burst_code, kept, machine, turn_code
from ofan_p4.softswitch.native.engine import NativeFunctions
from ofan_p4.softswitch.native.slots import address

# Frames of one port before others have their turn.
BUDGET = 256
_I64 = ctypes.c_int64
_TURNS = ctypes.CFUNCTYPE(_I64, *[_I64] * 9, ctypes.c_void_p, *[_I64] * 6)


@cache
def compiled_bursts() -> machine.Code:
    """Return both loops, which are the same for all programs: of a burst, and of turns."""
    key = burst_key()
    code = kept.read(key)
    if code is None:
        module = ir.Module("bursts")
        turn_code.add_turns(module, burst_code.add_burst(module))
        code = "", machine.object_code(str(module))
        kept.write(key, *code)

    return machine.load(code[1], burst_code.BURST, turn_code.TURNS)


def burst_key() -> str:
    """Return the key of the loops' code in its store."""
    return machine.identity(burst_code.BURST.encode())


def turns_function() -> Callable[..., int]:
    """Return `native.turn_code`'s loop; arrays are given by their addresses."""
    return _TURNS(compiled_bursts().addresses[1])


class Bursts:
    """The sockets of a switch, and the rings of its ports: those that send at once and unseen.

    Each port has two of the `polled`, for a socket with a ring and without it; at most one entry
    holds its socket. Behind them are the sockets of `wait_for`.
    """

    def __init__(self, ports: Iterable[Port], wanted: bool) -> None:
        self._ports = list(ports)
        self._wanted = wanted
        self.words = np.zeros((max(1, len(self._ports)), burst_code.PORT_WORDS), dtype=np.uint64)
        self._of_port = np.zeros(burst_code.PORT_NUMBERS, dtype=np.int64)
        self.report = np.zeros(burst_code.REPORT_WORDS, dtype=np.int64)

        self._turns = turns_function()
        self._calls = turn_code.library_calls()
        self._polled = _polled(2 * len(self._ports))
        self._first = 0
        self._is_readable = False
        self._index = {port.number: i for i, port in enumerate(self._ports)}
        for port in self._ports:
            self.renew(port)

        self.wait_for(())

    def renew(self, port: Port) -> None:
        """Wait for a port's present socket, with a ring if it may have a ring."""
        i = self._index[port.number]
        sockets = self._polled["fd"]
        with_ring, without = i, len(self._ports) + i
        sockets[[with_ring, without]] = -1
        if not port.index:
            self.hold(port, held=True)
            return

        # Where the kernel has no ring to give, sockets do.
        with suppress(OSError, ValueError):
            if self._wanted and port.is_plain:
                port.ring = Ring(port.socket, port.name, port.number, self.words[i])

        sockets[without if port.ring is None else with_ring] = port.socket.fileno()
        self.hold(port, held=False)

    def hold(self, port: Port, held: bool) -> None:
        """Let frames for a port go through Python while others wait there, and no longer."""
        if port.number < burst_code.PORT_NUMBERS:
            is_held = held or port.ring is None or not port.is_immediate
            self._of_port[port.number] = 0 if is_held else self._index[port.number] + 1

    def wait_for(self, sockets: Sequence[socket.socket]) -> None:
        """Let turns end when a socket of these is readable."""
        self._others = sockets
        behind = _polled(len(sockets))
        behind["fd"] = [socket_.fileno() for socket_ in sockets]
        self._polled = np.concatenate([self._polled[: 2 * len(self._ports)], behind])
        # Numpy is slow at naming an address.
        self._addresses = [
            address(array)
            for array in (self._polled, self.words, self._of_port, self.report, self._calls)
        ]

    def take_turns(
        self, functions: NativeFunctions | None, *, deadline_ns: int, start_ns: int, counts: Counts
    ) -> int:
        """Wait and move frames until Python is needed; return why (`native.turn_code`).

        Without functions all frames need Python.
        """
        self.report[:] = 0
        program: tuple[Any, ...] = (0, 0, 0, None)
        if functions is not None:
            functions.settle()
            program = *functions.addresses, functions.burst_state

        polled, ring_words, of_port, report, calls = self._addresses
        end = self._turns(
            *(polled, len(self._polled), ring_words, len(self._ports), self._first, of_port),
            *program,
            *(deadline_ns, start_ns, BUDGET),
            *(0 if functions is None else functions.growth, report, calls),
        )
        self._count(counts)

        return end

    def port(self) -> Port:
        """Return the port at which turns have ended."""
        return self._ports[int(self.report[burst_code.PORT])]

    def readable(self) -> tuple[list[Port], list[socket.socket]]:
        """Return the ports that have frames for Python, and the other sockets with something."""
        if not self._is_readable:
            return [], []

        count = len(self._ports)
        readable = np.flatnonzero(self._polled["found"][count:]).tolist()
        return (
            [self._ports[i] for i in readable if i < count],
            [self._others[i - count] for i in readable if i >= count],
        )

    def _count(self, counts: Counts) -> None:
        report = self.report.tolist()
        counts.received += report[burst_code.TAKEN]
        counts.dropped_by_ingress += report[burst_code.DROPPED_INGRESS]
        counts.dropped_by_egress += report[burst_code.DROPPED_EGRESS]
        counts.transmitted += report[burst_code.TRANSMITTED]
        # A port with frames for Python only does not delay other ports.
        self._is_readable = report[burst_code.READABLE] > 0
        self._first = (report[burst_code.PORT] + 1) % len(self.words)

    def frame(self) -> bytes:
        """Return the frame that a burst has handed back."""
        return ctypes.string_at(
            int(self.report[burst_code.FRAME]), int(self.report[burst_code.LENGTH])
        )


def _polled(count: int) -> NDArray[Any]:
    """Return that many structs pollfd, of no socket yet, to wait until something has come."""
    made = np.zeros(count, dtype=turn_code.POLLED)
    made["fd"] = -1
    made["events"] = turn_code.POLLIN
    return made
