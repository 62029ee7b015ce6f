"""Which fields a program uses, found by generating its code twice.

The first generation treats every field as used and extracts none; the second generation needs the
variables that it loads and stores. A header that nothing modifies is `pristine`: it leaves as the
bytes that came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ofan_p4.softswitch.codegen.kinds import PARTS
from ofan_p4.softswitch.codegen.layout import Chunk, chunks
from ofan_p4.softswitch.codegen.nodes import Bytes, Expression, Local
from ofan_p4.softswitch.codegen.packet_nodes import Cell
from ofan_p4.softswitch.codegen.program import Field, Header, Program
from ofan_p4.softswitch.codegen.statements import Statement

State: TypeAlias = dict[str, Local | Bytes]
# The fields of statements that say where a value goes; whatever else they have is looked at.
TARGETS = ("target", "targets")


@dataclass(slots=True)
class Liveness:
    """Which fields a program uses, as known while its code is generated."""

    program: Program
    is_first: bool = True
    loads: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    modified: set[int] = field(default_factory=set)
    _types: frozenset[tuple[str, int]] = frozenset()

    def learn(self, code: Iterable[Statement]) -> Liveness:
        """Return the liveness for the second generation, from the statements of the first."""
        loads, stores = state_used(code)
        used = {
            (header.type_name, item.index)
            # By type, not by instance: elements of a stack are copied into one another, and a copy
            # needs the same variables on both sides.
            for header in self.program.headers
            for item in header.fields
            if item.var.name in loads or item.var.name in stores
        }

        return Liveness(
            self.program,
            is_first=False,
            loads=frozenset(loads),
            stores=frozenset(stores),
            modified=set(self.modified),
            _types=frozenset(used),
        )

    def is_live(self, item: Field) -> bool:
        """Return whether a value assigned to the field can be seen by anyone."""
        is_local = (
            # A store to metadata matters only where something loads it. Headers are emitted, and a
            # struct that is copied whole may be read as another struct.
            self.program.headers[item.header].is_metadata and item.header not in self.modified
        )
        return self.is_first or not is_local or item.var.name in self.loads

    def is_pristine(self, header: Header) -> bool:
        """Return whether the header's bytes never change."""
        # A varbit's length is not known here, so that its header is always taken apart.
        if self.is_first or header.is_variable or header.id in self.modified:
            return False

        return not any(item.var.name in self.stores for item in header.fields)

    def plan(self, header: Header) -> tuple[Chunk, ...]:
        """Return the header's chunks.

        Instances of one type share the plan so that they can be copied.
        """
        # The first generation only wants to see which fields the program names, and extraction
        # would name them all.
        if self.is_first:
            return ()
        if self.is_pristine(header):
            return chunks(header, lambda item: item.var.name in self.loads)

        return chunks(header, lambda item: (header.type_name, item.index) in self._types)

    def variables(self, header: Header) -> list[Local | Bytes]:
        """Return the variables of a header that a statement resets, copies or moves."""
        # Noted while generating: a caller that asks for the variables is about to write a header.
        self.modified.add(header.id)
        return [variable for chunk in self.plan(header) for variable in chunk.variables()]

    def zeros(self, header: Header) -> list[Expression]:
        """Return the values of `variables` in a header just made valid."""
        return [value for chunk in self.plan(header) for value in chunk.zeros()]


def state_used(code: Iterable[Statement]) -> tuple[State, State]:
    """Return the packet state that statements load, and that they store, by name."""
    loads: State = {}
    stores: State = {}
    todo: list[Any] = list(code)
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is tuple:
            todo += item
        elif kind is Local or kind is Bytes:
            if item.is_state:
                loads[item.name] = item
        elif kind in _PARTS:
            stored, loaded = _PARTS[kind]
            todo += [getattr(item, name) for name in loaded]
            for name in stored:
                todo += _stored(getattr(item, name), stores)

    return loads, stores


def _stored(targets: Any, stores: State) -> Iterator[Any]:
    """Note the variables that are assigned; yield the indices of cells."""
    for target in targets if type(targets) is tuple else (targets,):
        if isinstance(target, Cell):
            yield target.index
        elif isinstance(target, (Local, Bytes)) and target.is_state:
            stores[target.name] = target


_PARTS = {
    kind: (
        tuple(name for name in names if name in TARGETS),
        tuple(name for name in names if name not in TARGETS),
    )
    for kind, names in PARTS.items()
}
