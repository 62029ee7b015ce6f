"""From the nodes of a program to LLVM IR.

Each kind of node has a rule in `Function` or its bases. A node without a rule raises
UnsupportedError, and the Python engine runs the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen import names, nodes, packet_nodes
from ofan_p4.softswitch.codegen.arguments import EGRESS_NUMBERS
from ofan_p4.softswitch.codegen.assembly import Assembly
from ofan_p4.softswitch.codegen.nodes import Expression
from ofan_p4.softswitch.codegen.program import Program
from ofan_p4.softswitch.codegen.statements import (
    CutFrame,
    MakeFrame,
    ReturnEgress,
    ReturnIngress,
    TakeState,
)
from ofan_p4.softswitch.codegen.variables import POSITION
from ofan_p4.softswitch.native.build import word
from ofan_p4.softswitch.native.missing_rules import no_rule, without_rule
from ofan_p4.softswitch.native.scope import CodeRules, NumberRules
from ofan_p4.softswitch.native.shared import (
    ASKED,
    DROPPED,
    EGRESS,
    FRAME_WORD,
    INGRESS,
    Interface,
    Place,
    Shared,
    Translation,
)
from ofan_p4.softswitch.native.statements import Function
from ofan_p4.softswitch.native.values import (
    I1,
    I32,
    I64,
    POINTER,
    Limit,
    Number,
    as_type,
    beyond,
)
from ofan_p4.softswitch.native.variables import NOTHING, NumberKind


def translate(program: Program, assembly: Assembly) -> Translation:
    """Translate the generated code of a program.

    Raises UnsupportedError where something in it has no native form.
    """
    # One module for both functions, as they share helpers and the layout of the state block.
    shared = Shared.of(program, assembly)
    Ingress(shared, assembly.ingress).translate()
    Egress(shared, assembly.egress).translate()

    interface = Interface(shared.state.size, shared.requests, shared.logs)
    return Translation(str(shared.module), interface)


class Ingress(Function):
    """Translator of the parser and the ingress pipeline."""

    name = INGRESS
    arguments = (
        ("ctx", I64),
        (names.DATA, POINTER),
        ("avail", I64),
        (names.SIZE, I64),
        (names.PORT, I64),
        (names.PACKET_LENGTH, I64),
        (names.NOW, I64),
        (names.STATE, POINTER),
    )

    def _return(self, node: ReturnIngress) -> None:
        base = self._arguments[names.STATE]
        # The state block begins with the numbers that the switch needs at once: port, group,
        # priority, growth.
        outcome = self._b.bitcast(base, I32.as_pointer())
        for i, part in enumerate(node.outcome):
            number = as_type(self._b, self._number(part), I32)
            self._b.store(number, self._b.gep(outcome, [word(i)]))

        self._store_state(base, node.state)
        self._b.ret(self._b.load(self._wants) if node.asks else word(0))

    CODE: ClassVar[CodeRules] = {**Function.CODE, ReturnIngress: _return}


class Egress(Function):
    """Translator of the egress pipeline and the deparser."""

    name = EGRESS
    arguments = (
        ("ctx", I64),
        (names.DATA, POINTER),
        ("avail", I64),
        (names.SIZE, I64),
        (names.STATE, POINTER),
        *((argument.name, I64) for argument in EGRESS_NUMBERS),
        ("out", POINTER),
    )

    def _take_state(self, _node: TakeState) -> None:
        # How long the frame is in the end, and how much of it is written so far.
        self._sent = self._rooms.alloca(I64)
        self._end = self._rooms.alloca(I64)
        layout = self._shared.state
        base = self._arguments[names.STATE]
        variables = {variable.name: variable for variable in layout.variables}
        for name, offset in layout.places.items():
            kind = layout.kinds[name]
            address = self._b.gep(base, [word(offset)])
            if isinstance(kind, NumberKind):
                self._set(variables[name], self._kept_number(address, kind))
                continue

            pointer = self._b.bitcast(address, I32.as_pointer())
            # Bytes travel as an offset into the frame; their number only where it differs by
            # packet.
            size = (
                ir.Constant(I32, kind.size)
                if kind.size is not None
                else self._b.load(self._b.gep(pointer, [word(1)]))
            )
            self._set(variables[name], Place(self._b.load(pointer), size))

    def _make_frame(self, node: MakeFrame) -> None:
        self._b.store(word(0), self._end)
        for piece in node.pieces:
            self._piece(piece)

    def _cut_frame(self, node: CutFrame) -> None:
        self._b.store(as_type(self._b, self._number(node.size), I64), self._sent)

    def _piece(self, node: Expression) -> None:
        match node:
            # A header that is left out where it is invalid.
            case nodes.Choice(test=test, yes=piece):
                with self._b.if_then(self._truth(test)):
                    self._piece(piece)
            case packet_nodes.Pack():
                start = self._b.load(self._end)
                size = self._pack(node, self._arguments["out"], start)
                self._b.store(self._b.add(start, word(size)), self._end)
            case packet_nodes.Payload():
                self._payload()
            case nodes.Bytes():
                self._emit(node)
            case _:
                raise no_rule(node)

    def _emit(self, node: nodes.Bytes) -> None:
        data = self._bytes(node)
        start = self._b.load(self._end)
        address = self._b.gep(self._arguments["out"], [start])
        if isinstance(data.size, ir.Constant):
            size = int(data.size.constant)
            if not size:
                return

            is_there = self._b.icmp_signed("!=", data.offset, ir.Constant(I32, NOTHING))
            with self._b.if_then(is_there):
                self._copy(data, address, size)
                self._b.store(self._b.add(start, word(size)), self._end)

            return

        # The output has room for all headers at their longest.
        if not node.most:
            raise beyond(Limit.VARBITS)

        limit = word(node.most)
        size = self._b.zext(data.size, I64)
        size = self._b.select(self._b.icmp_unsigned("<", size, limit), size, limit)
        is_real = self._b.icmp_signed(">=", data.offset, ir.Constant(I32, 0))
        with self._b.if_then(is_real):
            origin = self._b.gep(self._arguments[names.DATA], [self._b.sext(data.offset, I64)])
            self._copy_memory(address, origin, size)

        self._b.store(self._b.add(start, size), self._end)

    def _copy_memory(self, to: Any, origin: Any, size: Any) -> None:
        # Source and target are different frames: they never overlap.
        copy = self._shared.module.declare_intrinsic("llvm.memcpy", [POINTER, POINTER, I64])
        self._b.call(copy, [to, origin, size, ir.Constant(I1, 0)])

    def _payload(self) -> None:
        """Copy the rest of the frame as far as it is in memory; its length counts in full."""
        position = as_type(self._b, self._number(POSITION), I64)
        start = self._b.load(self._end)
        # The caller may hand over only the beginning of a frame, and sends the rest itself.
        in_memory = self._b.sub(self._arguments["avail"], position)
        is_some = self._b.icmp_signed(">", in_memory, word(0))
        with self._b.if_then(is_some):
            origin = self._b.gep(self._arguments[names.DATA], [position])
            self._copy_memory(self._b.gep(self._arguments["out"], [start]), origin, in_memory)

        rest = self._b.sub(self._arguments[names.SIZE], position)
        rest = self._b.select(self._b.icmp_signed(">", rest, word(0)), rest, word(0))
        self._b.store(self._b.add(start, rest), self._sent)

    def _frame_length(self, _node: packet_nodes.FrameLength, _demand: int | None) -> Number:
        return Number(self._b.load(self._sent), 32)

    def _return(self, node: ReturnEgress) -> None:
        length = word(DROPPED) if node.is_dropped else self._b.load(self._sent)
        wants = self._b.load(self._wants)
        # One result for two things: a length, or, below DROPPED, the bits of the requests. The
        # length then stands beside the requests.
        asks = self._b.icmp_unsigned("!=", wants, word(0))
        with self._b.if_then(asks):
            self._b.store(length, self._b.gep(self._asked(), [word(FRAME_WORD)]))
            self._b.ret(self._b.sub(word(ASKED), wants))

        self._b.ret(length)

    CODE: ClassVar[CodeRules] = {
        **Function.CODE,
        TakeState: _take_state,
        MakeFrame: _make_frame,
        CutFrame: _cut_frame,
        ReturnEgress: _return,
    }
    NUMBERS: ClassVar[NumberRules] = {**Function.NUMBERS, packet_nodes.FrameLength: _frame_length}


# Nodes without a rule of their own: the rules of the nodes around them translate them.
_WITHIN = frozenset(
    {
        nodes.Zeros,
        packet_nodes.Data,
        packet_nodes.Payload,
        packet_nodes.FrameBytes,
        packet_nodes.ToBytes,
        packet_nodes.Pack,
        packet_nodes.JoinedBits,
        packet_nodes.DirectMeter,
        packet_nodes.Entry,
        packet_nodes.Resumed,
    }
)


def unsupported() -> Iterator[tuple[str, str]]:
    """Yield the name of each node or limit that has no machine code, and its meaning."""
    rules = (
        rules
        for function in (Ingress, Egress)
        for rules in (function.CODE, function.NUMBERS, function.TRUTHS)
    )
    yield from without_rule(_WITHIN.union(*rules))
    yield from ((limit.name, limit.value) for limit in Limit)
