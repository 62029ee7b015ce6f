"""Division of numbers that are wider than a machine divides, in LLVM IR."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.native.made_once import MadeOnce
from ofan_p4.softswitch.native.values import Builder

# LLVM writes out the division of wider numbers itself.
LIBRARY_BITS = 128


class DivisionCode(MadeOnce):
    """Functions that divide."""

    def wide_division(self, type_: ir.IntType, is_signed: bool) -> ir.Function:
        """Return `quotient divide(dividend, divisor)` of numbers of more than LIBRARY_BITS bits."""
        op = "sdiv" if is_signed else "udiv"

        def body(builder: Builder, left: Any, right: Any) -> None:
            builder.ret(getattr(builder, op)(left, right))

        function = self._function(f"{op}_{type_.width}", type_, [type_, type_], body)
        # Where LLVM sees that numbers are small enough for 128 bits, it calls a library that is not
        # there. An external function, it must suppose, is given numbers of any size.
        function.linkage = "external"
        function.attributes.add("noinline")
        return function
