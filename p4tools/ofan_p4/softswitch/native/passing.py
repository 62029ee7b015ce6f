"""A packet's way through a switch in two calls: all that can be done at once, and its departure.

    i64 pass(context, data, avail, n, port, length, now_ps, state, out)
    i64 leave(context, state, port, now_ps, deq_depth)

`pass` is ingress and egress's changes of the frame, `leave` the rest (`codegen.parting`). Where
headers keep their lengths, the frame changes in place. For frames of a known form the parser is a
straight line (`codegen.predicting`); whatever turns out to be another goes the general way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from llvmlite import ir

from ofan_p4.softswitch.codegen import names, nodes, packet_nodes
from ofan_p4.softswitch.codegen import statements as code
from ofan_p4.softswitch.codegen.arguments import EGRESS_NUMBERS
from ofan_p4.softswitch.codegen.assembly import Assembly, assemble
from ofan_p4.softswitch.codegen.nodes import Bytes, Expression, Local
from ofan_p4.softswitch.codegen.parting import Parted, part
from ofan_p4.softswitch.codegen.predicting import Way, way
from ofan_p4.softswitch.codegen.program import Program
from ofan_p4.softswitch.codegen.variables import POSITION
from ofan_p4.softswitch.native import context, kept, machine
from ofan_p4.softswitch.native.build import load_word, word
from ofan_p4.softswitch.native.engine import NativeProgram
from ofan_p4.softswitch.native.missing_rules import no_rule
from ofan_p4.softswitch.native.scope import CodeRules
from ofan_p4.softswitch.native.shared import DROPPED, Place, Shared, struct_parts
from ofan_p4.softswitch.native.statements import Function
from ofan_p4.softswitch.native.translate import Egress, Ingress
from ofan_p4.softswitch.native.values import (
    I1,
    I32,
    I64,
    POINTER,
    Number,
    UnsupportedError,
    alignment,
    as_type,
)
from ofan_p4.softswitch.native.variables import NOTHING, NumberKind, StateLayout

PASS, LEAVE = "pass", "leave"
GENERAL = "pass_any"
# Statements of packets that cannot pass at once.
_REFUSED = (code.Ask, code.KeepValues, code.KeepState, code.Log, code.Trace)


# A part of the frame that leaves: its source, whether it is written, and its size, if fixed.
Piece: TypeAlias = tuple[Expression, Any, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class Passing:
    """Both functions; `leave_address` is 0 where nothing is left to do at the departure.

    `state_bytes` is the size of a packet's state between them, a multiple of 8.
    """

    state_bytes: int
    pass_address: int
    leave_address: int
    code: machine.Code


@lru_cache(maxsize=16)
def passing(native: NativeProgram, source: bytes, sample: bytes) -> Passing | None:
    """Return a program's two calls, made for frames like `sample`; None where it needs the others.

    It does where it asks for copies, or where its frames depend on their departure.
    """
    key = machine.program_identity(source, b"passing" + hashlib.sha256(sample).digest())
    stored = kept.read(key)
    if stored is None:
        stored = _compiled(native.program, sample)
        kept.write(key, *stored)

    size, has_leave = map(int, stored[0].split())
    if not stored[1]:
        return None

    made = machine.load(stored[1], PASS, *([LEAVE] if has_leave else []))
    return Passing(size, made.addresses[0], made.addresses[1] if has_leave else 0, made)


def _compiled(program: Program, sample: bytes) -> tuple[str, bytes]:
    """Return the size of a state, whether there is something left, and the code: none if empty."""
    try:
        translation = translated(program, sample)
        if translation is None:
            return "0 0", b""

        text, size, has_leave = translation
        return f"{size} {int(has_leave)}", machine.object_code(text)
    except (UnsupportedError, RuntimeError):
        return "0 0", b""


def translated(program: Program, sample: bytes) -> tuple[str, int, bool] | None:
    """Return LLVM IR of both functions, the size of a state, and whether there is a `leave`."""
    assembly = assemble(program)
    parted = part(assembly.egress)
    if parted is None or _asks(assembly):
        return None

    shared = Shared.of(program, assembly)
    layout = StateLayout.of((*parted.handed, *parted.beginning), first=0)
    general = Pass(shared, assembly, parted, layout, name=GENERAL, turns={})
    general.function.linkage = "internal"
    general.function.attributes.add("noinline")
    general.translate()
    # The frame that is parsed comes from a host, through any port.
    turns = way(assembly, sample, port=1)
    Pass(shared, assembly, parted, layout, name=PASS, turns=turns, general=general).translate()
    if parted.has_leave:
        Leave(shared, parted, layout).translate()

    return str(shared.module), layout.size, parted.has_leave


def _asks(assembly: Assembly) -> bool:
    todo: list[Any] = [*assembly.ingress, *assembly.egress]
    while todo:
        statement = todo.pop()
        if isinstance(statement, _REFUSED):
            return True
        if isinstance(statement, code.If):
            todo += [inner for _, body in statement.arms for inner in body]
            todo += statement.otherwise
        elif isinstance(statement, (code.Once, code.Repeat)):
            todo += statement.body

    return False


class Pass(Egress):
    """Translator of ingress and, behind it, of egress's changes of the frame."""

    arguments = (*Ingress.arguments, ("out", POINTER))

    def __init__(
        self,
        shared: Shared,
        assembly: Assembly,
        parted: Parted,
        layout: StateLayout,
        *,
        name: str,
        turns: Way,
        general: Pass | None = None,
    ) -> None:
        self.name = name
        super().__init__(shared, assembly.ingress)
        self._parted = parted
        self._layout = layout
        self._turns: Mapping[int, int] = turns
        self._general = general
        self._given = tuple(self._function.args)
        self._sent = self._rooms.alloca(I64)
        self._end = self._rooms.alloca(I64)

    @property
    def function(self) -> Any:
        """The function of the module."""
        return self._function

    def _if(self, node: code.If) -> None:
        arm = self._turns.get(id(node))
        if arm is None or self._general is None:
            super()._if(node)
            return

        # The straight line: a packet that turns elsewhere is of another kind, and is unchanged so
        # far.
        for number, (test, body) in enumerate(node.arms):
            on = self._function.append_basic_block("on")
            away = self._function.append_basic_block("away")
            truth = self._truth(test)
            ways = (on, away) if number == arm else (away, on)
            self._b.cbranch(truth, *ways)
            self._b.position_at_end(away)
            self._b.ret(self._b.call(self._general.function, self._given))
            self._b.position_at_end(on)
            if number == arm:
                self._block(body)
                return

        self._block(node.otherwise)

    def _return_ingress(self, node: code.ReturnIngress) -> None:
        spec, group, priority, growth = (self._number(part) for part in node.outcome)
        drop = load_word(self._b, self._context, context.DROP)
        goes = self._b.icmp_unsigned("==", as_type(self._b, group, I64), word(0))
        port = as_type(self._b, spec, I64)
        goes = self._b.and_(goes, self._b.icmp_unsigned("!=", port, drop))
        with self._b.if_then(self._b.not_(goes)):
            self._b.ret(word(DROPPED))

        self._keep(self._parted.handed)
        # Egress begins: its arguments are other numbers under the same names.
        length = self._b.add(self._arguments[names.PACKET_LENGTH], as_type(self._b, growth, I64))
        self._arguments |= {argument.name: word(0) for argument in EGRESS_NUMBERS}
        self._arguments[names.PORT] = port
        self._arguments[names.PACKET_LENGTH] = length
        self._arguments[names.PRIORITY] = as_type(self._b, priority, I64)
        self._block(self._parted.frame)

    def _return_egress(self, node: code.ReturnEgress) -> None:
        self._keep(self._parted.beginning)
        # The port, and above it how long the frame at `out` is; 0 where it has changed in place.
        sent = self._b.shl(self._b.load(self._sent), word(32))
        self._b.ret(self._b.or_(sent, self._arguments[names.PORT]))

    def _keep(self, variables: tuple[Local, ...]) -> None:
        base = self._given[7]
        for variable in variables:
            address = self._b.gep(base, [word(self._layout.places[variable.name])])
            kind = self._layout.kinds[variable.name]
            type_ = kind.memory[0]
            value = as_type(self._b, self._number(variable), type_)
            self._b.store(
                value, self._b.bitcast(address, type_.as_pointer()), align=alignment(type_)
            )

    def _make_frame(self, node: code.MakeFrame) -> None:
        pieces = [self._sized(piece) for piece in node.pieces]
        starts = []
        end: Any = word(0)
        is_same: Any = ir.Constant(I1, 1)
        for _, is_written, size in pieces:
            starts.append(end)
            if size is None:
                is_same = self._b.and_(is_same, self._b.not_(is_written))
            else:
                end = self._b.add(end, self._b.select(is_written, word(size), word(0)))

        parsed = as_type(self._b, self._number(POSITION), I64)
        is_same = self._b.and_(is_same, self._b.icmp_unsigned("==", end, parsed))
        with self._b.if_else(is_same) as (same, different):
            with same:
                self._in_place(pieces, starts)
                self._b.store(word(0), self._sent)
            with different:
                super()._make_frame(node)

    def _sized(self, piece: Expression) -> Piece:
        """Return a piece's source, whether it is written, and its size, None where it varies."""
        match piece:
            case packet_nodes.Payload():
                return piece, ir.Constant(I1, 0), 0
            case nodes.Choice(test=test, yes=inner):
                written, is_written, size = self._sized(inner)
                return written, self._b.and_(self._truth(test), is_written), size
            case packet_nodes.Pack():
                size = sum(size for _, size, _ in struct_parts(piece.format))
                return piece, ir.Constant(I1, 1), size
            case Bytes():
                data = self._bytes(piece)
                is_written = self._b.icmp_signed("!=", data.offset, ir.Constant(I32, NOTHING))
                return piece, is_written, piece.size
            case _:
                raise no_rule(piece)

    def _in_place(self, pieces: Sequence[Piece], starts: Sequence[Any]) -> None:
        """Write the headers over those that came: as long in all, and perhaps others."""
        writes: list[tuple[Any, Any, Any, int]] = []
        for (piece, is_written, size), start in zip(pieces, starts, strict=True):
            # All bytes are read before the first is written.
            if isinstance(piece, packet_nodes.Pack):
                for (kind, part_size, offset), source in zip(
                    struct_parts(piece.format), piece.parts, strict=True
                ):
                    if part_size:
                        value = self._packed(kind, part_size, source)
                        position = self._b.add(start, word(offset))
                        writes.append((is_written, position, value, part_size))
            elif size:
                writes.append((is_written, start, self._held(self._bytes(piece), size), size))

        for is_written, position, value, size in writes:
            with self._b.if_then(is_written):
                address = self._b.gep(self._arguments[names.DATA], [position])
                if isinstance(value, Number):
                    self._write(as_type(self._b, value, ir.IntType(8 * size)), address, size)
                else:
                    self._b.store(value, self._b.bitcast(address, value.type.as_pointer()), align=1)

    def _packed(self, kind: str, size: int, source: Expression) -> Any:
        """Return a part of a struct: a number, or bytes as they lie in memory."""
        if kind == "s" and not isinstance(source, packet_nodes.ToBytes):
            return self._held(self._bytes(source), size)

        return self._number(source.value if isinstance(source, packet_nodes.ToBytes) else source)

    def _held(self, source: Place, size: int) -> Any:
        """Return bytes of the frame, or zeros, as they lie in memory."""
        type_ = ir.IntType(8 * size)
        is_real = self._b.icmp_signed(">=", source.offset, ir.Constant(I32, 0))
        before = self._b.block
        with self._b.if_then(is_real):
            origin = self._b.gep(self._arguments[names.DATA], [self._b.sext(source.offset, I64)])
            value = self._b.load(self._b.bitcast(origin, type_.as_pointer()), align=1)
            inside = self._b.block

        held = self._b.phi(type_)
        held.add_incoming(ir.Constant(type_, 0), before)
        held.add_incoming(value, inside)
        return held

    CODE: ClassVar[CodeRules] = {
        **Egress.CODE,
        code.If: _if,
        code.MakeFrame: _make_frame,
        code.ReturnIngress: _return_ingress,
        code.ReturnEgress: _return_egress,
    }


class Leave(Function):
    """Translator of the rest, at the departure."""

    name = LEAVE
    arguments = (
        ("ctx", I64),
        (names.STATE, POINTER),
        (names.PORT, I64),
        (names.NOW, I64),
        (names.DEQ_DEPTH, I64),
    )

    def __init__(self, shared: Shared, parted: Parted, layout: StateLayout) -> None:
        super().__init__(shared, parted.leave)
        self._layout = layout
        # Packets of machine code are no clones and no replicas.
        self._arguments |= {names.INSTANCE: word(0), names.RID: word(0)}

    def translate(self) -> None:
        """Build the function."""
        base = self._arguments[names.STATE]
        for variable in self._layout.variables:
            kind = self._layout.kinds[variable.name]
            address = self._b.gep(base, [word(self._layout.places[variable.name])])
            assert isinstance(kind, NumberKind)
            self._set(variable, self._kept_number(address, kind))

        self._block(self._statements)
        self._b.ret(word(0))
        self._rooms.branch(self._body)
