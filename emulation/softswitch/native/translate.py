"""From generated Python to LLVM IR, statement by statement.

The text that `codegen` writes is a small language: integers in named variables, bytes cut out of
the frame, tables searched in a handful of ways. Each form has its method in one of the classes that
`Function` is made of; whatever has none raises UnsupportedError, and the Python engine runs the
program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.assembly import EGRESS_ARGUMENTS, Assembly
from emulation.softswitch.codegen.program import Program
from emulation.softswitch.native import context as at
from emulation.softswitch.native.build import load_word, word
from emulation.softswitch.native.forms import (
    is_payload,
)
from emulation.softswitch.native.shared import (
    ASKED,
    DROPPED,
    EGRESS,
    FRAME_WORD,
    INGRESS,
    Bytes,
    Interface,
    Shared,
    Translation,
    state_order,
)
from emulation.softswitch.native.statements import Function
from emulation.softswitch.native.values import (
    I1,
    I32,
    I64,
    POINTER,
    Number,
    UnsupportedError,
    alignment,
    as_type,
)
from emulation.softswitch.native.variables import NOTHING, NumberKind


def translate(program: Program, assembly: Assembly) -> Translation:
    """Translate the generated code of a program.

    Raises UnsupportedError where something in it has no native form.
    """
    tree = ast.parse(assembly.source)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    shared = Shared.of(program, assembly, functions)
    _Ingress(shared, functions[INGRESS]).translate()
    _Egress(shared, functions[EGRESS]).translate()

    interface = Interface(shared.state.size, shared.requests, shared.logs)
    return Translation(str(shared.module), interface)


class _Ingress(Function):
    name = INGRESS
    arguments = (
        ("ctx", I64),
        (names.DATA, POINTER),
        ("avail", I64),
        ("n", I64),
        (names.PORT, I64),
        (names.PACKET_LENGTH, I64),
        (names.NOW, I64),
        (names.STATE, POINTER),
    )

    def _return(self, node: ast.Return) -> None:
        assert isinstance(node.value, ast.Tuple)
        spec, group, priority, growth, requests, state = node.value.elts
        base = self._given[names.STATE]
        outcome = self._b.bitcast(base, I32.as_pointer())
        for i, part in enumerate((spec, group, priority, growth)):
            number = as_type(self._b, self._number(part), I32)
            self._b.store(number, self._b.gep(outcome, [word(i)]))

        assert isinstance(state, ast.Tuple)
        values = {
            name: self._value(part)
            for name, part in zip(state_order(self._shared), state.elts[1:], strict=True)
        }
        self._store_state(base, values)
        if isinstance(requests, ast.Constant):
            self._b.ret(word(0))
        else:
            self._b.ret(self._b.load(self._wants))


class _Egress(Function):
    name = EGRESS
    arguments = (
        ("ctx", I64),
        (names.DATA, POINTER),
        ("avail", I64),
        ("n", I64),
        (names.STATE, POINTER),
        *((name, I64) for name in EGRESS_ARGUMENTS if name != names.STATE),
        ("out", POINTER),
    )
    _skipped = 1

    def _start(self) -> None:
        self._length = self._rooms.alloca(I64)
        self._at = self._rooms.alloca(I64)
        layout = self._shared.state
        base = self._given[names.STATE]
        for name, place in layout.places.items():
            kind = layout.kinds[name]
            address = self._b.gep(base, [word(place)])
            if isinstance(kind, NumberKind):
                type_ = kind.memory[0]
                pointer = self._b.bitcast(address, type_.as_pointer())
                value = self._b.load(pointer, align=alignment(type_))
                wide = kind.type
                if type_.width < wide.width:
                    value = (self._b.sext if kind.is_signed else self._b.zext)(value, wide)

                self._set(name, Number(value, kind.bits, kind.is_signed))
                continue

            pointer = self._b.bitcast(address, I32.as_pointer())
            size = (
                ir.Constant(I32, kind.size)
                if kind.size is not None
                else self._b.load(self._b.gep(pointer, [word(1)]))
            )
            self._set(name, Bytes(self._b.load(pointer), size))

    def _keep_state(self, node: ast.Tuple) -> None:
        values = {
            name: self._value(part)
            for name, part in zip(state_order(self._shared), node.elts[1:], strict=True)
        }
        # Before the request words, whose number is known only when everything is translated.
        asked = self._b.inttoptr(load_word(self._b, self._context, at.REQUESTS), POINTER)
        self._store_state(self._b.gep(asked, [word(-self._shared.state.size)]), values)

    def _specials(self) -> Mapping[str, Callable[[ast.expr], None]]:
        return {**super()._specials(), names.FRAME: self._frame}

    def _frame(self, node: ast.expr) -> None:
        """Write the frame that leaves; `frame[:cutoff]` only shortens it."""
        if isinstance(node, ast.Subscript):
            assert isinstance(node.slice, ast.Slice) and node.slice.upper is not None
            self._b.store(as_type(self._b, self._number(node.slice.upper), I64), self._length)
            return

        assert isinstance(node, ast.Call)
        pieces = node.args[0]
        assert isinstance(pieces, ast.Tuple)
        self._b.store(word(0), self._at)
        for piece in pieces.elts:
            self._piece(piece)

    def _piece(self, node: ast.expr) -> None:
        match node:
            case ast.IfExp(body=body, test=test):
                with self._b.if_then(self._truth(test)):
                    self._piece(body)
            case ast.Call():
                out = self._given["out"]
                start = self._b.load(self._at)
                size = self._pack(node, out, start)
                self._b.store(self._b.add(start, word(size)), self._at)
            case _ if is_payload(node):
                self._payload(node)
            case ast.Name(id=name):
                self._bytes(name)
            case _:
                raise UnsupportedError(self._text(node))

    def _bytes(self, name: str) -> None:
        found = self._get(name)
        if not isinstance(found, Bytes):
            raise UnsupportedError(f"{name} as bytes")

        start = self._b.load(self._at)
        place = self._b.gep(self._given["out"], [start])
        if isinstance(found.size, ir.Constant):
            size = int(found.size.constant)
            if not size:
                return

            is_there = self._b.icmp_signed("!=", found.offset, ir.Constant(I32, NOTHING))
            with self._b.if_then(is_there):
                self._copy(found, place, size)
                self._b.store(self._b.add(start, word(size)), self._at)

            return

        # The room for what leaves is that of all headers at their longest.
        most = word(self._most_of(name))
        size = self._b.zext(found.size, I64)
        size = self._b.select(self._b.icmp_unsigned("<", size, most), size, most)
        is_real = self._b.icmp_signed(">=", found.offset, ir.Constant(I32, 0))
        with self._b.if_then(is_real):
            origin = self._b.gep(self._given[names.DATA], [self._b.sext(found.offset, I64)])
            self._move(place, origin, size)

        self._b.store(self._b.add(start, size), self._at)

    def _most_of(self, name: str) -> int:
        """Return the most bytes that a varbit may have."""
        number = names.header_of(name)
        header = None if number is None else self._shared.program.headers[number]
        if header is None or header.max_bytes <= header.bytes:
            raise UnsupportedError(f"the bytes of {name}, which have no limit")

        return header.max_bytes - header.bytes

    def _move(self, to: Any, origin: Any, size: Any) -> None:
        copy = self._shared.module.declare_intrinsic("llvm.memcpy", [POINTER, POINTER, I64])
        self._b.call(copy, [to, origin, size, ir.Constant(I1, 0)])

    def _payload(self, node: ast.expr) -> None:
        """Copy what is in memory of the rest of the frame, and count all of it."""
        assert isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        assert node.slice.lower is not None
        position = as_type(self._b, self._number(node.slice.lower), I64)
        start = self._b.load(self._at)
        in_memory = self._b.sub(self._given["avail"], position)
        is_some = self._b.icmp_signed(">", in_memory, word(0))
        with self._b.if_then(is_some):
            origin = self._b.gep(self._given[names.DATA], [position])
            self._move(self._b.gep(self._given["out"], [start]), origin, in_memory)

        rest = self._b.sub(self._given["n"], position)
        rest = self._b.select(self._b.icmp_signed(">", rest, word(0)), rest, word(0))
        self._b.store(self._b.add(start, rest), self._length)

    def _frame_length(self) -> Number:
        return Number(self._b.load(self._length), 32)

    def _return(self, node: ast.Return) -> None:
        assert isinstance(node.value, ast.Tuple)
        frame = node.value.elts[0]
        length = word(DROPPED) if isinstance(frame, ast.Constant) else self._b.load(self._length)
        wants = self._b.load(self._wants)
        asks = self._b.icmp_unsigned("!=", wants, word(0))
        with self._b.if_then(asks):
            self._b.store(length, self._b.gep(self._asked(), [word(FRAME_WORD)]))
            self._b.ret(self._b.sub(word(ASKED), wants))

        self._b.ret(length)
