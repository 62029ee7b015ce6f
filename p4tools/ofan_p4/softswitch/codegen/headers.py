"""Statements that make headers valid or invalid and move them around."""

from __future__ import annotations

from collections.abc import Sequence

from ofan_p4.softswitch.codegen.expressions import ONE, ZERO, HeaderRef
from ofan_p4.softswitch.codegen.flow import Code, when
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import (
    Binary,
    Bytes,
    Call,
    Compare,
    Expression,
    Local,
    Logic,
    Not,
    Number,
    Sum,
    Zeros,
)
from ofan_p4.softswitch.codegen.packet_nodes import Length
from ofan_p4.softswitch.codegen.program import Header, Program, Stack
from ofan_p4.softswitch.codegen.statements import Assign, Change, Move
from ofan_p4.softswitch.codegen.variables import GROWTH


class HeaderCode:
    """Header operations of one program."""

    def __init__(self, program: Program, liveness: Liveness) -> None:
        self._program = program
        self._liveness = liveness

    def add(self, header: Header) -> Code:
        """Make a header valid; its fields are 0 unless it was valid before."""
        code = [
            # standard_metadata.packet_length of egress counts the headers that ingress has added.
            Change("+", GROWTH, Number(header.bytes)),
            *self.set_valid(header),
            *_assign(*self._reset(header)),
        ]
        return [when(Not(header.valid), code)]

    def remove(self, header: Header) -> Code:
        """Make a header invalid."""
        varbits = (Length(field.var) for field in header.fields if isinstance(field.var, Bytes))
        size = Sum((Number(header.bytes), *varbits))
        return [when(header.valid, [Change("-", GROWTH, size), *self._invalidate(header)])]

    def set_valid(self, header: Header) -> Code:
        """Mark a header valid, which makes the other members of its union invalid."""
        # P4_16: at most one header of a union is valid.
        union = self._program.union_of(header.id)
        siblings = [member for member in union.members if member != header.id] if union else []
        cleared = [
            part for member in siblings for part in self._invalidate(self._program.headers[member])
        ]

        return [Assign(header.valid, ONE), *cleared]

    def _invalidate(self, header: Header) -> Code:
        code: Code = [Assign(header.valid, ZERO)]
        # The deparser emits the bytes of a pristine header without asking whether it is valid.
        if self._liveness.is_pristine(header):
            code.append(Assign(header.raw, Zeros(0)))

        return code

    def _reset(self, header: Header) -> tuple[list[Local | Bytes], list[Expression]]:
        return self._liveness.variables(header), self._liveness.zeros(header)

    def assign(self, target: HeaderRef, source: HeaderRef) -> Code:
        """Copy a header, or its invalidity."""
        out: Code = []
        for i, origin in enumerate(source.headers):
            for j, to in enumerate(target.headers):
                # Indices known at run time only: a copy for every pair that they may choose.
                chosen = [
                    Compare("==", ref.index, Number(n))
                    for ref, n in ((source, i), (target, j))
                    if ref.index is not None
                ]

                copy = self._copy(to, origin)
                out += [when(all_of(chosen), copy)] if chosen else copy

        return out

    def _copy(self, target: Header, source: Header) -> Code:
        to = self._liveness.variables(target)
        origin = self._liveness.variables(source)
        if source.is_metadata:  # A struct is always valid; p4c copies structs as headers.
            return [*([] if target.is_metadata else self.set_valid(target)), *_assign(to, origin)]

        # Assigning an invalid header makes the target invalid (P4_16, operations on headers).
        moved = [*self.set_valid(target), *_assign(to, origin)]
        return [when(source.valid, moved, self._invalidate(target))]

    def assign_all(self, targets: Sequence[int], sources: Sequence[int]) -> Code:
        """Copy headers pairwise; the valid one last, so that it survives in a union."""
        headers = self._program.headers
        out: Code = []
        for target, source in zip(targets, sources, strict=True):
            out.append(when(Not(headers[source].valid), self._invalidate(headers[target])))

        for target, source in zip(targets, sources, strict=True):
            copy = self._copy(headers[target], headers[source])
            out.append(when(headers[source].valid, copy))

        return out

    def assign_stack(self, target: Stack, source: Stack) -> Code:
        """Copy a stack with the position of its next element."""
        # The next element is part of a stack's value: copying it copies the meaning of `last`.
        out: Code = [Assign(target.next, source.next)]
        for to, origin in zip(self._members(target), self._members(source), strict=True):
            out += self.assign_all(to, origin)

        return out

    def push(self, stack: Stack, count: int) -> Code:
        """Move every element `count` places towards the end; the first ones become invalid."""
        elements = self._members(stack)
        count = min(count, len(elements))
        # BMv2 never lets the next element lie beyond the end, however far a stack is pushed.
        moved = self._move(elements[count:], elements[: len(elements) - count])
        cleared = self._clear(elements[:count])

        after = Binary("+", stack.next, Number(count))
        following = Call("min", (Number(len(elements)), after))
        return [*moved, *cleared, Assign(stack.next, following)] if count else []

    def pop(self, stack: Stack, count: int) -> Code:
        """Move every element `count` places towards the front; the last ones become invalid."""
        elements = self._members(stack)
        count = min(count, len(elements))
        moved = self._move(elements[: len(elements) - count], elements[count:])
        cleared = self._clear(elements[len(elements) - count :])

        following = Call("max", (ZERO, Binary("-", stack.next, Number(count))))
        return [*moved, *cleared, Assign(stack.next, following)] if count else []

    def _members(self, stack: Stack) -> list[tuple[int, ...]]:
        if stack.of_unions:
            return [self._program.unions[i].members for i in stack.elements]

        return [(i,) for i in stack.elements]

    def _move(self, targets: Sequence[tuple[int, ...]], sources: Sequence[tuple[int, ...]]) -> Code:
        # One simultaneous assignment: source and target overlap, and Python evaluates the whole
        # right side before it stores anything.
        return _assign(self._everything(targets), self._everything(sources))

    def _everything(self, elements: Sequence[tuple[int, ...]]) -> list[Local | Bytes]:
        headers = [self._program.headers[i] for element in elements for i in element]
        return [
            # Every element in the same order: the plans of one header type are the same for all its
            # instances.
            variable
            for header in headers
            for variable in (header.valid, *self._liveness.variables(header))
        ]

    def _clear(self, elements: Sequence[tuple[int, ...]]) -> Code:
        headers = [self._program.headers[i] for element in elements for i in element]
        return [part for header in headers for part in self._invalidate(header)]


def all_of(tests: Sequence[Expression]) -> Expression:
    """Return the condition that all conditions hold."""
    return tests[0] if len(tests) == 1 else Logic("and", tuple(tests))


def _assign(targets: Sequence[Local | Bytes], values: Sequence[Expression]) -> Code:
    """Return one simultaneous assignment."""
    return [Move(tuple(targets), tuple(values))] if targets else []
