"""The variables of a function that is being translated."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from llvmlite import ir

from ofan_p4.softswitch.codegen.nodes import Bytes, Local, Temporary
from ofan_p4.softswitch.codegen.statements import Statements
from ofan_p4.softswitch.native.build import words_at
from ofan_p4.softswitch.native.shared import Place, Shared
from ofan_p4.softswitch.native.values import (
    I32,
    I64,
    Builder,
    Limit,
    Number,
    alignment,
    as_type,
    beyond,
)
from ofan_p4.softswitch.native.variables import NOTHING, BytesKind, Kind, NumberKind, kind_of

# The forms of a node: a number (of which only so many bits may matter), one bit, or code.
NumberRules: TypeAlias = Mapping[type, Callable[[Any, Any, int | None], Number]]
TruthRules: TypeAlias = Mapping[type, Callable[[Any, Any], Any]]
CodeRules: TypeAlias = Mapping[type, Callable[[Any, Any], None]]


class Scope(ABC):  # noqa: B024
    """A function with its variables, and the place where its code is written: `_b`."""

    name = ""
    arguments: Sequence[tuple[str, ir.Type]] = ()
    NUMBERS: ClassVar[NumberRules] = {}
    TRUTHS: ClassVar[TruthRules] = {}
    CODE: ClassVar[CodeRules] = {}

    def __init__(self, shared: Shared, body: Statements) -> None:
        self._shared = shared
        self._statements = body
        kind = ir.FunctionType(I64, [type_ for _, type_ in self.arguments])
        self._function = ir.Function(shared.module, kind, name=self.name)
        for argument, (name, _) in zip(self._function.args, self.arguments, strict=True):
            argument.name = name
            if isinstance(argument.type, ir.PointerType):
                # Frame, state and output never overlap, so that LLVM need not read them again after
                # a write.
                argument.add_attribute("noalias")

        self._arguments = dict(
            zip((name for name, _ in self.arguments), self._function.args, strict=True)
        )
        entry = self._function.append_basic_block("entry")
        body_ = self._function.append_basic_block("start")
        # Variables have their room in the first block, which is left at the very end.
        self._rooms = Builder(entry)
        self._b = Builder(body_)
        self._body = body_
        self._slots: dict[str, tuple[Kind, tuple[Any, ...]]] = {}
        self._requests: dict[str, tuple[Any, Any, Any]] = {}
        self._temporary: dict[str, Number | Place] = {}
        self._leave: list[ir.Block] = []
        self._entry = self._rooms.alloca(I64)
        self._wants = self._rooms.alloca(I64)
        self._places = shared.places
        self._context = words_at(self._rooms, self._arguments["ctx"])

    def _slot(self, variable: Local | Bytes) -> tuple[Kind, tuple[Any, ...]]:
        if variable.name not in self._slots:
            kind = kind_of(variable)
            types = (kind.type,) if isinstance(kind, NumberKind) else kind.memory
            # Memory in the first block; LLVM turns it into registers where it can.
            rooms = tuple(self._rooms.alloca(type_) for type_ in types)
            self._slots[variable.name] = kind, rooms

        return self._slots[variable.name]

    def _set(self, variable: Local | Bytes | Temporary, value: Number | Place) -> None:
        # A temporary is set once, so that it needs no memory.
        if isinstance(variable, Temporary):
            self._temporary[variable.name] = value
            return

        kind, rooms = self._slot(variable)
        if isinstance(kind, NumberKind) and isinstance(value, Number):
            self._b.store(as_type(self._b, value, kind.type), rooms[0])
        elif isinstance(kind, BytesKind) and isinstance(value, Place):
            self._b.store(value.offset, rooms[0])
            if kind.size is None:
                self._b.store(value.size, rooms[1])
        elif isinstance(kind, BytesKind) and isinstance(value, Number):
            # The first value of all variables that egress has not been given: no bytes.
            self._b.store(ir.Constant(I32, NOTHING), rooms[0])
            if kind.size is None:
                self._b.store(ir.Constant(I32, 0), rooms[1])
        else:
            raise beyond(Limit.KINDS)

    def _kept_number(self, address: Any, kind: NumberKind) -> Number:
        """Return a number out of a state block."""
        type_ = kind.memory[0]
        value = self._b.load(self._b.bitcast(address, type_.as_pointer()), align=alignment(type_))
        # Memory has it in fewer bits than it is computed in.
        wide = kind.type
        if type_.width < wide.width:
            value = (self._b.sext if kind.is_signed else self._b.zext)(value, wide)

        return Number(value, kind.bits, kind.is_signed)

    def _get(self, variable: Local | Bytes | Temporary) -> Number | Place:
        if isinstance(variable, Temporary):
            return self._temporary[variable.name]

        kind, rooms = self._slot(variable)
        if isinstance(kind, NumberKind):
            return Number(self._b.load(rooms[0]), kind.bits, kind.is_signed)

        size = ir.Constant(I32, kind.size) if kind.size is not None else self._b.load(rooms[1])
        return Place(self._b.load(rooms[0]), size)
