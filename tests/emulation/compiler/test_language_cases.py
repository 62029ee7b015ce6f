"""Every pair `cases/NAME.p4` and `cases/NAME.stf` runs through our compiler and the softswitch; STF is p4c's format."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from emulation.compiler import compile_file
from emulation.softswitch.switch import CloneSession, Replica, Switch

CASES = sorted((Path(__file__).parent / "cases").glob("*.stf"), key=lambda path: path.stem)
PORTS = 16


def lowest(low: int, high: int) -> int:
    return low


@dataclass
class Bench:
    """A switch under test, what has left it and what was expected."""

    program: dict[str, Any]
    switch: Switch = field(init=False)
    sent: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    expected: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    nodes: list[tuple[Replica, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.switch = Switch(0, lambda: 0, lowest, range(PORTS))
        self.switch.load(json.dumps(self.program).encode())

    def packet(self, port: int, frame: bytes) -> None:
        waiting = self.switch.ingress(port, frame)
        while waiting:
            for out in self.switch.egress(waiting.pop(0)):
                self.sent[out.port].append(out.frame.hex())
            waiting += self.switch.take_requeued()

    def add(self, text: str) -> None:
        """`TABLE [PRIORITY] KEY:VALUE ... ACTION(NAME:VALUE, ...)`."""
        head, arguments = text.rstrip(")").split("(")
        name, *words, action_name = head.split()
        table = next(item for pipe in self.program["pipelines"] for item in pipe["tables"] if ends(item["name"], name))
        action = next(item for item in self.program["actions"] if ends(item["name"], action_name))
        given = dict(item.strip().split(":") for item in arguments.split(",") if item)
        data = tuple(int(given[parameter["name"]], 0) for parameter in action["runtime_data"])
        priority = int(words.pop(0)) if words and words[0].isdigit() else 0
        keys = dict(word.rsplit(":", 1) for word in words)
        match = tuple(key_match(key["match_type"], keys.get(key["name"])) for key in table["key"])
        number = [item["id"] for item in self.program["actions"]].index(action["id"])
        assert self.switch.pipeline is not None
        installed = next(item for item in self.switch.pipeline.tables if item.spec.name == table["name"])
        installed.insert(match, priority, number, data)

    def command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        words = rest.split()
        replication = self.switch.replication
        match word:
            case "packet":
                self.packet(int(words[0]), bytes.fromhex("".join(words[1:])))
            case "expect":
                self.expected[int(words[0])].append("".join(words[1:]))
            case "add":
                self.add(rest)
            case "mirroring_add":
                replication.sessions[int(words[0])] = CloneSession((Replica(int(words[1])),))
            case "mc_mgrp_create":
                replication.groups[int(words[0])] = ()
            case "mc_node_create":
                self.nodes.append(tuple(Replica(int(port), int(words[0])) for port in words[1:]))
            case "mc_node_associate":
                replication.groups[int(words[0])] += self.nodes[int(words[1])]
            case _:
                raise AssertionError(f"unknown command: {line}")


def ends(name: str, suffix: str) -> bool:
    return name == suffix or name.endswith(f".{suffix}")


def key_match(kind: str, text: str | None) -> tuple[int, int]:
    if text is None:
        return (0, 0)
    first, *second = (int(part, 0) for part in re.split("&&&|->|/", text))
    return (first, second[0] if second else 0)


def fits(expected: str, frame: str) -> bool:
    """`*` is any digit; without a `$` at the end, more may follow."""
    pattern = expected.rstrip("$").replace("*", ".")
    return re.fullmatch(pattern if expected.endswith("$") else f"{pattern}.*", frame) is not None


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case_sends_exactly_the_expected_packets(case: Path) -> None:
    bench = Bench(compile_file(case.with_suffix(".p4")).json)
    for line in case.read_text().splitlines():
        if line and not line.startswith("#"):
            bench.command(line)
    assert {port: len(frames) for port, frames in bench.sent.items()} == {
        port: len(frames) for port, frames in bench.expected.items()
    }
    for port, frames in bench.expected.items():
        for expected, frame in zip(frames, bench.sent[port], strict=True):
            assert fits(expected, frame), f"port {port}: expected {expected}, sent {frame}"


def test_every_program_has_its_packets() -> None:
    folder = Path(__file__).parent / "cases"
    assert {path.stem for path in folder.glob("*.p4")} == {path.stem for path in CASES}
