"""The header fields of a frame, as a program's own parser sees them.

They give names to the bytes of a difference. Only the part of the parser that depends on the frame
alone is followed; where a choice depends on something else, the rest is called payload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

Json = Any
MAX_STATES = 256


@dataclass(frozen=True, slots=True)
class Part:
    """A field in a frame; `offset` and `bits` are in bits."""

    name: str
    offset: int
    bits: int


class Unknown(Exception):
    """Something that the frame alone does not tell."""


def dissect(program: Mapping[str, Json], frame: bytes, port: int = 0) -> list[Part]:
    """Return the fields of a frame in order, then `payload` for the rest."""
    walk = _Walk(program, frame, port)
    with suppress(Unknown, KeyError, IndexError, TypeError):
        walk.run()

    if walk.position < len(frame) * 8:
        walk.parts.append(Part("payload", walk.position, len(frame) * 8 - walk.position))

    return walk.parts


class _Walk:
    """A walk through the states of the parser."""

    def __init__(self, program: Mapping[str, Json], frame: bytes, port: int) -> None:
        self.frame = frame
        self.position = 0
        self.parts: list[Part] = []
        self.values: dict[tuple[str, str], int] = {("standard_metadata", "ingress_port"): port}
        self.next: dict[str, int] = {}
        self.types = {item["name"]: item for item in program["header_types"]}
        self.headers = {item["name"]: item["header_type"] for item in program["headers"]}
        parser = program["parsers"][0]
        self.states = {state["name"]: state for state in parser["parse_states"]}
        self.start: str = parser["init_state"]

    def run(self) -> None:
        """Follow the states from the first state."""
        name: str | None = self.start
        # A parser may loop without taking a bit.
        for _ in range(MAX_STATES):
            if name is None:
                return

            state = self.states[name]
            for operation in state["parser_ops"]:
                self.step(operation)

            name = self.following(state)

    def bits(self, offset: int, width: int) -> int:
        """Return bits of the frame from the current place on."""
        end = self.position + offset + width
        # The frame is too short: the fields named so far stay.
        if end > len(self.frame) * 8:
            raise Unknown

        return int.from_bytes(self.frame, "big") >> (len(self.frame) * 8 - end) & ((1 << width) - 1)

    def step(self, operation: Json) -> None:
        """Do one operation of a state."""
        match operation["op"]:
            case "extract":
                self.extract(self.target(operation["parameters"][0]))
            case "set":
                self.assign(*operation["parameters"])
            case "advance":
                self.position += self.value(operation["parameters"][0])
            # Its length is an expression, which is not evaluated here.
            case "extract_VL":
                raise Unknown

    def target(self, parameter: Json) -> str:
        """Return the name of the header that is extracted."""
        if parameter["type"] == "regular":
            return str(parameter["value"])
        if parameter["type"] != "stack":
            raise Unknown

        stack = str(parameter["value"])
        index = self.next.get(stack, 0)
        self.next[stack] = index + 1

        return f"{stack}[{index}]"

    def extract(self, header: str) -> None:
        """Take a header's fields from the frame."""
        for name, width, *_ in self.types[self.headers[header]]["fields"]:
            self.values[header, name] = self.bits(0, width)
            self.parts.append(Part(f"{header}.{name}", self.position, width))
            self.position += width

    def assign(self, target: Json, source: Json) -> None:
        """Do an assignment; forget the target's value if the source is unknown."""
        key = (str(target["value"][0]), str(target["value"][1]))
        try:
            self.values[key] = self.value(source)
        except Unknown:
            self.values.pop(key, None)

    def value(self, operand: Json) -> int:
        """Return the value of an operand."""
        match operand["type"]:
            case "hexstr":
                return int(operand["value"], 16)
            case "lookahead":
                return self.bits(*operand["value"])
            case "field" if tuple(operand["value"]) in self.values:
                return self.values[tuple(operand["value"])]
            case "stack_field":
                stack, name = operand["value"]
                return self.values[f"{stack}[{self.next[stack] - 1}]", name]

        raise Unknown

    def following(self, state: Json) -> str | None:
        """Return the next state."""
        key = [(self.value(item), self.width(item)) for item in state["transition_key"]]
        for transition in state["transitions"]:
            if transition["type"] == "default" or self.matches(transition, key):
                next_state = transition["next_state"]
                return None if next_state is None else str(next_state)

        return None

    def width(self, operand: Json) -> int:
        """Return the width of a key in whole bytes, as the file packs it."""
        match operand["type"]:
            case "lookahead":
                bits = int(operand["value"][1])
            case "field":
                bits = self.width_of(self.headers[operand["value"][0]], operand["value"][1])
            case _:
                # All elements of a stack have one type.
                bits = self.width_of(self.headers[f"{operand['value'][0]}[0]"], operand["value"][1])

        return (bits + 7) // 8 * 8

    def width_of(self, kind: str, field: str) -> int:
        """Return the width of a field of a header type."""
        return next(int(width) for name, width, *_ in self.types[kind]["fields"] if name == field)

    def matches(self, transition: Json, key: Sequence[tuple[int, int]]) -> bool:
        """Compare the packed key with a value under a mask."""
        if transition["type"] != "hexstr":
            raise Unknown

        packed = 0
        for value, width in key:
            packed = packed << width | value

        # All bits count.
        mask = -1 if transition["mask"] is None else int(transition["mask"], 16)
        return packed & mask == int(transition["value"], 16) & mask
