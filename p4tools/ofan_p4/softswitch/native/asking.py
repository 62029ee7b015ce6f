"""Requests of a packet (clone, digest, resubmit, recirculate), and values that it brings back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen.nodes import Bytes, Expression
from ofan_p4.softswitch.codegen.statements import (
    Ask,
    AskAll,
    AskNothing,
    Forget,
    ForgetValues,
    KeepState,
    KeepValues,
    Restore,
)
from ofan_p4.softswitch.codegen.variables import POSITION
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import joined, load_word, word, words_at
from ofan_p4.softswitch.native.context import words_for
from ofan_p4.softswitch.native.lookups import Lookups
from ofan_p4.softswitch.native.scope import CodeRules
from ofan_p4.softswitch.native.shared import (
    REQUEST_BITS,
    REQUEST_WORDS,
    RESUME_VALUES,
    Place,
)
from ofan_p4.softswitch.native.values import (
    I1,
    I32,
    I64,
    POINTER,
    Limit,
    Number,
    alignment,
    as_type,
    beyond,
    cut,
    wrapped,
)
from ofan_p4.softswitch.native.variables import NOTHING, NumberKind


class Asking(Lookups):
    """Translator of requests (`ofan_p4.softswitch.base.requests`)."""

    def _forget(self, node: Forget) -> None:
        self._b.store(ir.Constant(I1, 0), self._request_rooms(node.request)[0])

    def _ask(self, node: Ask) -> None:
        # Variables of the function until its end, as a later statement may forget or replace the
        # request.
        present, *rooms = self._request_rooms(node.request)
        for number, variable in zip(node.numbers, rooms, strict=False):
            self._b.store(as_type(self._b, self._number(number), I64), variable)

        self._b.store(ir.Constant(I1, 1), present)

    def _forget_values(self, _node: ForgetValues) -> None:
        """Do nothing: there is room for values whether they are there or not."""

    def _keep_values(self, node: KeepValues) -> None:
        """Put the values of a list behind the requests."""
        values = [self._value(value) for value in node.values]
        layout = self._shared.requests
        places = []
        for value in values:
            if isinstance(value, Place):
                raise beyond(Limit.LISTS)

            # The place of each value: its first word, its width and its sign.
            places.append((layout.size, value.bits, value.is_signed))
            for i, part in enumerate(self._words_of(value, words_for(value.bits))):
                self._b.store(part, self._b.gep(self._asked(), [word(layout.size + i)]))

            layout.size += words_for(value.bits)

        layout.places[node.request, node.number] = tuple(places)

    def _keep_state(self, node: KeepState) -> None:
        # Before the request words: their number is known only when everything is translated.
        base = self._b.bitcast(self._asked(), POINTER)
        self._store_state(self._b.gep(base, [word(-self._shared.state.size)]), node.values)

    def _asked(self) -> Any:
        return words_at(self._b, load_word(self._b, self._context, context.REQUESTS))

    def _ask_nothing(self, _node: AskNothing) -> None:
        self._b.store(word(0), self._wants)

    def _ask_all(self, node: AskAll) -> None:
        """Write the mask of the requests and their numbers, for the switch to read."""
        mask: Any = word(0)
        for name in (request for request, is_used, _ in node.requests if is_used):
            present, first, second = self._request_rooms(name)
            bit = self._b.zext(self._b.load(present), I64)
            # Every request has its own bit, so that the result of the function names all of them.
            mask = self._b.or_(mask, self._b.mul(bit, word(REQUEST_BITS[name])))
            # Memory that the switch reads is written only where there is a request.
            with self._b.if_then(self._b.load(present)):
                index = REQUEST_WORDS[name]
                self._b.store(self._b.load(first), self._b.gep(self._asked(), [word(index)]))
                self._b.store(self._b.load(second), self._b.gep(self._asked(), [word(index + 1)]))

        self._b.store(mask, self._wants)

    def _restore(self, node: Restore) -> None:
        resumed = words_at(self._b, load_word(self._b, self._context, context.RESUME))
        index = RESUME_VALUES
        numbers = []
        for target in node.targets:
            if isinstance(target, Bytes):
                raise beyond(Limit.LISTS)

            # Values come back in whole words, as they were kept.
            count = words_for(target.width)
            value = joined(self._b, [load_word(self._b, resumed, index + i) for i in range(count)])
            index += count
            number = cut(self._b, Number(value, 64 * count), target.width)
            numbers.append(wrapped(self._b, number, target.width) if target.is_signed else number)

        for target, number in zip(node.targets, numbers, strict=True):
            self._set(target, number)

    def _store_state(self, base: Any, values: Sequence[Expression]) -> None:
        """Put the position and the values of the variables that travel into a state block."""
        layout = self._shared.state
        by_name = {
            variable.name: self._value(value)
            for variable, value in zip(layout.variables, (POSITION, *values), strict=True)
        }
        for name, offset in layout.places.items():
            kind = layout.kinds[name]
            value = by_name[name]
            address = self._b.gep(base, [word(offset)])
            if isinstance(kind, NumberKind):
                if not isinstance(value, Number):
                    raise beyond(Limit.KINDS)

                type_ = kind.memory[0]
                self._b.store(
                    as_type(self._b, value, type_),
                    self._b.bitcast(address, type_.as_pointer()),
                    align=alignment(type_),
                )
                continue

            pointer = self._b.bitcast(address, I32.as_pointer())
            # A variable of bytes that nothing was ever assigned to has the number 0: no bytes.
            if isinstance(value, Number):
                value = Place(ir.Constant(I32, NOTHING), ir.Constant(I32, 0))

            self._b.store(value.offset, pointer)
            if kind.size is None:
                self._b.store(value.size, self._b.gep(pointer, [word(1)]))

    CODE: ClassVar[CodeRules] = {
        Forget: _forget,
        Ask: _ask,
        ForgetValues: _forget_values,
        KeepValues: _keep_values,
        KeepState: _keep_state,
        AskNothing: _ask_nothing,
        AskAll: _ask_all,
        Restore: _restore,
    }
