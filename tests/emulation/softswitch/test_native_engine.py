"""Machine code against generated Python: the same packets, tables and answers on both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import p4src
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.base.requests import Resume
from ofan_p4.softswitch.codegen.program import KeyField
from ofan_p4.softswitch.control.pipeline import DROP_PORT, Pipeline
from ofan_p4.softswitch.control.trace import Walk
from ofan_p4.softswitch.state.tables import Table, needs_priority

CONFORMANCE = Path(__file__).parent / "conformance" / "conformance.p4"
PROGRAMS = [*sorted(p4src.FOLDER.glob("*.p4")), CONFORMANCE]
DEFINES = {"MAX_UPLINKS": "4", "CONTROL_PRIORITY": "0", "ACK_PRIORITY": "0"}
PORTS = range(1, 9)


def source(path: Path) -> bytes:
    compiled = compile_file(path, (p4src.INCLUDE, p4src.FOLDER), DEFINES)
    return json.dumps(compiled.json).encode()


def both(path: Path) -> tuple[Pipeline, Pipeline]:
    """The program on each engine, with random numbers of its own but the same ones."""
    text = source(path)
    native, python = (
        Pipeline(text, Random(5).randint, has_port=PORTS.__contains__, engine=engine)
        for engine in ("native", "python")
    )
    return native, python


def addresses(draw: Random) -> int:
    """Few addresses, so that entries are hit."""
    return 10 << 24 | draw.randrange(3) << 16 | draw.randrange(2) << 8 | draw.randrange(1, 4)


def ipv4(draw: Random, protocol: int, size: int) -> bytes:
    head = bytearray(
        b"\x45"
        + bytes([draw.randrange(256)])
        + (20 + size).to_bytes(2, "big")
        + bytes([0, 0, draw.choice([0, 0, 0x40, 0x20]), 0, draw.choice([0, 2, 64, 64]), protocol])
        + b"\0\0"
        + addresses(draw).to_bytes(4, "big")
        + addresses(draw).to_bytes(4, "big")
    )
    total = sum(int.from_bytes(head[i : i + 2], "big") for i in range(0, 20, 2))
    right = 0xFFFF - (total % 0xFFFF or 0xFFFF)
    head[10:12] = draw.choice([right, right, right, 0]).to_bytes(2, "big")

    return bytes(head)


def packet(draw: Random) -> bytes:
    """A packet such as fabrics carry, often damaged, cut short, or of random bytes."""
    if draw.random() < 0.15:
        return draw.randbytes(draw.randrange(100))
    udp = draw.randbytes(2) + b"\x12\xb7" + draw.randbytes(4 + draw.randrange(20))
    inner = ipv4(draw, 17, len(udp)) + udp
    body = inner if draw.random() < 0.6 else ipv4(draw, 4, len(inner)) + inner
    kind = draw.choice([b"\x08\x00"] * 6 + [b"\x88\xb5", b"\x86\xdd"])
    frame = bytearray(draw.randbytes(12) + kind + body)
    if draw.random() < 0.1:
        frame[draw.randrange(len(frame))] ^= 1 << draw.randrange(8)
    if draw.random() < 0.1:
        del frame[draw.randrange(len(frame)) :]
    return bytes(frame)


def pair(draw: Random, key: KeyField) -> tuple[int, int]:
    full = (1 << key.bits) - 1
    # Addresses and the numbers of schedules have 32 bits.
    is_address = key.bits == 32 and draw.random() < 0.7
    value = addresses(draw) if is_address else draw.randrange(min(full, 9) + 1)
    match key.kind:
        case "exact":
            return value, 0
        case "lpm":
            length = draw.choice([0, 8, 16, 24, key.bits, draw.randrange(key.bits + 1)])
            length = min(length, key.bits)
            return value >> key.bits - length << key.bits - length, length
        case "range":
            return min(value, 3), max(value, 5) & full
        case "optional":
            return (value, full) if draw.random() < 0.7 else (0, 0)

    mask = draw.choice([0, full, full, full >> 1, full & ~3])

    return value & mask, mask


def fill(draw: Random, table: Table, twin: Table, pipeline: Pipeline) -> None:
    """Insert, modify and delete the same entries in both tables."""
    if not table.spec.key or table.spec.entries or table.spec.profile:
        return
    for _ in range(30):
        match = tuple(pair(draw, key) for key in table.spec.key)
        priority = draw.randrange(1, 4) if needs_priority(table.spec) else 0
        action = draw.choice(table.spec.actions)
        data = tuple(
            draw.randrange(min(1 << bits, 9))
            for bits in pipeline.program.actions[action].parameter_bits
        )
        is_change = draw.random() < 0.5
        if len(table.entries) == table.spec.size:
            return
        for changed in (table, twin):
            if (match, priority) not in changed.entries:
                changed.insert(match, priority, action, data)
            elif is_change:
                changed.modify(match, priority, action, data)
            else:
                changed.delete(match, priority)


def state_of(pipeline: Pipeline) -> Any:
    return (
        [list(cells) for cells in pipeline.registers],
        [[list(cell) for cell in cells] for cells in pipeline.counters],
        [[meter.colors for meter in cells] for cells in pipeline.meters],
        [
            sorted(
                (e[2].match, e[2].priority, e[2].packets, e[2].octets, e[2].last_hit_ps)
                for e in table
            )
            for table in pipeline.tables
        ],
    )


def walk(pipeline: Pipeline, draws: Random, packets: list[bytes]) -> Iterator[Any]:
    """Send packets through; yield all results of both functions but the state."""
    now = 0
    for frame in packets:
        now += draws.randrange(10**7)
        port = draws.choice(PORTS)
        resume = None
        for _ in range(3):
            *outcome, requests, state = pipeline.ingress(frame, port, len(frame), now, resume)
            yield outcome, requests
            if requests is None or requests[4] is None:
                break
            resume = Resume(6, requests[4], requests[5])
        if requests is not None and requests[0] is not None:
            again = Resume(1, requests[0][1], requests[1])
            *_, state = pipeline.ingress(frame, port, len(frame), now, again)
        depths = [draws.randrange(3) for _ in range(4)]
        out, egress_requests = pipeline.egress(
            state, draws.choice([*PORTS, 510]), draws.randrange(2), len(frame), 0, 0, now, *depths
        )
        yield out, None if egress_requests is None else (egress_requests[0], egress_requests[2:])
        if egress_requests is not None and egress_requests[1] is not None:
            yield pipeline.egress(egress_requests[1], 3, 0, len(frame), 2, 0, now, *depths)[0]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_both_engines_answer_alike(path: Path) -> None:
    compare(path, seeds=range(3), count=1_000)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_both_engines_answer_alike_a_million_times(path: Path) -> None:
    compare(path, seeds=range(20), count=1_000_000 // 20 // len(PROGRAMS))


def compare(path: Path, seeds: range, count: int) -> None:
    for seed in seeds:
        draw = Random(seed)
        native, python = both(path)
        for table, twin in zip(native.tables, python.tables, strict=True):
            fill(draw, table, twin, native)
        packets = [packet(draw) for _ in range(count)]
        pairs = zip(
            walk(native, Random(seed), packets), walk(python, Random(seed), packets), strict=True
        )
        for i, (native_outcome, python_outcome) in enumerate(pairs):
            assert native_outcome == python_outcome, (path.stem, seed, i)
        assert state_of(native) == state_of(python)


def test_packets_and_entries_are_hit() -> None:
    # The comparison would prove little if all packets were dropped alike.
    draw = Random(0)
    native, python = both(p4src.path("ofan"))
    for table, twin in zip(native.tables, python.tables, strict=True):
        fill(draw, table, twin, native)

    packets = [packet(draw) for _ in range(1_000)]
    outcomes = [item[0] for item in walk(native, Random(0), packets) if isinstance(item[0], list)]

    assert sum(spec != DROP_PORT for spec, *_ in outcomes) > 30
    assert any(native.registers[1])


def test_what_has_no_native_form_runs_in_python_and_says_why(new_program: Any) -> None:
    program = new_program()
    program.header("h", out=8)
    program.state("start", [program.extract("h")])
    text = program.source()
    walked = Pipeline(text, Random(0).randint, walk=Walk(lambda _step: None))

    assert (walked.native, walked.reason) == (None, "only the Python engine traces packets")

    with pytest.raises(PipelineError, match="--engine native: only the Python engine traces"):
        Pipeline(text, Random(0).randint, walk=Walk(lambda _step: None), engine="native")
