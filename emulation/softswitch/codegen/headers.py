"""Statements that make headers valid or invalid and move them around."""

from __future__ import annotations

from collections.abc import Sequence

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.expressions import HeaderRef
from emulation.softswitch.codegen.flow import Lines, indent
from emulation.softswitch.codegen.liveness import Liveness
from emulation.softswitch.codegen.program import Header, Program, Stack


class HeaderCode:
    """Header operations of one program."""

    def __init__(self, program: Program, liveness: Liveness) -> None:
        self._program = program
        self._liveness = liveness

    def add(self, header: Header) -> Lines:
        """Make a header valid; its fields are 0 unless it was valid before."""
        lines = [
            # standard_metadata.packet_length of egress counts the headers that ingress has added.
            f"{names.GROWTH} += {header.bytes}",
            *self.set_valid(header),
            *_assign(*self._reset(header)),
        ]
        return [f"if not {header.valid}:", *indent(lines)]

    def remove(self, header: Header) -> Lines:
        """Make a header invalid."""
        varbits = "".join(f" + len({field.var})" for field in header.fields if field.is_varbit)
        return [
            f"if {header.valid}:",
            *indent([f"{names.GROWTH} -= {header.bytes}{varbits}", *self._invalidate(header)]),
        ]

    def set_valid(self, header: Header) -> Lines:
        """Mark a header valid, which makes the other members of its union invalid."""
        # P4_16: at most one header of a union is valid.
        union = self._program.union_of(header.id)
        others = [member for member in union.members if member != header.id] if union else []
        lines = [
            line for member in others for line in self._invalidate(self._program.headers[member])
        ]

        return [f"{header.valid} = 1", *lines]

    def _invalidate(self, header: Header) -> Lines:
        lines = [f"{header.valid} = 0"]
        # The deparser emits the bytes of a pristine header without asking whether it is valid.
        return [*lines, f'{header.raw} = b""'] if self._liveness.is_pristine(header) else lines

    def _reset(self, header: Header) -> tuple[list[str], list[str]]:
        return self._liveness.variables(header), self._liveness.zeros(header)

    def assign(self, target: HeaderRef, source: HeaderRef) -> Lines:
        """Copy a header, or its invalidity."""
        out: Lines = []
        for i, origin in enumerate(source.headers):
            for j, to in enumerate(target.headers):
                # Indices known at run time only: a copy for every pair that they may choose.
                chosen = [
                    f"{ref.index} == {n}"
                    for ref, n in ((source, i), (target, j))
                    if ref.index is not None
                ]

                copy = self._copy(to, origin)
                out += [f"if {' and '.join(chosen)}:", *indent(copy)] if chosen else copy

        return out

    def _copy(self, target: Header, source: Header) -> Lines:
        to = self._liveness.variables(target)
        origin = self._liveness.variables(source)
        if source.is_metadata:  # A struct is always valid; p4c copies structs as headers.
            return [*([] if target.is_metadata else self.set_valid(target)), *_assign(to, origin)]

        # Assigning an invalid header makes the target invalid (P4_16, operations on headers).
        moved = [*self.set_valid(target), *_assign(to, origin)]
        return [f"if {source.valid}:", *indent(moved), "else:", *indent(self._invalidate(target))]

    def assign_all(self, targets: Sequence[int], sources: Sequence[int]) -> Lines:
        """Copy headers pairwise; the valid one last, so that it survives in a union."""
        headers = self._program.headers
        out: Lines = []
        for target, source in zip(targets, sources, strict=True):
            out += [
                f"if not {headers[source].valid}:",
                *indent(self._invalidate(headers[target])),
            ]

        for target, source in zip(targets, sources, strict=True):
            out += [
                f"if {headers[source].valid}:",
                *indent(self._copy(headers[target], headers[source])),
            ]

        return out

    def assign_stack(self, target: Stack, source: Stack) -> Lines:
        """Copy a stack with the position of its next element."""
        # The next element is part of a stack's value: copying it copies what `last` means.
        out = [f"{target.next} = {source.next}"]
        for to, origin in zip(self._members(target), self._members(source), strict=True):
            out += self.assign_all(to, origin)

        return out

    def push(self, stack: Stack, count: int) -> Lines:
        """Move every element `count` places towards the end; the first ones become invalid."""
        elements = self._members(stack)
        count = min(count, len(elements))
        # BMv2 never lets the next element lie beyond the end, however far a stack is pushed.
        moved = self._move(elements[count:], elements[: len(elements) - count])
        cleared = self._clear(elements[:count])

        return (
            [*moved, *cleared, f"{stack.next} = min({len(elements)}, {stack.next} + {count})"]
            if count
            else []
        )

    def pop(self, stack: Stack, count: int) -> Lines:
        """Move every element `count` places towards the front; the last ones become invalid."""
        elements = self._members(stack)
        count = min(count, len(elements))
        moved = self._move(elements[: len(elements) - count], elements[count:])
        cleared = self._clear(elements[len(elements) - count :])

        return [*moved, *cleared, f"{stack.next} = max(0, {stack.next} - {count})"] if count else []

    def _members(self, stack: Stack) -> list[tuple[int, ...]]:
        if stack.of_unions:
            return [self._program.unions[i].members for i in stack.elements]

        return [(i,) for i in stack.elements]

    def _move(
        self, targets: Sequence[tuple[int, ...]], sources: Sequence[tuple[int, ...]]
    ) -> Lines:
        # One simultaneous assignment: source and target overlap, and Python evaluates the whole
        # right side before it stores anything.
        return _assign(self._everything(targets), self._everything(sources))

    def _everything(self, elements: Sequence[tuple[int, ...]]) -> list[str]:
        headers = [self._program.headers[i] for element in elements for i in element]
        return [
            # Every element in the same order: the plans of one header type are the same for all its
            # instances.
            name
            for header in headers
            for name in (header.valid, *self._liveness.variables(header))
        ]

    def _clear(self, elements: Sequence[tuple[int, ...]]) -> Lines:
        headers = [self._program.headers[i] for element in elements for i in element]
        return [line for header in headers for line in self._invalidate(header)]


def _assign(targets: Sequence[str], sources: Sequence[str]) -> Lines:
    """Return one simultaneous assignment."""
    return [f"{', '.join(targets)} = {', '.join(sources)}"] if targets else []
