"""What a packet asks for beyond being forwarded, and what it brings along when it comes again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.native import context as at
from emulation.softswitch.native.build import load_word, word, words_at
from emulation.softswitch.native.context import words_for
from emulation.softswitch.native.lookups import Lookups
from emulation.softswitch.native.shared import (
    REQUEST_BITS,
    REQUEST_WORDS,
    RESUME_VALUES,
    Bytes,
)
from emulation.softswitch.native.values import (
    I1,
    I32,
    I64,
    Number,
    UnsupportedError,
    alignment,
    as_type,
    cut,
    wrapped,
)
from emulation.softswitch.native.variables import NOTHING, NumberKind, kind_of


class Asking(Lookups):
    """Translates requests (`emulation.softswitch.requests`)."""

    def _request_rooms(self, name: str) -> tuple[Any, Any, Any]:
        key = f"request {name}"
        if key not in self._slots:
            rooms = tuple(self._rooms.alloca(type_) for type_ in (I1, I64, I64))
            self._slots[key] = NumberKind(1), rooms

        present, first, second = self._slots[key][1]
        return present, first, second

    def _request(self, name: str) -> Callable[[ast.expr], None]:
        def assign(node: ast.expr) -> None:
            present, first, second = self._request_rooms(name)
            match node:
                case ast.Constant(value=None):
                    self._b.store(ir.Constant(I1, 0), present)
                    return
                case ast.Tuple(elts=[one, other]):
                    self._b.store(as_type(self._b, self._number(one), I64), first)
                    self._b.store(as_type(self._b, self._number(other), I64), second)
                case _:
                    self._b.store(as_type(self._b, self._number(node), I64), first)

            self._b.store(ir.Constant(I1, 1), present)

        return assign

    def _request_part(self, name: str, index: int) -> Number:
        rooms = self._request_rooms(name)
        return Number(self._b.load(rooms[1 + index]), 63)

    def _request_values(self, name: str) -> Callable[[ast.expr], None]:
        def assign(node: ast.expr) -> None:
            match node:
                case ast.Constant(value=None) | ast.Tuple(elts=[]):
                    return
                case ast.Tuple(elts=[ast.Name(id=names.DATA), *_]):
                    self._keep_state(node)
                case ast.Tuple(elts=parts):
                    self._keep_values(name, parts)
                case _:
                    raise UnsupportedError(self._text(node))

        return assign

    def _keep_values(self, name: str, parts: Sequence[ast.expr]) -> None:
        """Put the values of a list behind the requests."""
        if self._list is None:
            raise UnsupportedError("values of an unknown list")

        found = [self._value(part) for part in parts]
        layout = self._shared.requests
        places = []
        for value in found:
            if isinstance(value, Bytes):
                raise UnsupportedError("a list with bytes")

            places.append((layout.size, value.bits, value.is_signed))
            for i, part in enumerate(self._words_of(value, words_for(value.bits))):
                self._b.store(part, self._b.gep(self._asked(), [word(layout.size + i)]))

            layout.size += words_for(value.bits)

        layout.places[name, self._list] = tuple(places)

    def _asked(self) -> Any:
        return words_at(self._b, load_word(self._b, self._context, at.REQUESTS))

    def _keep_state(self, node: ast.Tuple) -> None:
        raise UnsupportedError("clones of egress")

    def _ask(self, node: ast.expr) -> None:
        """Translate the assignment of everything that a packet asks for."""
        self._b.store(word(0), self._wants)
        match node:
            case ast.Constant(value=None):
                return
            case ast.IfExp(body=ast.Tuple(elts=parts)) | ast.Tuple(elts=parts):
                asked = [part.id for part in parts if isinstance(part, ast.Name)]
            case _:
                raise UnsupportedError(self._text(node))

        mask: Any = word(0)
        for name in asked:
            if name not in REQUEST_BITS:
                continue

            present, first, second = self._request_rooms(name)
            there = self._b.zext(self._b.load(present), I64)
            mask = self._b.or_(mask, self._b.mul(there, word(REQUEST_BITS[name])))
            with self._b.if_then(self._b.load(present)):
                place = REQUEST_WORDS[name]
                self._b.store(self._b.load(first), self._b.gep(self._asked(), [word(place)]))
                self._b.store(self._b.load(second), self._b.gep(self._asked(), [word(place + 1)]))

        self._b.store(mask, self._wants)

    def _resumed(self, variables: Sequence[str]) -> list[Number | Bytes]:
        resumed = words_at(self._b, load_word(self._b, self._context, at.RESUME))
        found: list[Number | Bytes] = []
        place = RESUME_VALUES
        for name in variables:
            kind = kind_of(self._shared.program, name, self._shared.sizes)
            if not isinstance(kind, NumberKind):
                raise UnsupportedError("a list with bytes")

            count = words_for(kind.bits)
            type_ = ir.IntType(64 * count)
            value: Any = ir.Constant(type_, 0)
            for i in range(count):
                part = load_word(self._b, resumed, place + i)
                wide = part if count == 1 else self._b.zext(part, type_)
                value = self._b.or_(value, self._b.shl(wide, ir.Constant(type_, 64 * i)))

            place += count
            number = cut(self._b, Number(value, type_.width), kind.bits)
            found.append(wrapped(self._b, number, kind.bits) if kind.is_signed else number)

        return found

    def _store_state(self, base: Any, values: Mapping[str, Number | Bytes]) -> None:
        layout = self._shared.state
        for name, place in layout.places.items():
            kind = layout.kinds[name]
            value = values[name]
            address = self._b.gep(base, [word(place)])
            if isinstance(kind, NumberKind):
                if not isinstance(value, Number):
                    raise UnsupportedError(f"{name} holds bytes")

                type_ = kind.memory[0]
                self._b.store(
                    as_type(self._b, value, type_),
                    self._b.bitcast(address, type_.as_pointer()),
                    align=alignment(type_),
                )
                continue

            pointer = self._b.bitcast(address, I32.as_pointer())
            if isinstance(value, Number):
                value = Bytes(ir.Constant(I32, NOTHING), ir.Constant(I32, 0))

            self._b.store(value.offset, pointer)
            if kind.size is None:
                self._b.store(value.size, self._b.gep(pointer, [word(1)]))
