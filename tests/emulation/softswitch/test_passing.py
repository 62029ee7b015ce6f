"""A packet by two calls, `pass` and `leave`: conditions and results, by the contract's page."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pytest

from ofan_p4.compiler import CompileError, compile_file
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.parting import part
from ofan_p4.softswitch.codegen.predicting import way
from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.native import context, kept, machine
from ofan_p4.softswitch.native.passing import Passing, passing
from tests.language.passing import compare

I64 = ctypes.c_int64
PROGRAM = Path(__file__).with_name("counting.p4")
FRAME = b"\x03\x40\0\0" + bytes(range(60))
DEPARTED = 1
# Of drawn programs, so many may pass, and so many packets change in place.
MOST_MAY = 0.6
IN_PLACE = 0.2


@cache
def bmv2_json(*defines: str) -> bytes:
    return json.dumps(compile_file(PROGRAM, defines=dict.fromkeys(defines, "1")).json).encode()


class Caller:
    """A caller that calls a program with the page's knowledge alone."""

    def __init__(self, *defines: str, sample: bytes = FRAME) -> None:
        source = bmv2_json(*defines)
        self.pipeline = Pipeline(source, Random(1).randint, engine="native")
        native, memory = self.pipeline.native, self.pipeline.memory
        assert native is not None and memory is not None
        functions = passing(native, source, sample)
        assert isinstance(functions, Passing)
        self.memory, self.growth = memory, native.out_growth
        self._pass: Callable[..., int] = ctypes.CFUNCTYPE(I64, *[I64] * 9)(functions.pass_address)
        self._leave: Callable[..., int] = ctypes.CFUNCTYPE(I64, *[I64] * 5)(functions.leave_address)
        self.state = (ctypes.c_uint64 * (functions.state_bytes // 8))()

    def arrive(self, frame: bytes, *, length: int = 0) -> tuple[int, bytes, bytes]:
        """Return the answer, the bytes at `data`, and the bytes at `out`."""
        data = ctypes.create_string_buffer(frame, len(frame))
        out = ctypes.create_string_buffer(len(frame) + self.growth)
        addresses = ctypes.addressof(data), ctypes.addressof(self.state), ctypes.addressof(out)
        size = len(frame)
        told = size, size, 1, length or size, 7
        answer = self._pass(self.memory.address, addresses[0], *told, addresses[1], addresses[2])
        return answer, data.raw, out.raw

    def leave(self, port: int, depth: int) -> int:
        return self._leave(self.memory.address, ctypes.addressof(self.state), port, 9, depth)

    def cells(self, number: int) -> list[int]:
        return [int(cell) for cell in self.memory.registers[number].memory]


def test_a_frame_changes_in_place_and_its_departure_counts() -> None:
    caller = Caller()
    caller.memory.registers[0].memory[2] = 0x1234
    answer, data, _ = caller.arrive(FRAME, length=900)

    assert answer == 3
    assert data == b"\x03\x3f\x12\x34" + FRAME[4:]
    assert caller.cells(0) == [0, 0, 0x1235, 0]
    assert caller.cells(DEPARTED) == [0] * 16

    # The length that egress sees, the byte that ingress kept, and 100 for a queue behind it.
    assert caller.leave(3, depth=5) == 0
    assert caller.cells(DEPARTED)[3] == 900 + 0x3F + 100
    assert caller.leave(3, depth=0) == 0
    assert caller.cells(DEPARTED)[3] == 2 * (900 + 0x3F) + 100 + 5000


def test_a_frame_that_grows_is_written_apart() -> None:
    answer, data, out = Caller("LENGTHENS").arrive(FRAME, length=900)

    assert answer == 3 | (len(FRAME) + 2) << 32
    assert data == FRAME
    assert out[: len(FRAME) + 2] == b"\x03\x3f\0\0" + (900).to_bytes(2, "big") + FRAME[4:]


@pytest.mark.parametrize("to", [8, 9])
def test_what_goes_nowhere_is_told(to: int) -> None:
    assert Caller().arrive(bytes([to]) + FRAME[1:])[0] == -1


@pytest.mark.parametrize("frame", [b"", b"\x03\x40\0"])
def test_a_frame_of_another_form_goes_the_general_way(frame: bytes) -> None:
    """One too short to be parsed leaves as it came, where the sample's way would read beyond it."""
    answer, data, _ = Caller().arrive(frame)

    assert (answer, data) == (0, frame)


@pytest.mark.parametrize("define", ["LOOKS", "DROPS"])
def test_what_depends_on_the_departure_has_no_pass(define: str) -> None:
    program = Pipeline(bmv2_json(define), Random(1).randint).program

    assert part(assemble(program).egress) is None


@pytest.mark.parametrize("define", ["LOOKS", "DROPS", "CLONES"])
def test_what_must_run_by_parts_is_told(define: str) -> None:
    source = bmv2_json(define)
    native = Pipeline(source, Random(1).randint, engine="native").native

    assert native is not None
    assert passing(native, source, FRAME) is None


def test_the_way_of_a_frame_is_that_of_its_bytes() -> None:
    assembly = assemble(Pipeline(bmv2_json(), Random(1).randint).program)

    assert way(assembly, FRAME, port=1) != way(assembly, FRAME[:3], port=1)


def test_a_drop_port_is_a_word_of_the_context() -> None:
    caller = Caller()
    caller.memory.context[context.DROP] = 3

    assert caller.arrive(FRAME)[0] == -1


def compared(seeds: range) -> None:
    judged = passed = in_place = unpartable = 0
    for seed in seeds:
        try:
            comparison = compare(seed, 20)
        except (CompileError, PipelineError):
            continue

        assert comparison.difference == "", seed
        judged += 1
        unpartable += comparison.passed is None
        passed += comparison.passed or 0
        in_place += comparison.in_place

    # Else nothing has been compared.
    assert judged - unpartable > MOST_MAY * len(seeds)
    assert in_place > IN_PLACE * passed


@pytest.fixture
def quickly_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make machine code with little effort of LLVM, and keep none of it."""
    monkeypatch.setattr(machine, "SPEED", 1)
    monkeypatch.setattr(kept, "read", lambda key: None)
    monkeypatch.setattr(kept, "write", lambda *parts: None)


@pytest.mark.usefixtures("quickly_made")
def test_random_programs_pass_as_they_do_by_parts() -> None:
    compared(range(8))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("quickly_made")
def test_many_random_programs_pass_as_they_do_by_parts() -> None:
    compared(range(30_000, 30_300))
