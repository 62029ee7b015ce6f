"""A program that machine code cannot run, as the simulator runs it: Python behind its C functions.

The functions keep the contract of machine code (docs/decisions/machine-code-contract.md). Clones
and digests have no effect: no controller of ours makes clone sessions or reads digests.
"""

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from emulation.errors import ProgramError
from emulation.virtual.added_headers import added_bytes
from emulation.virtual.machine import QUEUE_LENGTHS, NativeMachine, headers_of, refuse_few_cells
from emulation.virtual.timed import Machine
from fattree.experiment.model import Scenario
from hostagent.forms import is_of
from hostagent.own_packet import scenario_packets
from ofan_p4.softswitch.base.requests import RESUBMITTED, EgressRequests, IngressRequests, Resume
from ofan_p4.softswitch.control.pipeline import DROP_PORT, Pipeline
from ofan_p4.softswitch.control.switch import MAX_RESUBMISSIONS
from ofan_p4.softswitch.native.reach import deparsed_bytes, looked_ahead, parsed_bytes
from sim.kernels.desk import Program
from sim.programs.layout import Layout

WORD = ctypes.c_int64
INGRESS = ctypes.CFUNCTYPE(WORD, *[WORD] * 8)
EGRESS = ctypes.CFUNCTYPE(WORD, *[WORD] * 16)
FORGET = ctypes.CFUNCTYPE(WORD, *[WORD] * 3)
RECIRCULATES = (
    "the program recirculates a packet: the time and the rate of a second pass are a switch's own,"
    " and virtual time has neither (--network mininet runs it)"
)
# Of a state: the contract's four numbers, and the number of the variables that Python keeps.
STATE_BYTES = 24
DROPPED, BROKEN = -1, -3


class InterpretedMachine:
    """The program of all switches' pipelines, in Python; contexts are the switches' numbers.

    `error` is the first error in a packet's processing, which ends the run.
    """

    def __init__(
        self, scenario: Scenario, pipelines: Sequence[Pipeline], edge_header_bytes: int = 0
    ) -> None:
        self.error: BaseException | None = None
        self._pipelines = pipelines
        self._states: dict[int, Any] = {}
        self._numbers = itertools.count()
        self._ports = [scenario.tree.ports(switch) for switch in range(len(pipelines))]
        # The last packet that each switch has taken in.
        self._latest = [0] * len(pipelines)
        self._is_trimming = scenario.transport.trimming
        program = pipelines[0].program
        self._lengths = [array.name == QUEUE_LENGTHS for array in program.registers]
        self._written = HostBytes(scenario, edge_header_bytes)
        self._looks_ahead = looked_ahead(program, beyond=self._written.headers)
        self._functions = INGRESS(self._ingress), EGRESS(self._egress), FORGET(self._forget)

        added = added_bytes(program)
        longest = self._written.most_bytes + (added or 0)
        looked_at = min(parsed_bytes(program) or longest, longest)
        self.layout = Layout(
            max(looked_at, self._written.headers),
            STATE_BYTES,
            growth=deparsed_bytes(program),
            added=looked_at if added is None else added,
            edge_header_bytes=edge_header_bytes,
        )

    @property
    def program(self) -> Program:
        """Return where the functions are."""
        ingress, egress, forget = (
            ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._functions
        )
        numbers = np.arange(len(self._pipelines))
        return Program(ingress, egress, 0, 0, 0, forget, numbers, numbers)

    def settle(self) -> None:
        """Do nothing: these pipelines see changes at once."""

    def _ingress(
        self, switch: int, data: int, avail: int, n: int, port: int, length: int, now: int, to: int
    ) -> int:
        fields = (ctypes.c_int32 * 4).from_address(to)
        # An error must not pass through compiled code, nor Ctrl-C.
        try:
            outcome, kept = self._passed(switch, _frame(data, avail, n), port, length, now)
        except BaseException as error:
            return self._failed(error)

        fields[:] = list(outcome)
        spec, group, *_ = outcome
        # Egress never asks for the others.
        if spec in self._ports[switch] and not group:
            number = self._latest[switch] = next(self._numbers)
            self._states[number] = kept
            WORD.from_address(to + 16).value = number

        return 0

    def _passed(
        self, switch: int, frame: bytes, port: int, length: int, now_ps: int
    ) -> tuple[tuple[int, int, int, int], Any]:
        """Return a packet's outcome of ingress, and the variables that egress needs."""
        resume = None
        for _ in range(MAX_RESUBMISSIONS):
            spec, group, priority, growth, asked, state = self._pipelines[switch].ingress(
                frame, port, length, now_ps, resume
            )
            self._written.check(frame, state, self._looks_ahead)
            requests = IngressRequests(*asked) if asked else None
            if requests is None or requests.resubmit is None:
                return (spec, group, priority, growth), state

            resume = Resume(RESUBMITTED, requests.resubmit, requests.resubmit_values)

        return (DROP_PORT, 0, 0, 0), state

    def _egress(self, switch: int, data: int, avail: int, n: int, state: int, *rest: int) -> int:
        *numbers, out = rest
        try:
            kept = self._states.pop(WORD.from_address(state + 16).value)
            # Trimming has cut the frame meanwhile.
            kept = (_frame(data, avail, n), *kept[1:]) if self._is_trimming else kept
            frame, asked = self._pipelines[switch].egress(kept, *numbers)
            if asked and EgressRequests(*asked).recirculate is not None:
                raise ProgramError(RECIRCULATES)
        except BaseException as error:
            return self._failed(error, BROKEN)

        if frame is None:
            return DROPPED

        written = frame[: avail + len(frame) - n]
        ctypes.memmove(out, written, len(written))
        return len(frame)

    def _failed(self, error: BaseException, result: int = 1) -> int:
        self.error = self.error or error
        return result

    def _forget(self, switch: int, port: int, size: int) -> int:
        """Take bytes out of a queue's length that its program counts, of a dropped packet."""
        for is_lengths, cells in zip(self._lengths, self._pipelines[switch].registers, strict=True):
            if is_lengths:
                cells[port] -= size

        # A trimmed packet overtakes the queue, and egress follows.
        if not self._is_trimming:
            self._states.pop(self._latest[switch], None)

        return 0


class HostBytes:
    """The bytes of frames that virtual hosts write: all headers, zeros as payloads.

    They write no bitmaps and no ICRCs.
    """

    def __init__(self, scenario: Scenario, edge_header_bytes: int) -> None:
        self._forms = scenario_packets(scenario).forms
        self.headers = headers_of(scenario, edge_header_bytes)
        self.most_bytes = (
            len(self._forms.data.template) + scenario.scheme.outer_bytes + edge_header_bytes
        )
        self._has_bitmaps = scenario.transport.recovery == "sack" or scenario.tells_shares

    def check(self, frame: bytes, state: Any, looks_ahead: int) -> None:
        """Raise ProgramError where a program has looked at bytes that no host has written."""
        # The Python code's state begins with the frame and the parser's position.
        end = state[1] + looks_ahead
        if end <= self.headers:
            return

        is_data = is_of(self._forms.data, frame)
        if (self._has_bitmaps and not is_data) or end > len(frame) - self._forms.data.hidden:
            raise ProgramError(
                f"the program looks at {end} bytes of a frame: behind the first {self.headers}"
                " stand bitmaps and ICRCs, which hosts do not write in virtual time"
                " (--network mininet has them)"
            )


def machine_of(
    scenario: Scenario,
    pipelines: Sequence[Pipeline],
    edge_header_bytes: int,
    is_interpreted: bool,
) -> Machine:
    """Return the program of all switches' pipelines, as Python or as machine code.

    Packets have `edge_header_bytes` more between switches. Raises UnsupportedError.
    """
    refuse_few_cells(scenario, pipelines[0].program.registers)
    made = InterpretedMachine if is_interpreted else NativeMachine
    return made(scenario, pipelines, edge_header_bytes)


def _frame(data: int, avail: int, n: int) -> bytes:
    return ctypes.string_at(data, avail) + bytes(n - avail)
