"""The frame that a packet becomes again: its headers, packed, and the payload."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.flow import Code
from ofan_p4.softswitch.codegen.layout import Chunk, pack_format
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import Binary, Choice, Expression, Zeros
from ofan_p4.softswitch.codegen.packet_nodes import Data, Length, Pack, Payload
from ofan_p4.softswitch.codegen.program import Header, Program
from ofan_p4.softswitch.codegen.statements import MakeFrame
from ofan_p4.softswitch.codegen.tracing import Label, Tracing
from ofan_p4.softswitch.codegen.variables import POSITION


class DeparserCode:
    """Generator of the code that makes the frame, and of the frame's trace."""

    def __init__(
        self, program: Program, constants: Constants, liveness: Liveness, tracing: Tracing
    ) -> None:
        self._program = program
        self._constants = constants
        self._liveness = liveness
        self._tracing = tracing

    def emits(self) -> Code:
        """Report which headers the deparser has emitted, and the bytes that follow them."""
        headers = [self._program.headers[i] for i in self._program.deparse_order]
        values = [(Label(header.name, 1), header.valid) for header in headers]
        payload = Binary("-", Length(Data()), POSITION)
        return self._tracing.at(
            "emit", "deparser", [*values, (Label("payload", 32), payload)], where=""
        )

    def frame(self) -> MakeFrame:
        """Return the code that puts the frame together."""
        headers = [self._program.headers[i] for i in self._program.deparse_order]
        # One join: the payload, most of the frame, is copied once.
        pieces = [piece for header in headers for piece in self._emitted(header)]
        return MakeFrame((*pieces, Payload()))

    def _emitted(self, header: Header) -> list[Expression]:
        if self._liveness.is_pristine(header):
            return [header.raw]

        pieces: list[Expression] = []
        run: list[Chunk] = []
        for chunk in self._liveness.plan(header):
            # `struct` has no code for a length that is known at run time only: pack the fields
            # before the varbit and the fields after it, each in one call.
            if chunk.is_varbit:
                pieces += [*self._packed(run), chunk.var]
                run = []
            else:
                run.append(chunk)

        return [Choice(header.valid, piece, Zeros(0)) for piece in (*pieces, *self._packed(run))]

    def _packed(self, run: Sequence[Chunk]) -> list[Expression]:
        if not run:
            return []
        if len(run) == 1 and run[0].is_opaque:
            return [run[0].var]

        fmt = pack_format(run)
        name = self._constants.add(struct.Struct(fmt).pack)
        return [Pack(name, fmt, tuple(chunk.packed() for chunk in run))]
