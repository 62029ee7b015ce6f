"""Many frames in one call: from ports' rings through machine code to the rings of other ports."""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache

import numpy as np
from llvmlite import ir

from ofan_p4.softswitch.daemon.ports import Port
from ofan_p4.softswitch.daemon.rings import Ring
from ofan_p4.softswitch.native import burst_code, kept, machine, turn_code
from ofan_p4.softswitch.native.engine import NativeFunctions
from ofan_p4.softswitch.native.slots import address
from ofan_p4.softswitch.switch import Counts

# Frames of one port before others have their turn.
BUDGET = 256
_I64 = ctypes.c_int64
_BURST = ctypes.CFUNCTYPE(
    _I64, _I64, _I64, _I64, _I64, _I64, _I64, ctypes.c_void_p, _I64, _I64, _I64, _I64
)
_TURNS = ctypes.CFUNCTYPE(_I64, *[_I64] * 9, ctypes.c_void_p, *[_I64] * 6)


@cache
def compiled_bursts() -> machine.Code:
    """Return both loops, which are the same for all programs: of a burst, and of turns."""
    key = burst_key()
    found = kept.read(key)
    if found is None:
        module = ir.Module("bursts")
        turn_code.add_turns(module, burst_code.add_burst(module))
        found = "", machine.object_code(str(module))
        kept.write(key, *found)

    return machine.load(found[1], burst_code.BURST, turn_code.TURNS)


def burst_key() -> str:
    """Return what names the loops' code where it is kept."""
    return machine.identity(burst_code.BURST.encode())


def burst_function() -> Callable[..., int]:
    """Return `native.burst_code`'s loop; arrays are given by their addresses."""
    return _BURST(compiled_bursts().addresses[0])


def turns_function() -> Callable[..., int]:
    """Return `native.turn_code`'s loop; arrays are given by their addresses."""
    return _TURNS(compiled_bursts().addresses[1])


class Bursts:
    """The rings of a switch's ports; without any there is nothing to run."""

    def __init__(self, ports: Iterable[Port], wanted: bool) -> None:
        every = list(ports)
        self._ports = [port for port in every if wanted and port.is_plain]
        # Whoever waits for a port without a ring waits in Python.
        self._are_all_plain = len(self._ports) == len(every)
        self.words = np.zeros((max(1, len(self._ports)), burst_code.PORT_WORDS), dtype=np.uint64)
        self._of_port = np.zeros(burst_code.PORT_NUMBERS, dtype=np.int64)
        self.report = np.zeros(burst_code.REPORT_WORDS, dtype=np.int64)

        self._function: Callable[..., int] | None = None
        self._turns: Callable[..., int] | None = None
        self._calls = turn_code.library_calls()
        self._others: Sequence[socket.socket] = ()
        self._polled = np.zeros(len(self._ports), dtype=turn_code.POLLED)
        self._polled["fd"] = -1
        self._first = 0
        self._index = {port.number: i for i, port in enumerate(self._ports)}
        for port in self._ports:
            self.renew(port)

    def renew(self, port: Port) -> None:
        """Give a port that may have one a ring for its present socket, or none where it is gone."""
        i = self._index.get(port.number)
        if i is None:
            return

        self._of_port[port.number] = 0
        self._polled[i] = (-1, 0, 0)
        if not port.index:
            return

        # Where the kernel has none to give, sockets do.
        with suppress(OSError, ValueError):
            port.ring = Ring(port.socket, port.name, port.number, self.words[i])
            self._polled[i] = (port.socket.fileno(), turn_code.POLLIN, 0)
            self.hold(port, held=False)

    def hold(self, port: Port, held: bool) -> None:
        """Let frames for a port go through Python while others wait there, and no longer."""
        if port.ring is not None:
            is_held = held or not port.is_immediate
            self._of_port[port.number] = 0 if is_held else self._index[port.number] + 1
            # A port whose rate goes later may be the first that needs it.
            if not is_held and self._function is None:
                self._function = burst_function()
                self._turns = turns_function()

    def run(self, port: Port, functions: NativeFunctions, now_ps: int, counts: Counts) -> int:
        """Take frames from a port's ring; return how that ended (`native.burst_code`)."""
        assert self._function is not None
        report = self.report
        report[:] = 0
        end: int = self._function(
            address(self.words),
            self._index[port.number],
            address(self._of_port),
            *functions.addresses,
            functions.burst_state,
            now_ps,
            BUDGET,
            functions.growth,
            address(report),
        )
        self._count(counts)

        return end

    def can_wait(self) -> bool:
        """Return whether machine code may wait for all ports: each has a ring, or is gone."""
        return (
            self._are_all_plain
            and self._turns is not None
            and all(port.ring is not None or not port.index for port in self._ports)
        )

    def wait_for(self, others: Sequence[socket.socket]) -> None:
        """Let turns end when one of these sockets has something."""
        self._others = others
        ports = self._polled[: len(self._ports)]
        behind = np.zeros(len(others), dtype=turn_code.POLLED)
        behind["fd"] = [each.fileno() for each in others]
        behind["events"] = turn_code.POLLIN
        self._polled = np.concatenate([ports, behind])

    def take_turns(
        self, functions: NativeFunctions, *, deadline_ns: int, start_ns: int, counts: Counts
    ) -> int:
        """Wait and move frames until Python is needed; return why (`native.turn_code`)."""
        assert self._turns is not None
        self.report[:] = 0
        self._polled["found"] = 0
        end = self._turns(
            address(self._polled),
            len(self._polled),
            address(self.words),
            len(self._ports),
            self._first,
            address(self._of_port),
            *functions.addresses,
            functions.burst_state,
            deadline_ns,
            start_ns,
            BUDGET,
            functions.growth,
            address(self.report),
            address(self._calls),
        )
        self._count(counts)
        # A port whose frames all need Python does not keep others waiting.
        self._first = (int(self.report[burst_code.PORT]) + 1) % len(self._ports)

        return end

    def port(self) -> Port:
        """Return the port at which turns have ended."""
        return self._ports[int(self.report[burst_code.PORT])]

    def readable(self) -> list[socket.socket]:
        """Return which of the other sockets have something."""
        found = self._polled["found"][len(self._ports) :]
        return [self._others[i] for i in np.flatnonzero(found).tolist()]

    def _count(self, counts: Counts) -> None:
        report = self.report
        counts.received += int(report[burst_code.TAKEN])
        counts.dropped_by_ingress += int(report[burst_code.DROPPED_INGRESS])
        counts.dropped_by_egress += int(report[burst_code.DROPPED_EGRESS])
        counts.transmitted += int(report[burst_code.TRANSMITTED])

    def frame(self) -> bytes:
        """Return the frame that a burst has handed back."""
        return ctypes.string_at(
            int(self.report[burst_code.FRAME]), int(self.report[burst_code.LENGTH])
        )

    def pending(self) -> list[Port]:
        """Return the ports that have frames for the kernel to send."""
        waiting = np.flatnonzero(self.words[:, burst_code.TX_PENDING]).tolist()
        return [self._ports[i] for i in waiting]
