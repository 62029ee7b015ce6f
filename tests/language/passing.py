"""One random program by two calls for each packet, against itself by the two calls of any packet.

`pass` and `leave` promise the results of `ingress` and `egress`. A drawn number of packets wait
meanwhile, so that the arrivals behind a departure see its effects.
"""

from __future__ import annotations

import ctypes
import re
from collections import deque
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.native.passing import passing
from tests.language.comparing import PORTS, compiled, install, judged
from tests.language.inputs import packets
from tests.language.programs import drawn

I64 = ctypes.c_int64
ROOM = 4096
DROP = 511
LOW_32 = (1 << 32) - 1
MOST_WAITING = 4
# A program's requests to a switch, up to the parenthesis.
ASKING = re.compile(
    r"\b(log_msg|digest|clone|clone_preserving_field_list|resubmit_preserving_field_list"
    r"|recirculate_preserving_field_list|truncate)\s*(<[\w ]+>)?\("
)


@dataclass(frozen=True, slots=True)
class Found:
    """The difference, empty where there is none; the packets passed, None where none may.

    `in_place` of them kept the length of their headers.
    """

    difference: str = ""
    passed: int | None = None
    in_place: int = 0


class Caller:
    """A switch with machine code that is called by address."""

    def __init__(self, source: bytes, program: Any, installed: Any) -> None:
        self.switch = Switch(0, lambda: 0, lambda low, _high: low, PORTS, engine="native")
        self.switch.load(source)
        install(self.switch, program, installed)
        pipeline = self.switch.pipeline
        assert pipeline is not None and pipeline.native is not None
        assert pipeline.memory is not None
        self.native, self.memory = pipeline.native, pipeline.memory
        self.memory.settle()
        self.waiting: deque[Any] = deque()

    def cells(self) -> tuple[Any, ...]:
        """Return all that packets leave in the switch."""
        pipeline = self.switch.pipeline
        assert pipeline is not None
        counts = [[list(map(int, cell)) for cell in cells] for cells in pipeline.counters]
        entries = [index.entries.tolist() for index in self.memory.indexes]
        return [list(map(int, cells)) for cells in pipeline.registers], counts, entries


class ByParts(Caller):
    """Calls ingress, and egress when a packet leaves."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ingress = ctypes.CFUNCTYPE(I64, *[I64] * 8)(self.native.ingress_address)
        self._egress = ctypes.CFUNCTYPE(I64, *[I64] * 16)(self.native.egress_address)

    def arrive(self, port: int, frame: bytes, now_ps: int) -> None:
        data = ctypes.create_string_buffer(frame, len(frame))
        state = (ctypes.c_uint32 * (self.native.state_bytes // 4))()
        size = len(frame)
        addresses = ctypes.addressof(data), ctypes.addressof(state)
        self._ingress(
            self.memory.address, addresses[0], size, size, port, size, now_ps, addresses[1]
        )
        goes = state[0] not in (DROP,) and state[1] == 0
        self.waiting.append((data, state, size) if goes else None)

    def leave(self, now_ps: int, depth: int) -> tuple[int, bytes] | None:
        kept = self.waiting.popleft()
        if kept is None:
            return None

        data, state, size = kept
        out = ctypes.create_string_buffer(size + self.native.out_growth + ROOM)
        growth = ctypes.c_int32(state[3]).value
        told = state[0], state[2], size + growth, 0, 0, now_ps, 0, 0, 0, depth
        addresses = ctypes.addressof(data), ctypes.addressof(state), ctypes.addressof(out)
        length = self._egress(
            self.memory.address, addresses[0], size, size, addresses[1], *told, addresses[2]
        )
        return None if length < 0 else (state[0], out.raw[:length])


class AtOnce(Caller):
    """Calls pass, and leave when a packet leaves."""

    def __init__(self, source: bytes, *arguments: Any, sample: bytes) -> None:
        super().__init__(source, *arguments)
        self.calls = passing(self.native, source, sample)
        self.in_place = 0
        if self.calls is not None:
            self._pass = ctypes.CFUNCTYPE(I64, *[I64] * 9)(self.calls.pass_address)
            if self.calls.leave_address:
                self._leave = ctypes.CFUNCTYPE(I64, *[I64] * 5)(self.calls.leave_address)

    def arrive(self, port: int, frame: bytes, now_ps: int) -> None:
        assert self.calls is not None
        data = ctypes.create_string_buffer(frame, len(frame))
        state = (ctypes.c_uint64 * (self.calls.state_bytes // 8 + 1))()
        out = ctypes.create_string_buffer(len(frame) + self.native.out_growth + ROOM)
        size = len(frame)
        addresses = ctypes.addressof(data), ctypes.addressof(state), ctypes.addressof(out)
        told = size, size, port, size, now_ps
        answer = self._pass(self.memory.address, addresses[0], *told, addresses[1], addresses[2])
        if answer < 0:
            self.waiting.append(None)
            return

        length = answer >> 32
        self.in_place += length == 0
        leaving_frame = out.raw[:length] if length else data.raw
        self.waiting.append((answer & LOW_32, leaving_frame, state))

    def leave(self, now_ps: int, depth: int) -> tuple[int, bytes] | None:
        kept = self.waiting.popleft()
        if kept is None:
            return None

        port, frame, state = kept
        assert self.calls is not None
        if self.calls.leave_address:
            self._leave(self.memory.address, ctypes.addressof(state), port, now_ps, depth)

        return port, frame


def quiet(source: str) -> str:
    """Return a program without the statements that ask for copies, or say something."""
    kept = []
    end = 0
    for call in ASKING.finditer(source):
        if call.start() < end:
            continue

        kept.append(source[end : call.start()])
        depth, end = 0, call.end() - 1
        while True:
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
            if not depth:
                break

    return "".join([*kept, source[end:]])


def compare(seed: int, count: int) -> Found:
    """Let the program of a number handle packets in both ways."""
    program = drawn(seed)
    program = replace(program, source=quiet(program.source))
    draw = Random(seed)
    arrivals = packets(draw, program, count)
    installed, _ = judged(draw, program, arrivals)
    source = compiled(program.source)
    return compare_on(source, program, installed, arrivals, Random(seed))


def compare_on(
    source: bytes, program: Any, installed: Any, arrivals: list[tuple[int, bytes]], draw: Random
) -> Found:
    """Let a program handle these packets in both ways."""
    sample = draw.choice(arrivals)[1]
    ours = AtOnce(source, program, installed, sample=sample)
    if ours.calls is None:
        return Found()

    theirs = ByParts(source, program, installed)
    passed = 0
    now_ps = 0
    for port, frame in [*arrivals, *[(0, b"")] * MOST_WAITING]:
        now_ps += draw.randrange(3_000_000)
        if frame:
            ours.arrive(port, frame, now_ps)
            theirs.arrive(port, frame, now_ps)

        if ours.waiting and (not frame or draw.randrange(MOST_WAITING) < len(ours.waiting)):
            depth = len(ours.waiting) - 1
            at_once, by_parts = ours.leave(now_ps, depth), theirs.leave(now_ps, depth)
            passed += at_once is not None
            if at_once != by_parts:
                return Found(f"{frame.hex()} on {port}: {at_once}, by parts {by_parts}", passed)

    if ours.cells() != theirs.cells():
        return Found(f"{ours.cells()}, by parts {theirs.cells()}", passed)

    return Found("", passed, ours.in_place)
