"""Which fields a program uses, found by generating its code twice.

The first generation treats every field as used and extracts none; the variables that its text loads
and stores are what the second generation needs. A header that nothing modifies is `pristine`: it
leaves as the bytes that came in.
"""

from __future__ import annotations

import symtable
from collections.abc import Sequence
from dataclasses import dataclass, field

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.flow import indent
from emulation.softswitch.codegen.layout import Chunk, chunks
from emulation.softswitch.codegen.program import Field, Header, Program


@dataclass(slots=True)
class Liveness:
    """What one generation knows about the program's use of its fields."""

    program: Program
    is_first: bool = True
    loads: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    modified: set[int] = field(default_factory=set)
    _types: frozenset[tuple[str, int]] = frozenset()

    def learn(self, bodies: Sequence[str]) -> Liveness:
        """Return what the second generation needs to know, from the statements of the first."""
        loads, stores = state_used(bodies)
        used = {
            (header.type_name, item.index)
            # By type, not by instance: elements of a stack are copied into one another, and a copy
            # needs the same variables on both sides.
            for header in self.program.headers
            for item in header.fields
            if item.var in loads or item.var in stores
        }

        return Liveness(
            self.program,
            is_first=False,
            loads=loads,
            stores=stores,
            modified=set(self.modified),
            _types=frozenset(used),
        )

    def is_live(self, item: Field) -> bool:
        """Return whether a value assigned to the field can be seen by anyone."""
        is_local = (
            # A store to metadata matters only where something loads it. Headers are emitted, and a
            # struct that is copied whole may be looked at as another one.
            self.program.headers[item.header].is_metadata and item.header not in self.modified
        )
        return self.is_first or not is_local or item.var in self.loads

    def is_pristine(self, header: Header) -> bool:
        """Return whether the header's bytes never change."""
        # A varbit's length is not known here, so that its header is always taken apart.
        if self.is_first or header.is_variable or header.id in self.modified:
            return False

        return not any(item.var in self.stores for item in header.fields)

    def plan(self, header: Header) -> tuple[Chunk, ...]:
        """Return the header's chunks.

        Instances of one type share the plan so that they can be copied.
        """
        # The first generation only wants to see which fields the program names, and extraction
        # would name them all.
        if self.is_first:
            return ()
        if self.is_pristine(header):
            return chunks(header, lambda item: item.var in self.loads)

        return chunks(header, lambda item: (header.type_name, item.index) in self._types)

    def variables(self, header: Header) -> list[str]:
        """Return the variables of a header that something resets, copies or moves."""
        # Noted while generating: whoever asks for the variables is about to write a header.
        self.modified.add(header.id)
        return [name for chunk in self.plan(header) for name in chunk.variables()]

    def zeros(self, header: Header) -> list[str]:
        """Return the values of `variables` in a header just made valid."""
        return [value for chunk in self.plan(header) for value in chunk.zeros()]


def state_used(body: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the packet state variables that a function body loads and those that it stores."""
    loads = set[str]()
    stores = set[str]()
    # Python's own compiler says what is loaded and what is stored, without making a tree of objects
    # first; the loop is for statements that break out of it.
    text = "\n".join(["def body():", " while True:", *indent(indent(body))])
    tables = symtable.symtable(text, "<body>", "exec").get_children()

    while tables:
        table = tables.pop()
        # A lambda or a comprehension has a table of its own.
        tables += table.get_children()
        for symbol in table.get_symbols():
            if names.is_packet_state(symbol.get_name()):
                if symbol.is_referenced():
                    loads.add(symbol.get_name())
                if symbol.is_assigned():
                    stores.add(symbol.get_name())

    return frozenset(loads), frozenset(stores)
