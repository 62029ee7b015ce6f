"""The variables of a function that is being translated."""

from __future__ import annotations

import ast
from abc import ABC
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from emulation.softswitch.native.build import words_at
from emulation.softswitch.native.shared import Bytes, Shared
from emulation.softswitch.native.values import (
    I32,
    I64,
    Builder,
    Number,
    UnsupportedError,
    as_type,
)
from emulation.softswitch.native.variables import NOTHING, BytesKind, Kind, NumberKind, kind_of


class Scope(ABC):  # noqa: B024
    """A function with its variables, and the place where its code is written: `_b`."""

    name = ""
    arguments: Sequence[tuple[str, ir.Type]] = ()

    def __init__(self, shared: Shared, node: ast.FunctionDef) -> None:
        self._shared = shared
        self._node = node
        kind = ir.FunctionType(I64, [type_ for _, type_ in self.arguments])
        self._function = ir.Function(shared.module, kind, name=self.name)
        for argument, (name, _) in zip(self._function.args, self.arguments, strict=True):
            argument.name = name
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")

        self._given = dict(
            zip((name for name, _ in self.arguments), self._function.args, strict=True)
        )
        entry = self._function.append_basic_block("entry")
        body = self._function.append_basic_block("start")
        # Variables have their room in the first block, which is left at the very end.
        self._rooms = Builder(entry)
        self._b = Builder(body)
        self._body = body
        self._slots: dict[str, tuple[Kind, tuple[Any, ...]]] = {}
        self._temporary: dict[str, Number | Bytes] = {}
        self._leave: list[ir.Block] = []
        self._list: int | None = None
        self._entry = self._rooms.alloca(I64)
        self._wants = self._rooms.alloca(I64)
        self._places = shared.places
        self._context = words_at(self._rooms, self._given["ctx"])

    def _text(self, node: ast.AST) -> str:
        return ast.unparse(node).splitlines()[0][:100]

    def _slot(self, name: str) -> tuple[Kind, tuple[Any, ...]]:
        if name not in self._slots:
            kind = kind_of(self._shared.program, name, self._shared.sizes)
            types = (kind.type,) if isinstance(kind, NumberKind) else kind.memory
            self._slots[name] = kind, tuple(self._rooms.alloca(type_) for type_ in types)

        return self._slots[name]

    def _is_variable(self, name: str) -> bool:
        try:
            kind_of(self._shared.program, name, self._shared.sizes)
        except UnsupportedError:
            return False

        return True

    def _set(self, name: str, value: Number | Bytes) -> None:
        if not self._is_variable(name):
            self._temporary[name] = value
            return

        kind, rooms = self._slot(name)
        if isinstance(kind, NumberKind) and isinstance(value, Number):
            self._b.store(as_type(self._b, value, kind.type), rooms[0])
        elif isinstance(kind, BytesKind) and isinstance(value, Bytes):
            self._b.store(value.offset, rooms[0])
            if kind.size is None:
                self._b.store(value.size, rooms[1])
        elif isinstance(kind, BytesKind) and isinstance(value, Number):
            # The first value of all variables that egress has not been given: no bytes.
            self._b.store(ir.Constant(I32, NOTHING), rooms[0])
            if kind.size is None:
                self._b.store(ir.Constant(I32, 0), rooms[1])
        else:
            raise UnsupportedError(f"{name} holds bytes and numbers")

    def _get(self, name: str) -> Number | Bytes:
        if name in self._temporary:
            return self._temporary[name]

        kind, rooms = self._slot(name)
        if isinstance(kind, NumberKind):
            return Number(self._b.load(rooms[0]), kind.bits, kind.is_signed)

        size = ir.Constant(I32, kind.size) if kind.size is not None else self._b.load(rooms[1])
        return Bytes(self._b.load(rooms[0]), size)

    def _is_bytes(self, name: str) -> bool:
        if name in self._temporary:
            return isinstance(self._temporary[name], Bytes)

        return self._is_variable(name) and isinstance(self._slot(name)[0], BytesKind)
