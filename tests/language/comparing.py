"""Differences between the judge and our compiler with both engines, on one random program.

The judge reads the source with a front end of its own; the engines run the BMv2 JSON that our
compiler makes of it. The packets sent must be the same, and so must digests, log messages,
registers and counters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from ofan_p4.compiler import CompileError, compile_preprocessed
from ofan_p4.compiler.preprocessor import preprocess
from ofan_p4.diagnostics import Source
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.state.replication import CloneSession, Replica
from tests.language.drawing_pieces import WIDTHS
from tests.language.evaluating import EndlessError
from tests.language.externs import Cells
from tests.language.inputs import Drawn, entries, packets
from tests.language.programs import drawn
from tests.language.reading import read
from tests.language.switching import Judge, Ports
from tests.language.tables import Entry
from tests.language.values import Num, UndefinedError, pattern

GROUPS: Ports = {1: ((2, 1), (3, 2)), 2: ((1, 7),)}
SESSIONS: Ports = {5: ((4, 0),), 7: ((6, 3), (8, 4))}
PORTS = range(511)
ROUNDS = 100
# So many packets show which keys are looked up.
SAMPLED = 8


@dataclass(slots=True)
class Verdict:
    """A program's verdict: `difference` is empty if all agree; `refused` is the compiler's reason.

    `no_code` is machine code's reason; `judged` packets are defined by the language to their
    end, `undefined` ones are not.
    """

    seed: int
    difference: str = ""
    refused: str = ""
    judged: int = 0
    undefined: int = 0
    sent: int = 0
    no_code: str = ""


@dataclass(slots=True)
class Seen:
    """The results of one packet."""

    sent: list[tuple[int, bytes]] = field(default_factory=list)
    digests: list[tuple[int, ...]] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)

    def parts(self) -> tuple[Any, ...]:
        # Copies of a packet leave in no order of their own.
        return sorted(self.sent), self.digests, self.logs


def compare(
    seed: int, count: int, engines: Sequence[Engine], widths: Sequence[int] = WIDTHS
) -> Verdict:
    """Judge the program of a number on so many packets."""
    return compare_program(drawn(seed, widths), seed, count, engines)


def compare_program(program: Drawn, seed: int, count: int, engines: Sequence[Engine]) -> Verdict:
    """Judge a program on packets and entries that are drawn from a number."""
    draw = Random(seed)
    arrivals = packets(draw, program, count)
    installed, expected = judged(draw, program, arrivals)
    verdict = Verdict(seed)
    try:
        source = compiled(program.source)
    except CompileError as error:
        verdict.refused = str(error).split("error: ", 1)[1].split("\n", 1)[0]
        return verdict

    verdict.judged = sum(result is not None for result in expected.packets)
    verdict.undefined = count - verdict.judged
    verdict.sent = sum(len(result.sent) for result in expected.packets if result is not None)
    for engine in engines:
        try:
            result = difference(program, source, installed, arrivals, expected, engine)
        except PipelineError as error:
            if "no native code" not in str(error):
                raise
            verdict.no_code = str(error)
            continue
        if result:
            verdict.difference = result
            break

    return verdict


def compiled(program: str) -> bytes:
    """Return the JSON of a program; the includes, which are all the same, are read only once."""
    included = library()
    # Directives end with the includes: the rest needs no preprocessor.
    program_text = program.split("#include <v1model.p4>\n", 1)[1]
    text = f"{included.text}\n{program_text}"
    lines = program_text.split("\n")
    origin = [*included.origin, *(("program.p4", i) for i in range(1, len(lines) + 1))]
    files = {**included.files, "program.p4": lines}
    source = Source(text, origin, files, included.code, included.markers)

    return json.dumps(compile_preprocessed(source, "program.p4").json).encode()


@cache
def library() -> Source:
    return preprocess("#include <core.p4>\n#include <v1model.p4>\n", "library.p4", (), {})


@dataclass(slots=True)
class Expected:
    """The judge's results for each packet (None: undefined), and its state in the end."""

    packets: list[Seen | None]
    cells: dict[str, list[int]]


def judged(
    draw: Random, program: Drawn, arrivals: list[tuple[int, bytes]]
) -> tuple[dict[str, list[Entry]], Expected]:
    """Return entries made of keys that these packets look up, and the judge's expectations."""
    tree = read(program.source)
    widths = {spec.name.split(".")[-1]: [key.width for key in spec.keys] for spec in program.tables}
    first = Judge(tree, entries={}, key_widths=widths, groups=GROUPS, sessions=SESSIONS)
    for port, frame in arrivals[:SAMPLED]:
        outcome(first, port, frame)

    installed = entries(draw, program, first.looked_up)

    judge = Judge(tree, entries=installed, key_widths=widths, groups=GROUPS, sessions=SESSIONS)
    outcomes = [outcome(judge, port, frame) for port, frame in arrivals]
    cells = {path: [number(cell) for cell in kept.cells] for path, kept in judge.objects.items()}

    return installed, Expected(outcomes, cells)


def number(cell: Any) -> int:
    return pattern(cell) if isinstance(cell, Num) else int(cell)


def outcome(judge: Judge, port: int, frame: bytes) -> Seen | None:
    """Return the judge's results; a packet that is undefined leaves no trace."""
    kept = {path: list(item.cells) for path, item in judge.objects.items()}
    try:
        results = judge.receive(port, frame)
    except (UndefinedError, EndlessError):
        # The scopes of controls are made anew for each packet, so only cells have to go back.
        judge.objects = {
            path: Cells(item.kind, item.element, kept[path])
            for path, item in judge.objects.items()
            if path in kept
        }
        return None

    return Seen(results.sent, results.digests, results.logs)


def difference(
    program: Drawn,
    source: bytes,
    installed: dict[str, list[Entry]],
    arrivals: list[tuple[int, bytes]],
    expected: Expected,
    engine: Engine,
) -> str:
    """Return the first difference between an engine and the judge; empty where there is none."""
    seen = Seen()
    switch = Switch(0, lambda: 0, lambda low, _high: low, PORTS, engine=engine)
    switch.on_digest = lambda _number, values: seen.digests.append(values)
    switch.on_log = lambda text: seen.logs.append(text)
    switch.load(source)
    replicate(switch)
    install(switch, program, installed)

    for (port, frame), expectation in zip(arrivals, expected.packets, strict=True):
        if expectation is None:
            continue
        seen.sent = []
        seen.digests.clear()
        seen.logs.clear()
        sent(switch, port, frame, seen)
        if seen.parts() != expectation.parts():
            return f"{engine}: {frame.hex()} on {port}: {shown(seen)}, judge {shown(expectation)}"

    return cells_differ(switch, expected.cells, engine)


def shown(seen: Seen) -> str:
    frames = [f"{port}:{frame.hex()}" for port, frame in sorted(seen.sent)]
    return f"{frames} {seen.digests} {seen.logs}"


def sent(switch: Switch, port: int, frame: bytes, seen: Seen) -> None:
    """Put a packet through a switch, and add all that leaves to `seen`."""
    waiting = switch.ingress(port, frame)
    for _ in range(ROUNDS):
        if not waiting:
            return
        for out in switch.egress(waiting.pop(0)):
            seen.sent.append((out.port, out.frame))
        waiting += switch.take_requeued()

    raise AssertionError("a packet goes round for ever")


def replicate(switch: Switch) -> None:
    """Install the multicast groups and clone sessions that every program may use."""
    state = switch.replication
    for group, ports in GROUPS.items():
        state.groups[group] = tuple(Replica(port, rid) for port, rid in ports)
    for session, ports in SESSIONS.items():
        state.sessions[session] = CloneSession(tuple(Replica(port, rid) for port, rid in ports))


def install(switch: Switch, program: Drawn, installed: dict[str, list[Entry]]) -> None:
    """Insert entries into the tables of a switch."""
    assert switch.pipeline is not None

    tables = {table.spec.name.split(".")[-1]: table for table in switch.pipeline.tables}
    for name, rows in installed.items():
        # A table that nothing reaches is left out of the JSON.
        if name not in tables:
            continue
        table = tables[name]
        numbers = {
            switch.pipeline.program.actions[i].name.split(".")[-1]: i for i in table.spec.actions
        }
        ordered = any(key.kind in ("ternary", "range", "optional") for key in table.spec.key)
        for row in rows:
            match = tuple(
                prefix(key, key_spec.width) if key_spec.kind == "lpm" and ordered else key
                for key, key_spec in zip(row.keys, spec_of(program, name).keys, strict=True)
            )
            table.insert(match, row.priority if ordered else 0, numbers[row.action], row.args)


def spec_of(program: Drawn, name: str) -> Any:
    return next(spec for spec in program.tables if spec.name.split(".")[-1] == name)


def prefix(key: tuple[int, int], width: int) -> tuple[int, int]:
    """Return a prefix as tables with priorities have it."""
    return key


def cells_differ(switch: Switch, expected_cells: dict[str, list[int]], engine: str) -> str:
    """Return the first register or counter that differs from the judge's; empty where none does."""
    pipeline = switch.pipeline
    assert pipeline is not None
    held_cells = {}
    for array, cells in zip(pipeline.program.registers, pipeline.registers, strict=True):
        held_cells[array.name] = [int(cell) % (1 << array.bits) for cell in cells]
    for counter, counts in zip(pipeline.program.counters, pipeline.counters, strict=True):
        if counter.name in expected_cells:
            held_cells[counter.name] = [int(cell[0]) for cell in counts]

    for name, cells in expected_cells.items():
        if held_cells.get(name, cells) != cells:
            return f"{engine}: {name} holds {held_cells[name]}, judge {cells}"

    return ""
