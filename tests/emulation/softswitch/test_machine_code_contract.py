"""The contract by which machine code is called by address: its page, its version, its callers."""

from __future__ import annotations

import ctypes
import json
import re
from itertools import chain
from pathlib import Path
from random import Random

import pytest

import ofan
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.native import context, contract, shared
from ofan_p4.softswitch.native.passing import translated
from ofan_p4.softswitch.native.translate import translate

ROOT = Path(ofan.__file__).parent
PAGE = (ROOT / "docs/decisions/machine-code-contract.md").read_text(encoding="utf-8")
FUNCTION = re.compile(r"^ {4}i64 (\w+)\((.*)\)$", re.MULTILINE)
DEFINED = re.compile(r'^define i64 @"(\w+)"\((.*)\)', re.MULTILINE)
CONSTANT = re.compile(r"`([A-Z_]+)` (-?\d+)|^\| `([A-Z_]+)` \| (\d+)", re.MULTILINE)
# The contract that callers of version 2 were written for. A change of it raises the version.
VERSION = 2
ARGUMENTS = {"ingress": 8, "egress": 16}
AT_ONCE = {"pass": 9, "leave": 5}
WORDS = {"DROP": 0, "DRAW": 1, "DRAW_STATE": 2, "RESUME": 3, "REQUESTS": 4, "LOG": 5}
ANSWERS = {"CLONED": 1, "DIGESTED": 2, "RESUBMITTED": 4, "RECIRCULATED": 8}
DROPPED, ASKED = -1, -2

PROGRAM = Path(__file__).with_name("contract.p4")


@pytest.fixture(scope="module")
def bmv2_json() -> bytes:
    return json.dumps(compile_file(PROGRAM).json).encode()


def test_the_version_stands_for_what_callers_know(bmv2_json: bytes) -> None:
    """Where this fails, others' calls fail: raise the version, here and in the callers."""
    assert contract.VERSION == VERSION
    assert f"**This is version {VERSION}.**" in PAGE

    program = load(bmv2_json)
    defined = DEFINED.findall(translate(program, assemble(program)).text)
    functions = {name: len(arguments.split(",")) for name, arguments in defined}

    assert {name: functions[name] for name in ARGUMENTS} == ARGUMENTS

    counting = load(json.dumps(compile_file(PROGRAM.with_name("counting.p4")).json).encode())
    translation = translated(counting, b"")
    assert translation is not None
    defined = DEFINED.findall(translation[0])

    assert {
        name: len(parameters.split(",")) for name, parameters in defined if name in AT_ONCE
    } == AT_ONCE
    assert {name: getattr(context, name) for name in WORDS} == WORDS
    assert {name: getattr(shared, name) for name in ANSWERS} == ANSWERS
    assert (shared.DROPPED, shared.ASKED) == (DROPPED, ASKED)


def test_the_page_has_the_figures_of_the_version() -> None:
    functions = {name: len(arguments.split(",")) for name, arguments in FUNCTION.findall(PAGE)}

    assert functions == ARGUMENTS | AT_ONCE

    constants = (filter(None, groups) for groups in CONSTANT.findall(PAGE))
    told = {name: int(value) for name, value in constants}

    assert told == WORDS | ANSWERS | {"DROPPED": DROPPED, "ASKED": ASKED}


class Caller:
    """A caller that calls a program by address, with the page's knowledge alone."""

    def __init__(self, bmv2_json: bytes) -> None:
        i64 = ctypes.c_int64
        self.pipeline = Pipeline(bmv2_json, Random(1).randint, engine="native")
        native, memory = self.pipeline.native, self.pipeline.memory
        assert native is not None and memory is not None
        self.native, self.memory = native, memory
        self._ingress = ctypes.CFUNCTYPE(i64, *[i64] * 8)(native.ingress_address)
        self._egress = ctypes.CFUNCTYPE(i64, *[i64] * 16)(native.egress_address)
        self.state = (ctypes.c_uint64 * (native.state_bytes // 8))()

    def ingress(self, frame: bytes, avail: int, *, port: int = 1, length: int = 0) -> int:
        kept = ctypes.create_string_buffer(frame[:avail], avail)
        data, state = ctypes.addressof(kept), ctypes.addressof(self.state)
        asked = self._ingress(
            self.memory.address, data, avail, len(frame), port, length or len(frame), 7, state
        )
        assert kept.raw == frame[:avail]

        return int(asked)

    def egress(
        self, frame: bytes, avail: int, *, port: int, length: int = 0, depth: int = 0
    ) -> tuple[int, bytes]:
        """Return the answer, and the bytes written in front of a pattern."""
        kept = ctypes.create_string_buffer(frame[:avail], avail)
        out_bytes = avail + self.native.out_growth
        out = ctypes.create_string_buffer(b"\xee" * (out_bytes + 8), out_bytes + 8)
        data, state, leaves = (ctypes.addressof(buffer) for buffer in (kept, self.state, out))
        inputs = (port, 0, length or len(frame), 0, 0, 9, 0, 0, 2, depth)
        answer = self._egress(self.memory.address, data, avail, len(frame), state, *inputs, leaves)
        assert out.raw[out_bytes:] == b"\xee" * 8

        return int(answer), out.raw[:out_bytes]

    def outcome(self) -> list[int]:
        """Return the first four words of the state."""
        halves = chain.from_iterable((word & 0xFFFFFFFF, word >> 32) for word in self.state)
        return [next(halves) for _ in range(4)]


@pytest.fixture
def caller(bmv2_json: bytes) -> Caller:
    return Caller(bmv2_json)


FRAME = b"\x03\0\0\0" + bytes(range(60))


@pytest.mark.parametrize("avail", [4, 20, len(FRAME)])
def test_a_frame_passes_by_what_the_page_says_alone(caller: Caller, avail: int) -> None:
    draw = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 4)(lambda state, low, high: state + high - low)
    caller.memory.context[WORDS["DRAW"]] = ctypes.cast(draw, ctypes.c_void_p).value or 0
    caller.memory.context[WORDS["DRAW_STATE"]] = 100
    caller.memory.registers[0].memory[2] = 0x1234

    assert caller.native.frame_bytes == 4

    assert caller.ingress(FRAME, avail) == 0
    assert caller.outcome() == [3, 0, 5, 0]
    assert caller.memory.registers[0].memory.tolist() == [0, 0, 0x1235, 0]

    length, written = caller.egress(FRAME, avail, port=3, length=900, depth=77)

    # Four bytes more, and the part of the payload that was in memory.
    assert length == len(FRAME) + 4

    headers = bytes([3, 110]) + (0x1234).to_bytes(2, "big") + (900).to_bytes(2, "big") + b"\0\x4d"

    assert written[: avail + 4] == headers + FRAME[4:avail]


def test_what_is_dropped_or_asked_for_is_told(caller: Caller) -> None:
    assert caller.ingress(FRAME, len(FRAME)) == 0
    assert caller.egress(FRAME, len(FRAME), port=8)[0] == DROPPED
    assert caller.ingress(FRAME, len(FRAME)) == 0
    assert caller.egress(FRAME, len(FRAME), port=9)[0] == ASKED - ANSWERS["RECIRCULATED"]
    assert caller.ingress(b"\x09" + FRAME[1:], len(FRAME)) == ANSWERS["CLONED"]


def test_what_means_drop_is_a_word_of_the_context(bmv2_json: bytes, caller: Caller) -> None:
    assert caller.memory.context[WORDS["DROP"]] == 511

    memory = Pipeline(bmv2_json, Random(1).randint, drop_port=17, engine="native").memory

    assert memory is not None and memory.context[WORDS["DROP"]] == 17


def test_the_simulator_calls_no_code_of_another_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["sim", "run", "--k", "2", "--message-bytes", "4KiB", "--program", "two_choices.p4"]
    monkeypatch.setattr(contract, "VERSION", VERSION + 1)

    with pytest.raises(SystemExit) as ended:
        ofan.main(command)

    said = capsys.readouterr().err

    assert ended.value.code == 2
    assert said.startswith(
        "ofan: ofan-p4 makes machine code by contract 3, and the simulator calls by contract 2"
    )
    assert len(said.splitlines()) == 1
