"""The frame that a packet becomes again: its headers, packed, and the payload."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.flow import Lines, tuple_of
from emulation.softswitch.codegen.hashing import PAYLOAD
from emulation.softswitch.codegen.layout import Chunk, pack_format
from emulation.softswitch.codegen.liveness import Liveness
from emulation.softswitch.codegen.program import Header, Program
from emulation.softswitch.codegen.tracing import Label, Tracing


class DeparserCode:
    """Generates the expression of the frame, and what a trace tells of it."""

    def __init__(
        self, program: Program, constants: Constants, liveness: Liveness, tracing: Tracing
    ) -> None:
        self._program = program
        self._constants = constants
        self._liveness = liveness
        self._tracing = tracing

    def emits(self) -> Lines:
        """Report which headers the deparser has emitted, and the bytes that follow them."""
        headers = [self._program.headers[i] for i in self._program.deparse_order]
        values = [(Label(header.name, 1), header.valid) for header in headers]
        payload = f"len({names.DATA}) - {names.POSITION}"
        return self._tracing.at(
            "emit", "deparser", [*values, (Label("payload", 32), payload)], where=""
        )

    def frame(self) -> str:
        """Return the expression of the frame's bytes."""
        headers = [self._program.headers[i] for i in self._program.deparse_order]
        # One join: the payload, most of the frame, is copied once.
        pieces = [piece for header in headers for piece in self._emitted(header)]
        return f'b"".join({tuple_of([*pieces, PAYLOAD])})'

    def _emitted(self, header: Header) -> list[str]:
        if self._liveness.is_pristine(header):
            return [header.raw]

        pieces: list[str] = []
        run: list[Chunk] = []
        for chunk in self._liveness.plan(header):
            # `struct` has no code for a length that is known at run time only: pack what comes
            # before the varbit and what comes after it, each in one call.
            if chunk.is_varbit:
                pieces += [*self._packed(run), chunk.var]
                run = []
            else:
                run.append(chunk)

        return [f'({piece} if {header.valid} else b"")' for piece in (*pieces, *self._packed(run))]

    def _packed(self, run: Sequence[Chunk]) -> list[str]:
        if not run:
            return []
        if len(run) == 1 and run[0].is_opaque:
            return [run[0].var]

        pack = self._constants.add(struct.Struct(pack_format(run)).pack)
        return [f"{pack}({', '.join(chunk.packed() for chunk in run)})"]
