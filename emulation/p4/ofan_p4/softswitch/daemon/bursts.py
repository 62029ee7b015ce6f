"""Many frames in one call: from a port's ring through machine code to the rings of other ports."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache

import numpy as np

from ofan_p4.softswitch.daemon.ports import Port
from ofan_p4.softswitch.daemon.rings import Ring
from ofan_p4.softswitch.native import burst_code as at
from ofan_p4.softswitch.native import kept, machine
from ofan_p4.softswitch.native.engine import NativeFunctions
from ofan_p4.softswitch.native.slots import address
from ofan_p4.softswitch.switch import Counts

# Frames of one port before others have their turn.
BUDGET = 256
_I64 = ctypes.c_int64
_BURST = ctypes.CFUNCTYPE(
    _I64, _I64, _I64, _I64, _I64, _I64, _I64, ctypes.c_void_p, _I64, _I64, _I64, _I64
)


@cache
def burst_code() -> machine.Code:
    """Return the loop, which is the same for all programs."""
    key = burst_key()
    found = kept.read(key)
    if found is None:
        found = "", machine.object_code(at.burst_module())
        kept.write(key, *found)

    return machine.load(found[1], at.BURST)


def burst_key() -> str:
    """Return what names the loop's code where it is kept."""
    return machine.identity(at.BURST.encode())


def burst_function() -> Callable[..., int]:
    """Return `native.burst_code`'s loop; arrays are given by their addresses."""
    return _BURST(burst_code().addresses[0])


class Bursts:
    """The rings of a switch's ports; without any there is nothing to run."""

    def __init__(self, ports: Iterable[Port], wanted: bool) -> None:
        self._ports = [port for port in ports if wanted and port.is_plain]
        self.words = np.zeros((max(1, len(self._ports)), at.PORT_WORDS), dtype=np.uint64)
        self._of_port = np.zeros(at.PORT_NUMBERS, dtype=np.int64)
        self.report = np.zeros(at.REPORT_WORDS, dtype=np.int64)

        self._function: Callable[..., int] | None = None
        self._index = {port.number: i for i, port in enumerate(self._ports)}
        for port in self._ports:
            self.renew(port)

    def renew(self, port: Port) -> None:
        """Give a port that may have one a ring for its present socket, or none where it is gone."""
        i = self._index.get(port.number)
        if i is None:
            return

        self._of_port[port.number] = 0
        if not port.index:
            return

        # Where the kernel has none to give, sockets do.
        with suppress(OSError, ValueError):
            port.ring = Ring(port.socket, port.name, port.number, self.words[i])
            self.hold(port, held=False)

    def hold(self, port: Port, held: bool) -> None:
        """Let frames for a port go through Python while others wait there, and no longer."""
        if port.ring is not None:
            is_held = held or not port.is_immediate
            self._of_port[port.number] = 0 if is_held else self._index[port.number] + 1
            # A port whose rate goes later may be the first that needs it.
            if not is_held and self._function is None:
                self._function = burst_function()

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
        counts.received += int(report[at.TAKEN])
        counts.dropped_by_ingress += int(report[at.DROPPED_INGRESS])
        counts.dropped_by_egress += int(report[at.DROPPED_EGRESS])
        counts.transmitted += int(report[at.TRANSMITTED])

        return end

    def frame(self) -> bytes:
        """Return the frame that a burst has handed back."""
        return ctypes.string_at(int(self.report[at.FRAME]), int(self.report[at.LENGTH]))

    def pending(self) -> list[Port]:
        """Return the ports that have frames for the kernel to send."""
        waiting = np.flatnonzero(self.words[:, at.TX_PENDING]).tolist()
        return [self._ports[i] for i in waiting]
