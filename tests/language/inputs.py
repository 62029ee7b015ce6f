"""Inputs of a drawn program and of its tables: packets and entries, drawn as well."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.language.tables import Entry


@dataclass(frozen=True, slots=True)
class KeySpec:
    kind: str
    width: int


@dataclass(slots=True)
class TableSpec:
    """A table's facts for the control plane; `actions` are names and widths."""

    name: str
    keys: list[KeySpec]
    actions: list[tuple[str, list[int]]]
    is_const: bool = False


@dataclass(slots=True)
class Drawn:
    """A program, and the facts needed to draw packets and entries for it."""

    source: str
    tables: list[TableSpec]
    first_bytes: tuple[int, ...]
    # Of the header that every packet has.
    main_bytes: int = 0
    registers: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)


def packets(draw: Random, program: Drawn, count: int) -> list[tuple[int, bytes]]:
    """Return ports and packets: some too short, all with a first byte that the parser knows."""
    made = []
    for _ in range(count):
        first = draw.choice((*program.first_bytes, draw.randrange(256)))
        # Wide fields take more than the packets of most programs have.
        full_size = 120 if program.main_bytes < 120 else 3 * program.main_bytes
        size = draw.choice(
            (full_size // 2, full_size, full_size, full_size, draw.randrange(1, 100))
        )
        filler = draw.choice((bytes(size), b"\xff" * size, *[draw.randbytes(size)] * 6))
        made.append((draw.choice((1, 2, 3, 200)), bytes([first]) + filler))

    return made


def entries(
    draw: Random, program: Drawn, seen: dict[str, list[tuple[int, ...]]]
) -> dict[str, list[Entry]]:
    """Return entries for the tables, made of keys that packets have looked up."""
    made: dict[str, list[Entry]] = {}
    for spec in program.tables:
        if spec.is_const:
            continue
        name = spec.name.split(".")[-1]
        by_keys: dict[tuple[tuple[int, int], ...], Entry] = {}
        for priority in range(1, draw.randrange(2, 6)):
            looked_up = seen.get(name) or [tuple(0 for _ in spec.keys)]
            keys = tuple(
                entry_key(draw, key, value)
                for key, value in zip(spec.keys, draw.choice(looked_up), strict=True)
            )
            action, widths = draw.choice(spec.actions)
            args = tuple(draw.getrandbits(width) for width in widths)
            by_keys.setdefault(keys, Entry(keys, priority, action, args))
        made[name] = list(by_keys.values())

    return made


def entry_key(draw: Random, key: KeySpec, value: int) -> tuple[int, int]:
    """Return a key that this value matches, mostly."""
    all_ones = (1 << key.width) - 1
    match key.kind:
        case "exact":
            return value, 0
        case "lpm":
            length = draw.randrange(key.width + 1)
            return value >> (key.width - length) << (key.width - length), length
        case "range":
            return max(value - draw.randrange(3), 0), min(value + draw.randrange(3), all_ones)
        case "optional":
            return draw.choice(((value, all_ones), (0, 0)))

    mask = draw.getrandbits(key.width)

    return value & mask, mask
