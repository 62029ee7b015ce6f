"""Checksums: verified before ingress, updated after egress."""

from __future__ import annotations

from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.expressions import ONE, ZERO, Expressions, cut
from ofan_p4.softswitch.codegen.flow import Code, when
from ofan_p4.softswitch.codegen.hashing import calculated, parts_of
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import Compare, Expression, Logic, Truth
from ofan_p4.softswitch.codegen.program import Checksum, Program
from ofan_p4.softswitch.codegen.statements import Assign
from ofan_p4.softswitch.codegen.tracing import Label, Tracing


class ChecksumCode:
    """Generator of the code that verifies and updates a program's checksums."""

    def __init__(
        self, program: Program, constants: Constants, liveness: Liveness, tracing: Tracing
    ) -> None:
        self._program = program
        self._constants = constants
        self._liveness = liveness
        self._tracing = tracing
        self._expressions = Expressions(program)

    def verify(self) -> Code:
        """Return the code that notes a wrong checksum in `checksum_error`."""
        error = self._program.intrinsic("standard_metadata.checksum_error")
        # The program never reads the outcome, so that nothing is verified.
        if error is None or not self._liveness.is_live(error):
            return []

        code: Code = []
        for checksum in self._program.checksums:
            if checksum.verify:
                wrong = Compare("!=", self._checksum(checksum), checksum.target.var)
                test = Logic("and", (self._condition(checksum), wrong))
                traced = self._traced("checksum_wrong", checksum)
                code.append(when(test, [Assign(error.var, ONE), *traced]))

        return code

    def update(self) -> Code:
        """Return the code that writes the checksums of the valid headers."""
        code: Code = []
        for checksum in self._program.checksums:
            if checksum.update:
                value = cut(checksum.target, self._checksum(checksum))
                traced = self._traced("checksum_updated", checksum)
                written = [Assign(checksum.target.var, value), *traced]
                code.append(when(self._condition(checksum), written))

        return code

    def _traced(self, kind: str, checksum: Checksum) -> Code:
        """Report a checksum field; the right value of a wrong checksum is computed again."""
        bits = checksum.target.bits
        values: list[tuple[Label, Expression]] = [(Label("value", bits), checksum.target.var)]
        if kind == "checksum_wrong":
            values.append((Label("expected", bits), self._checksum(checksum)))

        return self._tracing.at(
            kind, self._tracing.name_of(checksum.target), values, where=checksum.where
        )

    def _checksum(self, checksum: Checksum) -> Expression:
        calculation = self._program.calculations[checksum.calculation]
        parts = parts_of(
            self._program,
            calculation.inputs,
            validity=self._program.headers[checksum.target.header].valid,
        )

        return calculated(self._program, self._constants, calculation, parts)

    def _condition(self, checksum: Checksum) -> Expression:
        """Return when a checksum counts: its header is there, and the program's condition holds."""
        valid = self._program.headers[checksum.target.header].valid
        if checksum.condition is None:
            return valid

        asked = self._expressions.boolean(checksum.condition)
        # Programs usually ask for `isValid()` of the very header; once is enough.
        is_known = asked in (Truth(value=True), Compare("!=", valid, ZERO))
        return valid if is_known else Logic("and", (valid, asked))
