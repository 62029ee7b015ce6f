"""A program in machine code, with the two functions that a pipeline calls for each packet."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ofan_p4.softswitch.base.requests import CloneRequest
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.codegen.program import Program
from ofan_p4.softswitch.native import context, kept, machine
from ofan_p4.softswitch.native.context import WORD, Places, places, words_for
from ofan_p4.softswitch.native.memory import Memory
from ofan_p4.softswitch.native.reach import deparsed_bytes, parsed_bytes
from ofan_p4.softswitch.native.shared import (
    ASKED,
    CLONED,
    DIGESTED,
    DROPPED,
    EGRESS,
    FRAME_WORD,
    INGRESS,
    RECIRCULATED,
    REQUEST_WORDS,
    RESUBMITTED,
    RESUME_VALUES,
    Interface,
)
from ofan_p4.softswitch.native.slots import address, words_of
from ofan_p4.softswitch.native.translate import translate
from ofan_p4.softswitch.native.values import MAX_LINES, Limit, UnsupportedError, beyond

Random = Callable[[int, int], int]

# egress_spec, multicast group, priority, growth.
_OUTCOME = struct.Struct("=IIIi").unpack_from
_I64 = ctypes.c_int64
_LOG = ctypes.CFUNCTYPE(None, _I64, ctypes.POINTER(_I64))
_DRAW = ctypes.CFUNCTYPE(_I64, _I64, _I64, _I64)
_INGRESS = ctypes.CFUNCTYPE(_I64, _I64, ctypes.c_char_p, *[_I64] * 5, ctypes.c_void_p)
_EGRESS = ctypes.CFUNCTYPE(
    _I64, _I64, ctypes.c_char_p, _I64, _I64, ctypes.c_void_p, *[_I64] * 10, ctypes.c_void_p
)


@dataclass(frozen=True, slots=True, eq=False)
class NativeProgram:
    """A program as machine code, which all its switches share.

    `places` are the offsets in their contexts. `ingress_address` and `egress_address` are C
    functions (docs/switch.md); `state_bytes` is the size of a packet's state between them,
    `frame_bytes` the part of a frame that they can look at (None: all of it), `out_growth` the
    bytes that egress may add to a frame.
    """

    program: Program
    interface: Interface
    code: machine.Code
    places: Places

    @property
    def ingress_address(self) -> int:
        """The address of `ingress`."""
        return self.code.addresses[0]

    @property
    def egress_address(self) -> int:
        """The address of `egress`."""
        return self.code.addresses[1]

    @property
    def state_bytes(self) -> int:
        """The size of a state block, a multiple of 8."""
        return self.interface.state_bytes

    @property
    def out_growth(self) -> int:
        """The most bytes that the deparser may write before the payload."""
        return deparsed_bytes(self.program)

    @property
    def frame_bytes(self) -> int | None:
        """The most bytes that the parser can consume or look at, None without a bound."""
        return parsed_bytes(self.program)


# Sixteen programs with the machine code of each, as in `pipeline`.
@lru_cache(maxsize=16)
def native_program(source: bytes) -> NativeProgram | str:
    """Return a BMv2 JSON as machine code, or a line with the reason against it.

    Raises PipelineError where it cannot be run at all.
    """
    # Loaded also where the code is kept: tables and actions are read from it, and errors found.
    program = load(source)
    key = machine.program_identity(source)
    stored = kept.read(key)
    if stored is None:
        compiled = _compiled(program)
        if isinstance(compiled, str):
            return compiled

        stored = compiled
        kept.write(key, *stored)

    interface, code = stored
    return NativeProgram(
        program,
        Interface.from_json(interface),
        machine.load(code, INGRESS, EGRESS),
        places(program),
    )


def _compiled(program: Program) -> tuple[str, bytes] | str:
    """Return interface and object code of a program, or the reason against it."""
    try:
        translation = translate(program, assemble(program))
        if translation.text.count("\n") > MAX_LINES:
            raise beyond(Limit.LINES)

        return translation.interface.as_json(), machine.object_code(translation.text)
    except UnsupportedError as error:
        return f"no native code for {error}"
    except RuntimeError as error:
        # Code that LLVM refuses is a fault of the translator, and no reason to run nothing.
        return f"no native code: {' '.join(str(error).split())[:120]}"


class NativeFunctions:
    """The functions of one switch, with the signatures of generated Python (`assembly`)."""

    def __init__(
        self,
        native: NativeProgram,
        memory: Memory,
        random: Random,
        log: Callable[[str, tuple[int, ...]], None],
    ) -> None:
        self._memory = memory
        self._logs = native.interface.logs
        self._say = log
        self._context = memory.address
        self.growth = native.out_growth
        self.addresses = memory.address, native.ingress_address, native.egress_address
        self._state_bytes = native.state_bytes
        # The type of a state block; every packet gets its own.
        self._block = ctypes.c_char * native.state_bytes
        self._ingress = _INGRESS(native.ingress_address)
        self._egress = _EGRESS(native.egress_address)
        self._requests = native.interface.requests
        self._lists: Mapping[int, Sequence[int]] = {
            number: [
                native.program.field(*item["value"]).bits
                for item in field_list.elements
                if item.get("type") == "field"
            ]
            for number, field_list in native.program.field_lists.items()
        }

        # The state of an egress clone comes first, then the words of requests.
        self._asked = np.zeros(native.state_bytes // 8 + self._requests.size, dtype=np.uint64)
        self._words = self._asked[native.state_bytes // 8 :]
        memory.context[context.REQUESTS] = address(self._words)
        # Both must live as long as the context that has their addresses.
        self._draw = _DRAW(lambda _state, low, high: random(low, high))
        memory.context[context.DRAW] = ctypes.cast(self._draw, ctypes.c_void_p).value or 0
        self._log = _LOG(self._logged)
        memory.context[context.LOG] = ctypes.cast(self._log, ctypes.c_void_p).value or 0
        self.burst_state = self._block()
        self._out = ctypes.create_string_buffer(2048 + self.growth)

    def _logged(self, number: int, values: Any) -> None:
        text, count = self._logs[number]
        self._say(text, tuple(values[:count]))

    def ingress(self, data: bytes, port: int, length: int, now: int, resume: Any) -> Any:
        """Run the parser and the ingress pipeline."""
        self.settle()
        # A block of its own for each packet, as many may be under way between ingress and egress.
        state = self._block()
        size = len(data)
        if resume is None:
            asked = self._ingress(self._context, data, size, size, port, length, now, state)
        else:
            resumed = self._resumed(resume)
            self._memory.context[context.RESUME] = address(resumed)
            asked = self._ingress(self._context, data, size, size, port, length, now, state)
            # The next packet comes from outside, and brings nothing along.
            self._memory.context[context.RESUME] = 0

        return self._outcome(asked, data, state)

    def settle(self) -> None:
        """Publish all changes of the control plane to the machine code."""
        self._memory.settle()

    def passed(self, asked: int, data: bytes) -> Any:
        """Return the result of `ingress`, for a frame that a burst has already taken through it."""
        return self._outcome(asked, data, self._block.from_buffer_copy(self.burst_state))

    def _outcome(self, asked: int, data: bytes, state: Any) -> Any:
        requests = self._ingress_requests(asked) if asked else None
        return (*_OUTCOME(state), requests, (data, state))

    def egress(
        self, state: tuple[bytes, Any], port: int, *metadata: int
    ) -> tuple[bytes | None, Any]:
        """Run the egress pipeline and the deparser."""
        data, block = state
        size = len(data)
        if size + self.growth > len(self._out):
            # Twice the size, so that growing frames do not need a new buffer each.
            self._out = ctypes.create_string_buffer(2 * size + self.growth)

        length = self._egress(self._context, data, size, size, block, port, *metadata, self._out)
        return self.left(length, data, ctypes.addressof(self._out))

    def left(self, length: int, data: bytes, out: int) -> tuple[bytes | None, Any]:
        """Return the frame at the address `out`, None if it is dropped, and the requests."""
        requests = None
        if length < DROPPED:
            requests = self._egress_requests(ASKED - length, data)
            # The length stands beside the requests then, as the result has their bits.
            length = int(self._words[FRAME_WORD].astype(np.int64))

        return (None if length < 0 else ctypes.string_at(out, length)), requests

    def _resumed(self, resume: Any) -> Any:
        """Return the words that a packet brings when it comes again: type, list, values."""
        numbers = [resume[0], resume[1]]
        assert len(numbers) == RESUME_VALUES
        for value, bits in zip(resume[2], self._lists.get(resume[1], ()), strict=False):
            numbers += words_of(value, words_for(bits))

        return np.array([word & WORD for word in numbers], dtype=np.uint64)

    def _ingress_requests(self, asked: int) -> tuple[Any, ...]:
        clone = digest = resubmit = None
        if asked & CLONED:
            clone = CloneRequest(*self._numbers(names.CLONE))
        if asked & DIGESTED:
            digest = self._numbers(names.DIGEST)[0]
        if asked & RESUBMITTED:
            resubmit = self._numbers(names.RESUBMIT)[0]

        return (
            clone,
            self._values(names.CLONE, clone[1]) if clone else (),
            digest,
            () if digest is None else self._values(names.DIGEST, digest),
            resubmit,
            () if resubmit is None else self._values(names.RESUBMIT, resubmit),
        )

    def _egress_requests(self, asked: int, data: bytes) -> tuple[Any, ...]:
        clone = state = recirculate = None
        if asked & CLONED:
            clone = CloneRequest(*self._numbers(names.CLONE))
            # A copy: the next packet writes its state to the same place.
            block = self._block.from_buffer_copy(self._asked.tobytes())
            state = (data, block)
        if asked & RECIRCULATED:
            recirculate = self._numbers(names.RECIRCULATE)[0]

        return (
            clone,
            state,
            recirculate,
            () if recirculate is None else self._values(names.RECIRCULATE, recirculate),
        )

    def _numbers(self, name: str) -> tuple[int, int]:
        index = REQUEST_WORDS[name]
        return int(self._words[index]), int(self._words[index + 1])

    def _values(self, name: str, number: int) -> tuple[int, ...]:
        return tuple(
            self._value(*value_place)
            for value_place in self._requests.places.get((name, number), ())
        )

    def _value(self, slot: int, bits: int, is_signed: bool) -> int:
        count = words_for(bits)
        value = sum(int(self._words[slot + i]) << 64 * i for i in range(count))
        if is_signed and value >> (64 * count - 1):
            value -= 1 << 64 * count

        return value
