"""Checksums: verified before ingress, updated after egress."""

from __future__ import annotations

from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.expressions import Expressions, Value, cut
from emulation.softswitch.codegen.flow import Lines, indent
from emulation.softswitch.codegen.hashing import hash_value, parts_of
from emulation.softswitch.codegen.liveness import Liveness
from emulation.softswitch.codegen.program import Checksum, Program
from emulation.softswitch.codegen.tracing import Label, Tracing


class ChecksumCode:
    """Generates what verifies and updates a program's checksums."""

    def __init__(
        self, program: Program, constants: Constants, liveness: Liveness, tracing: Tracing
    ) -> None:
        self._program = program
        self._constants = constants
        self._liveness = liveness
        self._tracing = tracing
        self._expressions = Expressions(program)

    def verify(self) -> Lines:
        """Return what notes a wrong checksum in `checksum_error`."""
        error = self._program.intrinsic("standard_metadata.checksum_error")
        # Nobody asks for the outcome, so that nothing is verified.
        if error is None or not self._liveness.is_live(error):
            return []

        lines: Lines = []
        for checksum in self._program.checksums:
            if checksum.verify:
                wrong = f"{self._checksum(checksum).source} != {checksum.target.var}"
                told = self._told("checksum_wrong", checksum)
                lines += [
                    f"if {self._condition(checksum)} and {wrong}:",
                    *indent([f"{error.var} = 1", *told]),
                ]

        return lines

    def update(self) -> Lines:
        """Return what writes the checksums of the headers that are there."""
        lines: Lines = []
        for checksum in self._program.checksums:
            if checksum.update:
                store = f"{checksum.target.var} = {cut(checksum.target, self._checksum(checksum))}"
                lines += [
                    f"if {self._condition(checksum)}:",
                    *indent([store, *self._told("checksum_updated", checksum)]),
                ]

        return lines

    def _told(self, kind: str, checksum: Checksum) -> Lines:
        """Report a checksum field; what a wrong one should have been is computed again."""
        values = [(Label("value", checksum.target.bits), checksum.target.var)]
        if kind == "checksum_wrong":
            values.append(
                (Label("expected", checksum.target.bits), self._checksum(checksum).source)
            )

        return self._tracing.at(
            kind, self._tracing.name_of(checksum.target), values, where=checksum.where
        )

    def _checksum(self, checksum: Checksum) -> Value:
        calculation = self._program.calculations[checksum.calculation]
        parts = parts_of(
            self._program,
            calculation.inputs,
            known=self._program.headers[checksum.target.header].valid,
        )

        return hash_value(self._constants, calculation.algorithm, parts)

    def _condition(self, checksum: Checksum) -> str:
        """Return when a checksum counts: its header is there, and the program's condition holds."""
        valid = self._program.headers[checksum.target.header].valid
        asked = (
            "True" if checksum.condition is None else self._expressions.boolean(checksum.condition)
        )
        # Programs usually ask for `isValid()` of the very header; once is enough.
        return valid if asked in ("True", f"({valid} != 0)") else f"{valid} and {asked}"
