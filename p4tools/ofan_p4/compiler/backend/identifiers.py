"""P4Runtime's ids and aliases, by the rules of p4c: both compilers give a program the same ids.

An id is an 8-bit kind and 24 bits from `@id` or from Jenkins' one-at-a-time hash of the name; the
names of a kind are hashed in alphabetical order and a taken id moves on to the next free id. An
alias is the shortest suffix that no other name shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ofan_p4.diagnostics import CompileError, Span

PREFIXES = {
    "action": 0x01,
    "table": 0x02,
    "value_set": 0x03,
    "controller_header": 0x04,
    "action_profile": 0x11,
    "counter": 0x12,
    "direct_counter": 0x13,
    "meter": 0x14,
    "direct_meter": 0x15,
    "register": 0x16,
    "digest": 0x17,
}
"""The kinds in P4Runtime's enum P4Ids.Prefix."""

KIND_SHIFT = 24
LOW_BITS = (1 << KIND_SHIFT) - 1


def jenkins_hash(data: bytes) -> int:
    """Return Jenkins' one-at-a-time hash, 32 bits."""
    # 32 bits as in C: Python's numbers would grow.
    value = 0
    for byte in data:
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6

    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


@dataclass
class Symbols:
    """All objects that the control plane can name; ids are given when all are known."""

    own_ids: dict[tuple[str, str], int | None] = field(default_factory=dict)
    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, name: str, own_id: int | None, span: Span) -> None:
        """Add an object with the id of its annotation, if any."""
        prefix = PREFIXES[kind] << KIND_SHIFT
        if own_id is not None:
            # `@id` may give the 24 bits alone or the whole id.
            if own_id & ~LOW_BITS not in (0, prefix):
                raise CompileError(
                    f"the @id of {name} has the wrong 8-bit prefix for a {kind}", span
                )

            own_id |= prefix
            if own_id in self.own_ids.values() and self.own_ids.get((kind, name)) != own_id:
                raise CompileError(f"@id {own_id} is given twice", span)

        self.own_ids.setdefault((kind, name), own_id)

    def resolve(self) -> None:
        """Give every object its id and alias."""
        # All ids of annotations before the first hash, or one could be taken from under them.
        taken = {own_id for own_id in self.own_ids.values() if own_id is not None}
        self.ids = {key: own_id for key, own_id in self.own_ids.items() if own_id is not None}
        for kind in PREFIXES:
            for name in sorted(
                name for (of, name), own_id in self.own_ids.items() if of == kind and own_id is None
            ):
                self.ids[kind, name] = _free_id(PREFIXES[kind], name, taken)
                taken.add(self.ids[kind, name])

        self.aliases = aliases({name for _, name in self.own_ids})

    def has(self, kind: str, name: str) -> bool:
        """Return whether the control plane may see it."""
        return (kind, name) in self.ids

    def id_of(self, kind: str, name: str) -> int:
        return self.ids[kind, name]


def _free_id(prefix: int, name: str, taken: set[int]) -> int:
    low = jenkins_hash(name.encode())
    while prefix << KIND_SHIFT | low & LOW_BITS in taken or low & LOW_BITS == 0:
        low += 1

    return prefix << KIND_SHIFT | low & LOW_BITS


def aliases(names: Iterable[str]) -> dict[str, str]:
    """Return the shortest unique suffix, in whole components, of every name."""
    split = {name: name.split(".") for name in names}
    counts = Counter(
        tuple(parts[start:]) for parts in split.values() for start in range(len(parts))
    )
    return {name: _alias(parts, counts) for name, parts in split.items()}


def _alias(parts: list[str], counts: Counter[tuple[str, ...]]) -> str:
    for length in range(1, len(parts) + 1):
        # Suffixes of all kinds of objects count together.
        if counts[tuple(parts[-length:])] < 2:
            return ".".join(parts[-length:])

    return ".".join(parts)


def field_ids(own_ids: list[int | None]) -> list[int]:
    """Return the ids of fields or parameters: those of annotations, and numbers around them."""
    taken = {own_id for own_id in own_ids if own_id is not None}
    ids: list[int] = []
    following = 1

    for own_id in own_ids:
        if own_id is None:
            while following in taken:
                following += 1

            taken.add(following)
            ids.append(following)
        else:
            ids.append(own_id)
            following += 1

    return ids
