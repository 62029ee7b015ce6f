"""Faults put into the compiler by hand, to see that random programs notice them.

The module's source is changed in memory only, and its functions get the code of the changed ones
until the end.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType, ModuleType


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    module: str
    right: str
    wrong: str

    def times_there(self) -> int:
        """Return how often the right line is in its module; a fault can be put where it is once."""
        return inspect.getsource(import_module(self.module)).count(self.right)


FAULTS = (
    Fault(
        "a widening cast is dropped",
        "ofan_p4.compiler.midend.operands",
        "        return widened(value, target)",
        "        return value",
    ),
    Fault(
        "saturation of int<> is that of bit<>",
        "ofan_p4.compiler.midend.operands",
        '"sat_cast" if is_signed(type_) else "usat_cast"',
        '"usat_cast"',
    ),
    Fault(
        "a slice begins one bit too low",
        "ofan_p4.compiler.midend.operands",
        'shifted = ir.Compute(">>", value, number(low, ty.INT), value.type) if low else value',
        'shifted = ir.Compute(">>", value, number(low - 1, ty.INT), value.type) if low else value',
    ),
    Fault(
        "the negative right side of ++ fills the left one",
        "ofan_p4.compiler.midend.operands",
        "low = right if not is_signed(right.type) else reduce_to(right, ty.Bits(width))",
        "low = right",
    ),
    Fault(
        "arguments that overlap are not copied",
        "ofan_p4.compiler.midend.arguments",
        "overlap(arg.operand, operand) for operand in shared",
        "False for operand in shared",
    ),
    Fault(
        "effects on the right change what the left has read",
        "ofan_p4.compiler.midend.expressions",
        "        if position < last:",
        "        if position < 0:",
    ),
    Fault(
        "constants of int<> do not saturate at their lower end",
        "ofan_p4.compiler.semantics.folding",
        "    lowest = -magnitude if type_.signed else 0",
        "    lowest = 0",
    ),
)
CALLS = (
    Fault(
        "an in argument is read when the call begins",
        "ofan_p4.compiler.midend.arguments",
        "value if is_last else freeze(value, arg.span, frame)",
        "value",
    ),
    Fault(
        "an inout argument is read when the call begins",
        "ofan_p4.compiler.midend.arguments",
        'if is_last or param.direction == "out":',
        "if True:",
    ),
    Fault(
        "results go back in the reverse order",
        "ofan_p4.compiler.midend.arguments",
        "for copy in copies:",
        "for copy in copies[::-1]:",
    ),
    Fault(
        "exit forgets the results of calls",
        "ofan_p4.compiler.midend.statements",
        "copy_out(frame.copies, span, frame)",
        "copy_out((), span, frame)",
    ),
    Fault(
        "arguments by name are evaluated in the order of the parameters",
        "ofan_p4.compiler.midend.expressions",
        "-1 if (node := nodes[i]) is None else node.span.start",
        "-1 if (node := nodes[i]) is None else i",
    ),
    Fault(
        "the index of an argument is read when the call is over",
        "ofan_p4.compiler.midend.variables",
        "freeze_index(operand, node.span, frame) if is_kept else operand",
        "operand",
    ),
)


@contextmanager
def applied(fault: Fault) -> Iterator[None]:
    """Put a fault into the compiler until the end of the body."""
    module = import_module(fault.module)
    assert fault.times_there() == 1, f"{fault.name}: the right line is not there"
    wrong = ModuleType(fault.module)
    changed_source = inspect.getsource(module).replace(fault.right, fault.wrong)
    exec(compile(changed_source, str(module.__file__), "exec"), wrong.__dict__)

    changed: list[tuple[FunctionType, object]] = []
    for name, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__ == fault.module:
            changed.append((function, function.__code__))
            # The code alone is put in place, so that it still works on the module's own names.
            function.__code__ = vars(wrong)[name].__code__

    try:
        yield
    finally:
        for function, code in changed:
            function.__code__ = code  # type: ignore[assignment]
