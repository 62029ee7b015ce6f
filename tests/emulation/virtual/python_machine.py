"""Python pipelines behind the C functions of a compiled program."""

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ofan_p4.softswitch.control.pipeline import Pipeline
from sim.kernels.desk import Program
from sim.programs.layout import Layout

WORD = ctypes.c_int64
INGRESS = ctypes.CFUNCTYPE(WORD, *[WORD] * 8)
EGRESS = ctypes.CFUNCTYPE(WORD, *[WORD] * 16)
FORGET = ctypes.CFUNCTYPE(WORD, *[WORD] * 3)
STATE_BYTES = 24
FRAME_BYTES = 56


class PythonMachine:
    """A "compiled" program that calls the pipelines of switches; contexts are their places."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._pipelines = pipelines
        self._states: dict[int, Any] = {}
        self._numbers = itertools.count()
        self._functions = INGRESS(self._ingress), EGRESS(self._egress), FORGET(self._forget)
        self.layout = Layout(FRAME_BYTES, STATE_BYTES, growth=2, added=FRAME_BYTES)

    @property
    def program(self) -> Program:
        ingress, egress, forget = (
            ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._functions
        )
        places = np.arange(len(self._pipelines))
        return Program(ingress, egress, 0, 0, 0, forget, places, places)

    def settle(self) -> None:
        """Python's pipelines see changes at once."""

    def _ingress(
        self, ctx: int, data: int, avail: int, n: int, port: int, length: int, now: int, state: int
    ) -> int:
        pipeline = self._pipelines[ctx]
        frame = ctypes.string_at(data, avail) + bytes(n - avail)
        spec, group, priority, delta, requested, remembered = pipeline.ingress(
            frame, port, length, now, None
        )
        number = next(self._numbers)
        self._states[number] = remembered
        fields = (ctypes.c_int32 * 4).from_address(state)
        fields[:] = [spec, group, priority, delta]
        WORD.from_address(state + 16).value = number
        return 0 if requested is None else 1

    def _egress(
        self,
        ctx: int,
        data: int,
        avail: int,
        n: int,
        state: int,
        port: int,
        priority: int,
        length: int,
        instance: int,
        rid: int,
        now: int,
        enq_us: int,
        enq_depth: int,
        delta_us: int,
        deq_depth: int,
        out: int,
    ) -> int:
        pipeline = self._pipelines[ctx]
        remembered = self._states.pop(WORD.from_address(state + 16).value)
        frame, requested = pipeline.egress(
            remembered,
            port,
            priority,
            length,
            instance,
            rid,
            now,
            enq_us,
            enq_depth,
            delta_us,
            deq_depth,
        )
        if requested is not None:
            return -3
        if frame is None:
            return -1
        written = frame[: avail + len(frame) - n]
        ctypes.memmove(out, written, len(written))
        return len(frame)

    def _forget(self, ctx: int, port: int, size: int) -> int:
        pipeline = self._pipelines[ctx]
        for array, cells in zip(pipeline.program.registers, pipeline.registers, strict=True):
            if array.name == "queue_bytes":
                cells[port] -= size
        return 0
